"""The process that runs one model: loads it, takes calls on a Unix socket, reports to the keeper."""
