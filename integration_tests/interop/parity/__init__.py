"""Requests that are sent to a real ML Commons and to the sidecar, and where the two differ on purpose."""
