"""The process that runs one model: loads it, takes calls on a Unix socket, tells the keeper how it is."""
