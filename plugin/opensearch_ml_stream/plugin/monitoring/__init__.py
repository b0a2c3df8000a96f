"""What an operator asks a running server: `/profile` and `/stats`, made of its statistics and of the store."""
