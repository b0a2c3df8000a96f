"""A provider on loopback with the streaming APIs of OpenAI and Anthropic, which takes any key."""
