"""TLS on the sidecar's own port."""
