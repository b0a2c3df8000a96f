"""Which paths there are, and what each one does."""
