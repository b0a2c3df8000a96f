"""Select the stream spec of a connector: by its `_stream` parameter, its `_llm_interface`, or its URL."""
