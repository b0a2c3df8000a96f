"""Doctor: finds, step by step, what is wrong between a model and its provider."""
