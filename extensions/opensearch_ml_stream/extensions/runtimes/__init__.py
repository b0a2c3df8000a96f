"""Models that run in processes of this server, and the process that keeps them."""
