"""Predict requests and responses: inputs, pre- and post-processing, Painless, guardrails, interface, batch jobs."""
