"""Framings: split a provider's bytes into events, one module for each framing."""
