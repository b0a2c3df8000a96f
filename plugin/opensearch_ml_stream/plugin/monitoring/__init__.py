"""What an operator asks a running server: its statistics, `/profile` and `/stats`."""
