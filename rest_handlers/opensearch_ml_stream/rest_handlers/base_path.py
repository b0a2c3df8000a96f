"""The base paths of the APIs, for routes and clients alike."""

BASE_PATH = "/_plugins/_ml"
V2_PATH = "/v2"
GENERATE_STREAM_PATH = "/generate-stream"
UI_PATH = "/_ui"
_RESERVED = ("/_plugins", V2_PATH, GENERATE_STREAM_PATH, UI_PATH)
METRICS_PATH = "/metrics"
_NEVER_OF_CLUSTER = ("/_health", UI_PATH, V2_PATH, GENERATE_STREAM_PATH)


def is_v2(path: str) -> bool:
    """Whether a path belongs to the V2 protocol, whose errors have a shape of their own."""
    return path.startswith(V2_PATH) and path[len(V2_PATH) : len(V2_PATH) + 1] in ("", "/")


def is_reserved(path: str) -> bool:
    """Whether only the server's own routes can be at a path, and no custom handler of a model."""
    return path.startswith(tuple(f"{prefix}/" for prefix in _RESERVED)) or path in _RESERVED


def is_of_cluster(path: str) -> bool:
    """Whether a path that no route has may be one of the store's cluster, where requests go on to it.

    Below the sidecar's own paths nothing is. Of those an index may have the names `v2` and `generate-stream`.
    """
    return not (path.startswith(tuple(f"{prefix}/" for prefix in _NEVER_OF_CLUSTER)) or path in _NEVER_OF_CLUSTER)


def may_have_route(path: str) -> bool:
    """Whether a route of the sidecar may be at a path; all others are the cluster's, or a custom handler's."""
    return path in ("/", METRICS_PATH) or path.startswith(BASE_PATH) or not is_of_cluster(path)


def has_plain_errors(path: str) -> bool:
    """Whether errors at a path are `{"error": "<reason>"}`, as model servers have them, in place of OpenSearch's."""
    return is_v2(path) or path.startswith(GENERATE_STREAM_PATH)
