"""A cluster behind the front door, in memory: it notes what it is sent, and responds as it is told."""

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Receive, Send

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.rest_handlers.callers import Scope
from tests.recording_gate import RecordingGate


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as the cluster gets it."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class ScriptedCluster:
    """Responds to every request with `status` and `response`; to one that is fetched as well, unless it has `error`."""

    status: int = 200
    response: Any = field(default_factory=lambda: {"of": "cluster"})
    error: MLStreamError | None = None
    sent: list[Sent] = field(default_factory=list)
    fetched: list[tuple[str, bytes]] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.sent.append(Sent(scope["method"], scope["path"], scope["query_string"].decode(), headers, body))
        head = [(b"content-type", b"application/json"), (b"vary", b"Accept"), (b"Referrer-Policy", b"origin")]
        await send({"type": "http.response.start", "status": self.status, "headers": head})
        await send({"type": "http.response.body", "body": json.dumps(self.response).encode()})

    async def fetch(self, scope: Scope, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Return status and response."""
        self.fetched.append((path, body))
        if self.error is not None:
            raise self.error
        return self.status, self.response if isinstance(self.response, bytes) else json.dumps(self.response).encode()

    @property
    def lines(self) -> list[str]:
        """Method and path of each request that was sent on."""
        return [f"{request.method} {request.path}" for request in self.sent]


class PassingRecordingGate(RecordingGate):
    """Lets requests go on without the header `authorization`, and notes each as the action `pass`."""

    async def admit_to_cluster(self, scope: Scope) -> Scope:
        """Return the request without its login."""
        await self.admit(scope, "pass")
        return {**scope, "headers": [pair for pair in scope["headers"] if pair[0] != b"authorization"]}


class ScriptedKinds:
    """Models whose ids begin with `local` are local; those that were asked about are known. Others are not stored."""

    def __init__(self, error: MLStreamError | None = None) -> None:
        self.asked: list[frozenset[str]] = []
        self._known: dict[str, bool] = {}
        self._error = error

    def known(self, model_id: str) -> bool | None:
        """Whether the model is local."""
        return self._known.get(model_id)

    async def local_among(self, model_ids: Collection[str]) -> frozenset[str]:
        """Return the local ones."""
        self.asked.append(frozenset(model_ids))
        if self._error is not None:
            raise self._error
        self._known |= {model_id: model_id.startswith("local") for model_id in model_ids}
        return frozenset(model_id for model_id in model_ids if model_id.startswith("local"))
