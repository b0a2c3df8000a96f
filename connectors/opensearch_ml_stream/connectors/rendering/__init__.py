"""Render a connector's action and a caller's parameters into the request for the provider."""
