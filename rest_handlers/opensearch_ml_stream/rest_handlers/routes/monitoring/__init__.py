"""Routes that say what a running server does."""
