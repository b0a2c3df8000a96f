"""The measurements of whole requests."""
