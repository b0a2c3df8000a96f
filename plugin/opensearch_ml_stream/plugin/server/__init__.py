"""The server: worker processes on one port, each with uvicorn and an HTTP protocol for streams."""
