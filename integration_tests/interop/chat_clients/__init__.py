"""Clients of OpenAI's and Anthropic's APIs as their users have them, on models of every provider's dialect."""
