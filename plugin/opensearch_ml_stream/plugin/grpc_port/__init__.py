"""The gRPC port: the V2 protocol over gRPC. Loaded only where the setting `grpc_port` asks for it."""
