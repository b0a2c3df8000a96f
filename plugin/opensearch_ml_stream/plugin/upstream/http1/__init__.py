"""An HTTP/1.1 client for streams: httptools parses heads and chunks, and no task or queue stands before the reader."""
