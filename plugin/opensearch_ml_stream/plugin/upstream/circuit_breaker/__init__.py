"""Circuit breakers: a provider that fails again and again is left alone for a while."""
