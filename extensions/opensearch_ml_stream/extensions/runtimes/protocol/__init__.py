"""Runtimes: models that run in processes beside the sidecar. Their requests and responses are those of V2 in JSON."""
