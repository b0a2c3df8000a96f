"""The predict use cases: a model made ready, called, guarded, counted."""
