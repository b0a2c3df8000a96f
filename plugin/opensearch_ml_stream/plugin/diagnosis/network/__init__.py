"""The connection of a diagnosis: opened in steps, its certificate explained, its response timed."""
