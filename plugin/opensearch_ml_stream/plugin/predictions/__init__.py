"""Predictions: models made ready to be called, calls of their providers, guardrails, rate limits, batch jobs."""
