"""What the Messages API needs of the world beside conversations."""
