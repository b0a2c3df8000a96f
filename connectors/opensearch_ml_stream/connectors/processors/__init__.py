"""`input_processors` and `output_processors`: chains of edits to a JSON value."""
