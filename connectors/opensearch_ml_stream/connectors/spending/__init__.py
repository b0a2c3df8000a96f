"""What calls of a provider spend, in tokens and money."""
