"""Bytes of a connection to requests."""
