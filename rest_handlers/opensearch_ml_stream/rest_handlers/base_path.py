"""The paths of this server: the base path of the API, and which paths its routes stand at."""

from dataclasses import dataclass

BASE_PATH = "/_plugins/_ml"
METRICS_PATH = "/metrics"
_HEALTH_PATH = "/_health"
_PLUGINS_PATH = "/_plugins"


@dataclass(frozen=True, slots=True)
class Paths:
    """Paths with a meaning here: the core's, and those that begin as one `of_extensions`, such as `/v2`.

    At those of them that are `plain`, errors are `{"error": "<reason>"}`, as model servers have them, in place of
    OpenSearch's.
    """

    of_extensions: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()

    def is_reserved(self, path: str) -> bool:
        """Whether only the server's own routes can be at a path, and none that a model brings."""
        return _is_below(path, (_PLUGINS_PATH, *self.of_extensions))

    def is_of_other_server(self, path: str) -> bool:
        """Whether a path that no route has may be one of a server behind this one, where requests go on to it.

        Below the sidecar's own paths nothing is.
        """
        return not _is_below(path, (_HEALTH_PATH, *self.of_extensions))

    def may_have_route(self, path: str) -> bool:
        """Whether a route of the sidecar may be at a path."""
        return path in ("/", METRICS_PATH) or path.startswith(BASE_PATH) or not self.is_of_other_server(path)

    def has_plain_errors(self, path: str) -> bool:
        """Whether errors at a path are plain."""
        return path.startswith(self.plain) and _is_below(path, self.plain)


def _is_below(path: str, beginnings: tuple[str, ...]) -> bool:
    return path in beginnings or path.startswith(tuple(f"{beginning}/" for beginning in beginnings))
