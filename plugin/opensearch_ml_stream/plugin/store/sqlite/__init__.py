"""The search of the embedded store, in Python over its documents: queries, sorting, aggregations."""
