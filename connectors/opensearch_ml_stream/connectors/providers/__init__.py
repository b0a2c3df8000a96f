"""Providers: read each provider's events into chunks and an outcome. One module a provider, with its stream specs."""
