"""The route of a diagnosis."""
