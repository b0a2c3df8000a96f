"""`/generate-stream`, the route of vLLM's tutorials, and its page."""
