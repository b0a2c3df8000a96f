"""Decode a provider's response: bytes to events (framing), events to chunks and one outcome (provider)."""
