"""The use cases of OpenAI's API that are not conversations."""
