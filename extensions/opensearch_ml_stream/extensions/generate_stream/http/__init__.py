"""The routes of a vLLM tutorial's server, `/generate-stream`, over one model of the sidecar."""
