"""What a connector document says and what its provider's bytes mean. Pure: no I/O, no clock, no logger."""
