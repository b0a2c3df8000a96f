"""An extension of opensearch-ml-stream: a model that says what it is told."""
