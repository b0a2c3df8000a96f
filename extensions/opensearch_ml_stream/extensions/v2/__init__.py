"""The V2 protocol (Open Inference Protocol), over REST and gRPC."""
