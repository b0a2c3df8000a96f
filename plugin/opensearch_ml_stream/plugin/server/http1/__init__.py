"""HTTP/1.1 to clients: connections, requests and responses on them, and what a client may take."""
