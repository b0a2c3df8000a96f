"""Render a connector's action and a caller's parameters into the request to the provider."""
