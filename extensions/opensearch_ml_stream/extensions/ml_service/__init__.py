"""MLService, the gRPC API of ML Commons."""
