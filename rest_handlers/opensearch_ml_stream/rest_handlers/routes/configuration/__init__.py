"""Routes of what configures models and cluster."""
