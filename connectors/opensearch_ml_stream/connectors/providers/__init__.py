"""What each provider's events mean: one module a provider, each with its stream specs."""
