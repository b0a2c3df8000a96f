"""Authentication and authorization of callers: credentials, roles, permissions, and the sidecar's own accounts."""
