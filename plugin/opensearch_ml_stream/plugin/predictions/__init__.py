"""Predictions: models compiled for calls, calls of their providers, guardrails, fallbacks, batch jobs."""
