"""The OpenAPI document, made from the routes: what they say of themselves is all that it says."""
