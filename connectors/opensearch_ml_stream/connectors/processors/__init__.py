"""Processors: the chains of edits to a JSON value that `input_processors` and `output_processors` configure."""
