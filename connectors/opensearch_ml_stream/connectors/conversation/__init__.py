"""Conversations in one neutral form, between the dialects of clients and those of providers."""
