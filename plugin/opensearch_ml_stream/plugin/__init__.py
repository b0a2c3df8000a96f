"""The core of the server, with everything that does I/O: settings, store, calls of providers, HTTP, command line."""
