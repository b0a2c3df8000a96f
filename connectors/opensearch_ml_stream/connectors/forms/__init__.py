"""Forms for calls of models."""
