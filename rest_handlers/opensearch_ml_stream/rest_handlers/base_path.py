"""The base paths of the APIs, for routes and clients alike."""

BASE_PATH = "/_plugins/_ml"
V2_PATH = "/v2"
GENERATE_STREAM_PATH = "/generate-stream"
_RESERVED = ("/_plugins", V2_PATH, GENERATE_STREAM_PATH)


def is_v2(path: str) -> bool:
    """Whether a path belongs to the V2 protocol, whose errors have a shape of their own."""
    return path.startswith(V2_PATH) and path[len(V2_PATH) : len(V2_PATH) + 1] in ("", "/")


def is_reserved(path: str) -> bool:
    """Whether only the server's own routes can be at a path, and no custom handler of a model."""
    return path.startswith(tuple(f"{prefix}/" for prefix in _RESERVED)) or path in _RESERVED


def has_plain_errors(path: str) -> bool:
    """Whether errors at a path are `{"error": "<reason>"}`, as model servers have them, in place of OpenSearch's."""
    return is_v2(path) or path.startswith(GENERATE_STREAM_PATH)
