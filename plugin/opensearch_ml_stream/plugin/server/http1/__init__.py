"""HTTP/1.1 for clients: connections, requests and responses, and the limits on them."""
