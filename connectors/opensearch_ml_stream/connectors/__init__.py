"""What a connector says, and what its provider's bytes mean. Pure: bytes in, events out; no I/O, no clock, no log."""
