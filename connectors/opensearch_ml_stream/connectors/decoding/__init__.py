"""Decode a provider's response: bytes to events (framing), events to chunks, chunks to one outcome."""
