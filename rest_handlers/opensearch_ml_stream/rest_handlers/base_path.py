"""The paths of this server: the base path of the API, and which paths its routes stand at."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the clients of the command line read this
    from opensearch_ml_stream.connectors.errors import MLStreamError

BASE_PATH = "/_plugins/_ml"
METRICS_PATH = "/metrics"
_HEALTH_PATH = "/_health"
_PLUGINS_PATH = "/_plugins"


ErrorForm = Callable[["MLStreamError"], bytes]
"""Encodes an error as the body of a response."""


@dataclass(frozen=True, slots=True)
class Paths:
    """Paths with a meaning here: the core's, and those that begin as one `of_extensions`, such as `/v2`.

    Those in `error_forms` have errors of that form, in place of OpenSearch's.
    """

    of_extensions: tuple[str, ...] = ()
    error_forms: Mapping[str, ErrorForm] = field(default_factory=dict)

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

    def error_form(self, path: str) -> ErrorForm | None:
        """Return the form of errors at a path, None for OpenSearch's."""
        if not path.startswith(tuple(self.error_forms)):
            return None
        return next((form for beginning, form in self.error_forms.items() if _is_below(path, (beginning,))), None)


def _is_below(path: str, beginnings: tuple[str, ...]) -> bool:
    return path in beginnings or path.startswith(tuple(f"{beginning}/" for beginning in beginnings))
