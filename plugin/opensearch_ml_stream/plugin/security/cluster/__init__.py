"""Users of the store's OpenSearch cluster: who they are, and what their roles allow."""
