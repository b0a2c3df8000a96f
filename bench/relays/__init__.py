"""The relays that are compared, and their processes."""
