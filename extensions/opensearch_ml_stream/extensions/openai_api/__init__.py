"""OpenAI's API on every model: chat completions, completions, embeddings and the list of models."""
