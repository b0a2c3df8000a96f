"""The server: worker processes on one port, each of which runs uvicorn with an HTTP protocol for streams."""
