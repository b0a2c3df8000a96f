"""One path of the management API: its methods, what each may be asked with, and the way from a request to an answer."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.rest_handlers.http.exception_handlers import method_not_allowed
from opensearch_ml_stream.rest_handlers.http.requests import (
    check_content_type,
    check_query,
    header,
    is_json,
    query,
    read_body,
    read_flag,
)
from opensearch_ml_stream.rest_handlers.http.responses import json_response
from opensearch_ml_stream.rest_handlers.paths import BASE_PATH


class Body(Enum):
    NONE = "none"
    OPTIONAL = "optional"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class Call:
    """A request, read: the path's ids, the query, the body (empty where there is none)."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Mapping[str, Any]
    dashboards: bool

    @property
    def id(self) -> str:
        return self.path["id"]

    def flag(self, name: str) -> bool:
        """A parameter that is true or false, absent means false; InvalidRequest for anything else."""
        return read_flag(self.query.get(name, "false"))


@dataclass(frozen=True, slots=True)
class Operation:
    """What one method does. `parameters` are the query parameters that it knows beside the common ones."""

    run: Callable[[Call], Awaitable[Mapping[str, Any]]]
    body: Body = Body.NONE
    parameters: frozenset[str] = field(default_factory=frozenset)


class _Resource:
    """The ASGI endpoint of one path; `max_body_size` in bytes."""

    def __init__(self, operations: Mapping[str, Operation], max_body_size: int) -> None:
        self._operations = operations
        self._max_body_size = max_body_size

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        operation = self._operations.get(request.method)
        if operation is None:
            response = method_not_allowed(request, sorted(self._operations))
        else:
            response = await self._answer(request, operation)
        await response(scope, receive, send)

    async def _answer(self, request: Request, operation: Operation) -> Response:
        _check_ids(request.path_params)
        asked = query(request.scope)
        check_query(request.scope, asked, operation.parameters)
        text = await read_body(request.scope, request.receive, self._max_body_size)
        if text and operation.body is not Body.NONE:
            check_content_type(request.scope)
        call = Call(
            path=request.path_params,
            query=asked,
            body=_body(text or _source(asked), operation.body),
            dashboards="OpenSearch Dashboards" in header(request.scope, b"user-agent"),
        )
        try:
            return json_response(request, await operation.run(call))
        except RecursionError:  # what reads a body level by level needs more than the parser did
            raise jsontext.too_deep() from None


def resource(path: str, operations: Mapping[str, Operation], max_body_size: int) -> list[Route]:
    """The routes of a path below the base path; OpenSearch takes each with a slash at its end, too."""
    endpoint = _Resource(operations, max_body_size)
    return [Route(BASE_PATH + path, endpoint), Route(BASE_PATH + path + "/", endpoint)]


def _source(asked: Mapping[str, str]) -> bytes:
    """The body that stands in the query, for clients that cannot send one with a GET."""
    if "source" not in asked:
        return b""
    if not is_json(asked.get("source_content_type", "")):
        raise InvalidRequest("The parameter [source] needs [source_content_type], and it must be application/json")
    return asked["source"].encode("utf-8", "surrogateescape")


def _body(text: bytes, wanted: Body) -> Mapping[str, Any]:
    if wanted is Body.NONE or (wanted is Body.OPTIONAL and not text.strip()):
        return {}
    try:
        body = jsontext.load_object(text)
        jsontext.dumps(body).encode()  # what cannot be written again cannot be stored
    except RecursionError:
        raise jsontext.too_deep() from None
    except UnicodeEncodeError:
        raise InvalidRequest("The request body holds half of a surrogate pair", type="parse_exception") from None
    return body


def _check_ids(ids: Mapping[str, Any]) -> None:
    """A store that is reached by URLs would take these two for its folders."""
    if not {".", ".."}.isdisjoint(ids.values()):
        raise InvalidRequest("An id cannot be [.] or [..]")
