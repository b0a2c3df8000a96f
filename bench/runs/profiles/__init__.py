"""Where the time of a chunk goes."""
