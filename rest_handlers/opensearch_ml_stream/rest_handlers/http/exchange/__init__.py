"""One request and its response as our server offers them beside ASGI's messages, and the same by messages."""
