"""Non-streaming predict as functions over values: read the input, shape the calls, shape the answers."""
