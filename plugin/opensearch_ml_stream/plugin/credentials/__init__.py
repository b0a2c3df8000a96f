"""Credentials of connectors: encrypted in the store, resolved at use, redacted in errors."""
