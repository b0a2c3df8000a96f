"""The front door: requests that are not the sidecar's go to the store's cluster, and its responses come back."""
