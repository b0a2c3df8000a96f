"""OpenAI's interfaces (chat completions, completions, responses), which many other servers offer too."""
