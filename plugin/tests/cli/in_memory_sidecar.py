"""A sidecar in memory for commands, below httpx: it responds by method and path and records every request."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, Usage
from opensearch_ml_stream.connectors.wire_format import NDJSON

BASE = "/_plugins/_ml"
NOT_FOUND = {"error": {"type": "status_exception", "reason": "Failed to find model"}, "status": 404}
ENDING = NDJSON.ending(Ending("stop", "stop", Usage(2, 3), "gpt"), {})


class Body(httpx.SyncByteStream):
    """A body that arrives in pieces; `fault` is raised in place of its end."""

    def __init__(self, pieces: Sequence[bytes], fault: Exception | None = None) -> None:
        self.pieces, self.fault = pieces, fault
        self.closed = False

    def __iter__(self) -> Iterator[bytes]:
        yield from self.pieces
        if self.fault is not None:
            raise self.fault

    def close(self) -> None:
        self.closed = True


@dataclass(slots=True)
class InMemorySidecar:
    """`responses` holds JSON values, streams, responses or exceptions by method and path; the rest is 404."""

    responses: dict[tuple[str, str], Any] = field(default_factory=dict)
    requests: list[httpx.Request] = field(default_factory=list)

    def stream(self, *pieces: bytes, fault: Exception | None = None) -> Body:
        """Set the response to a streamed prediction of the model m1."""
        body = self.responses["POST", "/models/m1/_predict/stream"] = Body(pieces, fault)
        return body

    def handle(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        response = self.responses.get((request.method, _path(request).removeprefix(BASE)))
        if isinstance(response, Exception):
            raise response
        if isinstance(response, httpx.Response):
            return response
        if isinstance(response, Body):
            return httpx.Response(200, stream=response)
        return httpx.Response(404, json=NOT_FOUND) if response is None else httpx.Response(200, json=response)

    def calls(self) -> list[tuple[str, str]]:
        """Return the method and path of each request."""
        return [(request.method, _path(request).removeprefix(BASE)) for request in self.requests]

    def sent(self, number: int) -> Any:
        """Return the JSON body of one request."""
        return json.loads(self.requests[number].content)


def text(*values: str) -> bytes:
    return NDJSON.chunks([Chunk(value) for value in values])


def _path(request: httpx.Request) -> str:
    return request.url.raw_path.decode()  # as it is sent, with its escapes
