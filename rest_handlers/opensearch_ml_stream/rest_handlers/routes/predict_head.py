"""What the head of a request for a prediction says: worked out once for all requests with an equal head."""

import re
from collections.abc import Mapping, Set

from starlette.types import Scope

from opensearch_ml_stream.connectors.wire_format import WireFormat
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.base_path import BASE_PATH
from opensearch_ml_stream.rest_handlers.http.body_budget import BodyReservation
from opensearch_ml_stream.rest_handlers.http.requests import (
    LLM_INTERFACE,
    check_query,
    content_coding,
    decoded,
    header,
    is_json,
    query,
    too_large,
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

    `algorithm` is None where the path names none; `wants_compact_json` is of a whole response.
    """

    __slots__ = (
        "_coding", "_is_checked", "_query", "_wires", "actions", "algorithm", "any_host", "is_batch", "is_json",
        "is_stream", "model_id", "wants_compact_json",
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
        self._is_checked = False
        self._coding = content_coding(scope)
        self.wants_compact_json = wants_compact_json(scope, self._query)
        self._wires: dict[bool, WireFormat | None] = {}

    def check_query(self, scope: Scope, accepted: Set[str]) -> None:
        """Raise InvalidRequest for what the query may not say."""
        if not self._is_checked:
            check_query(scope, self._query, accepted)
            self._is_checked = True

    def reserve_body(self, body: bytes, reservation: BodyReservation) -> bytes:
        """Return a body that has come whole, as `read_body` does one that comes in pieces."""
        if len(body) > reservation.max_body_size:
            raise too_large(reservation.max_body_size)
        reservation.add(len(body))
        return decoded(body, self._coding, reservation) if body and self._coding else body

    def wire_format(self, scope: Scope, parameters: Mapping[str, str]) -> WireFormat | None:
        """Return the format of the streamed response; see `wire_format` of requests."""
        is_of_llm = LLM_INTERFACE in parameters  # nothing else of them matters
        if is_of_llm not in self._wires:
            self._wires[is_of_llm] = wire_format(scope, self._query, parameters)
        return self._wires[is_of_llm]


def read_head(scope: Scope, *, any_host: bool) -> PredictHead | None:
    """Return the head of a request for a prediction, of any method; None if the path is not of one."""
    path = _PATTERN.fullmatch(scope["path"])
    return None if path is None else PredictHead(scope, path, any_host=any_host)
