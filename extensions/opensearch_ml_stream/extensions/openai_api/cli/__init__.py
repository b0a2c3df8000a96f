"""The command `env`."""
