"""The base path of the API, for routes and clients alike."""

BASE_PATH = "/_plugins/_ml"
