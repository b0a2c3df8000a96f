"""Resource endpoint: a path of the management API as data, and how a request to one becomes a response.

The words are those of OpenAPI: a path has one operation for each HTTP method, an operation has query parameters and
a request body.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.rest_handlers.base_path import BASE_PATH
from opensearch_ml_stream.rest_handlers.callers import Caller, Gate
from opensearch_ml_stream.rest_handlers.http import yaml_text
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyMemory, BodyReservation
from opensearch_ml_stream.rest_handlers.http.exception_handlers import method_not_allowed
from opensearch_ml_stream.rest_handlers.http.requests import (
    check_query,
    header,
    is_json,
    is_yaml,
    json_body,
    query,
    read_body,
    read_flag,
)
from opensearch_ml_stream.rest_handlers.http.responses import json_response
from opensearch_ml_stream.rest_handlers.operation_description import FLAG, OperationDescription, Schema, summary_of


class RequestBody(Enum):
    """Whether an operation has a request body. One that has none ignores what it is sent."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A request as an operation sees it; `body` is empty where there is none. `scope` is the request as it came."""

    caller: Caller
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Mapping[str, Any]
    dashboards: bool
    scope: Scope = field(default_factory=dict, repr=False)

    @property
    def id(self) -> str:
        """The `{id}` of the path."""
        return self.path["id"]

    def flag(self, name: str) -> bool:
        """Return a boolean query parameter, False if it is absent; InvalidRequest if it is neither true nor false."""
        return read_flag(self.query.get(name, "false"))


@dataclass(frozen=True, slots=True)
class Entry:
    """What every request goes through: the gate that lets its caller in, and the budget of its body.

    `cluster` takes methods that a path does not have, where requests go on to ML Commons in the store's cluster.
    """

    gate: Gate
    bodies: BodyMemory
    cluster: ASGIApp | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """What one HTTP method of a path does, and the action that its caller must be allowed.

    `parameters` are its query parameters beside those of all routes: flags. `other_parameters` are those that are no
    flags, with their schemas. `schema` is that of its request body. The
    first line of the handler's docstring is the summary in the OpenAPI document.
    """

    handle: Callable[[ParsedRequest], Awaitable[Mapping[str, Any]]]
    action: str
    request_body: RequestBody = RequestBody.NONE
    parameters: frozenset[str] = field(default_factory=frozenset)
    schema: Schema = field(default_factory=lambda: {"type": "object"})
    other_parameters: Mapping[str, Schema] = field(default_factory=dict)

    def describe(self) -> OperationDescription:
        """Return what the OpenAPI document says of it."""
        return OperationDescription(
            summary_of(self.handle),
            {**dict.fromkeys(self.parameters, FLAG), **self.other_parameters},
            None if self.request_body is RequestBody.NONE else self.schema,
            self.request_body is RequestBody.REQUIRED,
        )


class _ResourceEndpoint:
    """The ASGI endpoint of one path."""

    def __init__(self, operations: Mapping[str, Operation], entry: Entry) -> None:
        self._operations = operations
        self._entry = entry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        operation = self._operations.get(request.method)
        if operation is None and self._entry.cluster is not None and request.method != "OPTIONS":
            await self._entry.cluster(scope, receive, send)
            return
        if operation is None:
            response = method_not_allowed(request, sorted(self._operations))
        else:
            caller = await self._entry.gate.admit(scope, operation.action)
            with BodyReservation(self._entry.bodies) as reservation:
                response = await self._respond(request, operation, caller, reservation)
        await response(scope, receive, send)

    def describe(self) -> Mapping[str, OperationDescription]:
        """Return what the OpenAPI document says of each method."""
        return {method: operation.describe() for method, operation in self._operations.items()}

    async def _respond(
        self, request: Request, operation: Operation, caller: Caller, reservation: BodyReservation
    ) -> Response:
        parsed = await self._parse(request, operation, caller, reservation)
        try:
            return json_response(request, await operation.handle(parsed))
        except RecursionError:  # what reads a body level by level needs more than the parser did
            raise jsontext.too_deep() from None

    async def _parse(
        self, request: Request, operation: Operation, caller: Caller, reservation: BodyReservation
    ) -> ParsedRequest:
        check_ids(request.path_params)
        query_parameters = query(request.scope)
        check_query(request.scope, query_parameters, operation.parameters | operation.other_parameters.keys())
        for name in operation.parameters & query_parameters.keys():
            read_flag(query_parameters[name])
        data = await read_body(request.scope, request.receive, reservation)
        # A web page can send a POST with any query to a foreign server, but none whose content type is JSON.
        is_like_body = bool(data) or (request.method == "POST" and "source" in query_parameters)
        if is_like_body and operation.request_body is not RequestBody.NONE:
            data = json_body(request.scope, data)
        return ParsedRequest(
            caller=caller,
            path=request.path_params,
            query=query_parameters,
            body=_parse_body(data or _body_in_query(query_parameters), operation.request_body),
            dashboards="OpenSearch Dashboards" in header(request.scope, b"user-agent"),
            scope=request.scope,
        )


def resource_routes(path: str, operations: Mapping[str, Operation], entry: Entry) -> list[Route]:
    """Return the routes of a path below the base path; OpenSearch takes each with a slash at its end, too."""
    endpoint = _ResourceEndpoint(operations, entry)
    return [Route(BASE_PATH + path, endpoint), Route(BASE_PATH + path + "/", endpoint)]


def _body_in_query(query_parameters: Mapping[str, str]) -> bytes:
    """Return the body in the parameter `source`, for clients that cannot send one with a GET."""
    if "source" not in query_parameters:
        return b""
    body = query_parameters["source"].encode("utf-8", "surrogateescape")
    content_type = query_parameters.get("source_content_type", "")
    if is_yaml(content_type):
        return yaml_text.to_json(body)
    if not is_json(content_type):
        raise InvalidRequest("The parameter [source] needs [source_content_type], and it must be application/json")
    return body


def _parse_body(data: bytes, request_body: RequestBody) -> Mapping[str, Any]:
    if request_body is RequestBody.NONE or (request_body is RequestBody.OPTIONAL and not data.strip()):
        return {}
    try:
        body = jsontext.load_object(data, written_numbers=True)
        jsontext.dumps(body).encode()  # what cannot be written again cannot be stored
    except RecursionError:
        raise jsontext.too_deep() from None
    except UnicodeEncodeError:
        raise InvalidRequest("The request body holds half of a surrogate pair", type="parse_exception") from None
    return body


def check_ids(path_parameters: Mapping[str, Any]) -> None:
    """Raise InvalidRequest for `.` and `..`: in the URLs of an OpenSearch store they would change the path."""
    if not {".", ".."}.isdisjoint(path_parameters.values()):
        raise InvalidRequest("An id cannot be [.] or [..]")
