"""Guardrails of a model: their configuration, the texts of a payload that they check, and filters for streams."""
