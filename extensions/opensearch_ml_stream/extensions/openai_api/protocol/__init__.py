"""What OpenAI's API says, as values: requests, events, responses, errors."""
