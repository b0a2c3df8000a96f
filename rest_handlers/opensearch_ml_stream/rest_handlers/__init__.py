"""HTTP in, HTTP out: the REST API of ML Commons over services that arrive as arguments."""
