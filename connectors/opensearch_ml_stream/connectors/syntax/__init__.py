"""Read the small languages that users write: JSON text, JSONPath, regular expressions, filter_path."""
