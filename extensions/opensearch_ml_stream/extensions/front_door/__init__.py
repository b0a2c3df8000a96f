"""The front door: requests that are not the sidecar's go on to the store's OpenSearch."""
