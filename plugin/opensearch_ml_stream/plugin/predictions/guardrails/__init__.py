"""Guardrails of models at work: prompts and responses held until they are accepted."""
