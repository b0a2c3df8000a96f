"""Clients of OpenSearch as their users write them, against a sidecar whose callers log in."""
