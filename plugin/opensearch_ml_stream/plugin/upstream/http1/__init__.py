"""Our own HTTP/1.1 client for the relay path: httptools reads heads, and nothing stands between socket and reader."""
