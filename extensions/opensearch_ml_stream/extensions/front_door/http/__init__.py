"""The front door: which requests go on to the OpenSearch cluster of the store, and who may send them."""
