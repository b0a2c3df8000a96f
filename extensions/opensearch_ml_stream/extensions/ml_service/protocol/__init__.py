"""Messages of OpenSearch's gRPC service `MLService`: bytes in, parameters out; chunks in, bytes out."""
