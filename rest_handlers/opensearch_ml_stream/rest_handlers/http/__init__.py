"""How requests are read and responses are written."""
