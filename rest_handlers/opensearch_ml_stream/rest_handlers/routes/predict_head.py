"""What the head of a request for a prediction says: worked out once for all requests with an equal head."""

import re
from collections.abc import Mapping, Set

from starlette.types import Scope

from opensearch_ml_stream.connectors.wire_format import WireFormat
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.base_path import BASE_PATH
from opensearch_ml_stream.rest_handlers.http.requests import (
    LLM_INTERFACE,
    check_query,
    content_coding,
    header,
    is_json,
    query,
    wire_format,
)
from opensearch_ml_stream.rest_handlers.http.responses import wants_compact_json

_PATTERN = re.compile(
    f"{BASE_PATH}/(?:models/([^/]+)/(_predict|_predict/stream|_batch_predict)|_predict/([^/]+)/([^/]+))/?"
)
_OF_STREAMS = (actions.PREDICT_STREAM, actions.PREDICT)
_OF_WHOLE_ONES = (actions.PREDICT,)


class PredictHead:
    """`any_host` is whether the host name was left unchecked, `actions` are those that the caller needs one of.

    `algorithm` is None where the path names none; `coding` is the body's, `is_checked` says of the query that it was
    found good, `wants_compact_json` is of a whole response, `wires` are the formats of a stream.
    """

    __slots__ = (
        "_query", "actions", "algorithm", "any_host", "coding", "is_batch", "is_checked", "is_json", "is_stream",
        "model_id", "wants_compact_json", "wires",
    )  # fmt: skip

    def __init__(self, scope: Scope, path: re.Match[str], *, any_host: bool) -> None:
        self.model_id: str = path[1] or path[4]
        self.algorithm: str | None = path[3]
        self.is_stream = path[2] == "_predict/stream"
        self.is_batch = path[2] == "_batch_predict"
        self.any_host = any_host
        self.actions = _OF_STREAMS if self.is_stream else _OF_WHOLE_ONES
        self.is_json = is_json(header(scope, b"content-type"))
        self._query = query(scope)
        self.is_checked = False
        self.coding = content_coding(scope)
        self.wants_compact_json = wants_compact_json(scope, self._query)
        self.wires = _Wires(scope, self._query)

    def check_query(self, scope: Scope, accepted: Set[str]) -> None:
        """Raise InvalidRequest for what the query may not say."""
        check_query(scope, self._query, accepted)
        self.is_checked = True


class _Wires(dict[bool, WireFormat | None]):
    """The formats of streamed responses, by whether a request has `_llm_interface`; see `wire_format` of requests."""

    __slots__ = ("_headers", "_query")

    def __init__(self, scope: Scope, query: Mapping[str, str]) -> None:
        super().__init__()
        self._headers = {"headers": scope["headers"]}
        self._query = query

    def __missing__(self, is_of_llm: bool) -> WireFormat | None:
        wire = self[is_of_llm] = wire_format(self._headers, self._query, {LLM_INTERFACE: ""} if is_of_llm else {})
        return wire


def read_head(scope: Scope, *, any_host: bool) -> PredictHead | None:
    """Return the head of a request for a prediction, of any method; None if the path is not of one."""
    path = _PATTERN.fullmatch(scope["path"])
    return None if path is None else PredictHead(scope, path, any_host=any_host)
