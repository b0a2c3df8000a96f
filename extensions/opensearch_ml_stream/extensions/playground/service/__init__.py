"""The use cases of the playground."""
