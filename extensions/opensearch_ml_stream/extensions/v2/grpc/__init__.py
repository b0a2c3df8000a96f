"""V2 over gRPC: messages and services."""
