"""A provider on loopback that needs no key and speaks as OpenAI and as Anthropic do."""
