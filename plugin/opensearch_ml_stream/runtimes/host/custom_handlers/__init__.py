"""Custom handlers: methods of a model that are routes of the server, called in this process as an ASGI application."""
