"""Commands for the users and keys of the sidecar's own; they work on its store, so the sidecar need not run."""
