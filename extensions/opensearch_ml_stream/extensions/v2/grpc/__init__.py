"""V2 over gRPC: messages, and the service that answers them."""
