"""The gRPC port, with the services of extensions. Imported only if the setting `grpc_port` is set."""
