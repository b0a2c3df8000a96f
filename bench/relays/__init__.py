"""The relays that are compared, and the processes they run in."""
