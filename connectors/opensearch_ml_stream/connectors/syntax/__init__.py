"""The small languages that users write: JSON text, JSON path, regular expressions, filter_path."""
