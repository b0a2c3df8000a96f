"""Embedding requests of several callers in one call of the provider."""
