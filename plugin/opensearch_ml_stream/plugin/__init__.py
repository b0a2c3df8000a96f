"""Where the world is touched and wired: settings, store, providers, server, command line."""
