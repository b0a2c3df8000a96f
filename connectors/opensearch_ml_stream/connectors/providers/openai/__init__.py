"""OpenAI's interfaces, which many other servers speak too."""
