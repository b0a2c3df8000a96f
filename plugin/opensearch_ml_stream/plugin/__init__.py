"""Everything that does I/O: settings, store, calls of providers, server, command line; and the wiring of it all."""
