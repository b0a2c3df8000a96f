"""Commands that run a sidecar: `serve` and `demo`."""
