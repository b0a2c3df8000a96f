"""What Anthropic's Messages API says: requests, events, whole messages and errors. Pure."""
