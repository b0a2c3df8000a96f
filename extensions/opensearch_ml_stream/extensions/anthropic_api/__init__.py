"""Anthropic's Messages API on every model: `/v1/messages`."""
