"""Dialects of providers: how each writes a conversation as the body of its request."""
