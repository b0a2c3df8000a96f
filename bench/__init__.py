"""The project's own benchmark: `python -m bench --help`."""
