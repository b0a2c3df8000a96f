"""A provider without a socket: an Upstream whose responses are written down in a test."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import orjson

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.upstream import Sink, UpstreamResponse, pump_by_reading

SSE = {"content-type": "text/event-stream"}
JSON = {"content-type": "application/json"}


@dataclass
class Response:
    """A response whose body comes in `parts`; an error among them is where the connection fails."""

    parts: Sequence[bytes | UpstreamError] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    reads: int = 0

    async def read(self) -> bytes:
        if self.reads == len(self.parts):
            return b""
        part = self.parts[self.reads]
        self.reads += 1
        if isinstance(part, UpstreamError):
            raise part
        return part

    async def pump(self, sink: Sink) -> bool:
        return await pump_by_reading(self.read, sink)

    def limit_silence(self, seconds: float) -> None:
        pass

    def fail(self, error: UpstreamError) -> None:
        pass


@dataclass
class Call:
    """One call of the provider, as it was sent."""

    request: ProviderRequest
    config: ClientConfig
    tls: Mapping[str, str]
    pool_key: str
    is_open: bool = True


Script = Callable[[ProviderRequest], Response]


class ScriptedProvider:
    """An Upstream that gives what `script` makes of a request, and keeps the calls."""

    def __init__(self, script: Script | None = None) -> None:
        self.script = script or (lambda request: Response())
        self.calls: list[Call] = []
        self.most_open = 0

    @asynccontextmanager
    async def open(
        self, request: ProviderRequest, config: ClientConfig, tls: Mapping[str, str], pool_key: str = ""
    ) -> AsyncIterator[UpstreamResponse]:
        call = Call(request, config, tls, pool_key)
        self.calls.append(call)
        self.most_open = max(self.most_open, sum(call.is_open for call in self.calls))
        await asyncio.sleep(0)
        try:
            yield self.script(request)
        finally:
            call.is_open = False

    @property
    def bodies(self) -> list[object]:
        return [orjson.loads(call.request.body) for call in self.calls]


def json_response(value: object, status: int = 200, **headers: str) -> Response:
    return Response([orjson.dumps(value)], status, {**JSON, **headers})


def openai_event(text: str) -> bytes:
    return b'data: {"choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n' % text.encode()


OPENAI_END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def openai_stream(*texts: str) -> Response:
    return Response([*[openai_event(text) for text in texts], OPENAI_END], headers=SSE)
