"""Providers: read each provider's events into chunks and an outcome.

A module also holds its provider's stream specs, except three. `text_generation_inference` and `bedrock_text_models` are
read through `model_hosts`, as is `plain_text_body`, which a connector's `_stream` can name as well.
"""
