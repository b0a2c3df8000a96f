"""The base path of the API, written down once."""

BASE_PATH = "/_plugins/_ml"
