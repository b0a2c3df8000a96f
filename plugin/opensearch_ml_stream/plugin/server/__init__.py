"""The server process: workers on one port, and HTTP to clients."""
