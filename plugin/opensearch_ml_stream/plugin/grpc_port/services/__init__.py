"""The services of the gRPC port, each as handlers of its methods."""
