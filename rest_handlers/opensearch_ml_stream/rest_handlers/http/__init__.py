"""HTTP, whatever the route: how requests are read, responses are written, and streams are kept alive."""
