"""Models that run in processes of this server: their folders, their processes, and the calls to them."""
