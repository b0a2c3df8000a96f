"""An OpenSearch cluster without a socket: opensearch-py's own client over a connection whose responses are canned."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from opensearchpy import AsyncOpenSearch, Connection, TransportError

from opensearch_ml_stream.plugin.store.opensearch_store import OpenSearchStore

JSON = "application/json; charset=UTF-8"


@dataclass(frozen=True)
class Sent:
    """A request as it would go out."""

    method: str
    path: str
    params: Mapping[str, Any]
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Canned:
    """A response, or the client's own error in place of one."""

    value: Any = None
    status: int = 200
    content_type: str = JSON
    error: TransportError | None = None

    def text(self) -> str:
        return self.value if isinstance(self.value, str) else orjson.dumps(self.value).decode()


@dataclass
class CannedCluster:
    """Gives the queued responses one by one and keeps the requests; indices exist unless `has_index` is false."""

    responses: list[Canned] = field(default_factory=list)
    has_index: bool = True
    sent: list[Sent] = field(default_factory=list)
    closed: bool = False

    def store(self, prefix: str = "") -> OpenSearchStore:
        return OpenSearchStore(self.client(), self.client(), prefix)

    def client(self) -> AsyncOpenSearch:
        return AsyncOpenSearch(
            hosts=[{"host": "cluster.example", "port": 9200}],
            connection_class=connection_to(self),
            max_retries=0,
        )

    def respond(self, request: Sent) -> Canned:
        self.sent.append(request)
        if request.method == "HEAD":
            return Canned("", 200 if self.has_index else 404)
        return self.responses.pop(0)

    def paths(self) -> list[str]:
        return [f"{request.method} {request.path}" for request in self.sent]


def connection_to(cluster: CannedCluster) -> type[Connection]:
    class CannedConnection(Connection):
        async def perform_request(
            self,
            method: str,
            url: str,
            params: Mapping[str, Any] | None = None,
            body: bytes | None = None,
            timeout: float | None = None,  # noqa: ASYNC109  # as opensearch-py calls it
            ignore: Collection[int] = (),
            headers: Mapping[str, str] | None = None,
        ) -> tuple[int, Mapping[str, str], str]:
            canned = cluster.respond(
                Sent(method, url, params or {}, orjson.loads(body) if body else None, headers or {})
            )
            if canned.error is not None:
                raise canned.error
            if not 200 <= canned.status < 300 and canned.status not in ignore:
                self._raise_error(canned.status, canned.text(), canned.content_type)
            return canned.status, {"content-type": canned.content_type}, canned.text()

        async def close(self) -> None:
            cluster.closed = True

    return CannedConnection


def refusal(status: int, kind: str, reason: str, **more: Any) -> Canned:
    """An error as OpenSearch sends it."""
    cause = {"type": kind, "reason": reason}
    return Canned({"error": {"root_cause": [cause], **cause, **more}, "status": status}, status)
