"""The base paths of the APIs, for routes and clients alike."""

BASE_PATH = "/_plugins/_ml"
V2_PATH = "/v2"
GENERATE_STREAM_PATH = "/generate-stream"


def is_v2(path: str) -> bool:
    """Whether a path belongs to the V2 protocol, whose errors have a shape of their own."""
    return path.startswith(V2_PATH) and path[len(V2_PATH) : len(V2_PATH) + 1] in ("", "/")


def has_plain_errors(path: str) -> bool:
    """Whether errors at a path are `{"error": "<reason>"}`, as model servers have them, in place of OpenSearch's."""
    return is_v2(path) or path.startswith(GENERATE_STREAM_PATH)
