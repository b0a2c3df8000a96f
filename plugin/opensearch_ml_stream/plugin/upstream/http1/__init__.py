"""An HTTP/1.1 client for streams. httptools parses heads and chunks; bytes reach the reader without a task or queue."""
