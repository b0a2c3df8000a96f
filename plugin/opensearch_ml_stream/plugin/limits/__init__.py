"""Limits: what calls of models may cost, in requests, open streams, time, tokens and money."""
