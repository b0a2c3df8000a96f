"""Who may call: credentials that a request presents, roles and their permissions, users and keys of the sidecar."""
