"""The client for providers."""
