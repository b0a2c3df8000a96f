"""An OpenSearch in memory, on a port and in threads of its own, which can be given a fault.

    with fake_opensearch() as cluster:
        ...                         # --store cluster.url
        cluster.fault = read_only   # a function from a request to the response in its place, None to respond as ever
        with cluster.away(): ...    # nobody listens, and open connections break

It knows what the sidecar's store sends: documents by id, searches (which find every document), and no more.
"""

import itertools
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Response = tuple[int, Any]  # status and JSON


@dataclass(frozen=True, slots=True)
class StoreRequest:
    """`index` and `id` are empty where the path has none."""

    method: str
    index: str
    action: str
    id: str
    query: dict[str, str]
    body: Any

    @property
    def writes(self) -> bool:
        return self.method in ("PUT", "DELETE") or (self.method == "POST" and self.action == "_doc")


Fault = Callable[[StoreRequest], Response | None]


@dataclass(slots=True)
class FakeOpenSearch:
    """The cluster; `fault` may be set at any time."""

    fault: Fault | None = None
    requests: list[StoreRequest] = field(default_factory=list)
    port: int = 0
    _documents: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _server: ThreadingHTTPServer | None = None
    _sockets: set[socket.socket] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        cluster = self

        class Handler(_Handler):
            def setup(self) -> None:
                super().setup()
                self.cluster = cluster
                cluster._sockets.add(self.connection)

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()
        for connection in self._sockets:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._sockets.clear()

    @contextmanager
    def away(self) -> Iterator[None]:
        self.stop()
        try:
            yield
        finally:
            self.start()

    def forget_everything(self) -> None:
        """As somebody does who deletes the indices."""
        self._documents.clear()

    def respond(self, request: StoreRequest) -> Response:
        self.requests.append(request)
        if self.fault is not None and (response := self.fault(request)) is not None:
            return response
        with self._lock:
            return self._respond(request)

    def _respond(self, request: StoreRequest) -> Response:
        if not request.index:
            return 200, {"version": {"number": "3.6.0"}}
        if request.index == "_plugins":  # it has none, the security plugin neither
            return 400, {
                "error": f"no handler found for uri [/_plugins/{request.action}] and method [{request.method}]"
            }
        if request.index == "_cluster":
            return 200, {"persistent": {}, "transient": {}}
        documents = self._documents.get(request.index)
        if not request.action:
            if request.method == "PUT":
                self._documents.setdefault(request.index, {})
            return (200, {}) if request.method == "PUT" or documents is not None else (404, {})
        if request.action == "_search":
            hits = [{"_id": id, **stored} for id, stored in (documents or {}).items()]
            return 200, {"hits": {"total": {"value": len(hits), "relation": "eq"}, "hits": hits}}
        if documents is None:
            return error(404, "index_not_found_exception", f"no such index [{request.index}]")
        return self._respond_to_document(request, documents)

    def _respond_to_document(self, request: StoreRequest, documents: dict[str, dict[str, Any]]) -> Response:
        id = request.id or f"made{next(self._numbers)}"
        stored = documents.get(id)
        if request.method == "GET":
            return (200, {"_id": id, "found": True, **stored}) if stored else (404, {"_id": id, "found": False})
        guard = request.query.get("if_seq_no", stored and str(stored["_seq_no"]))
        if (stored and request.query.get("op_type") == "create") or guard != (stored and str(stored["_seq_no"])):
            return error(409, "version_conflict_engine_exception", f"[{id}]: version conflict")
        version = {"_version": 1, "_seq_no": next(self._numbers), "_primary_term": 1}
        if request.method == "DELETE":
            documents.pop(id, None)
        else:
            documents[id] = {**version, "_source": request.body}
        return 200, {"_index": request.index, "_id": id, "result": "created", **version}


def error(status: int, kind: str, reason: str) -> Response:
    """An error as OpenSearch sends it."""
    cause = {"type": kind, "reason": reason}
    return status, {"error": {"root_cause": [cause], **cause}, "status": status}


@contextmanager
def fake_opensearch() -> Iterator[FakeOpenSearch]:
    cluster = FakeOpenSearch()
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.fault = None
        cluster.stop()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cluster: FakeOpenSearch

    def handle(self) -> None:
        with suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        index, action, id = [*[unquote(part) for part in parts.path.strip("/").split("/", 2)], "", ""][:3]
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        data = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        request = StoreRequest(self.command, index, action, id, query, json.loads(data) if data else None)
        status, value = self.cluster.respond(request)
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else text)

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815  # as http.server calls them

    def log_message(self, format: str, *args: Any) -> None:
        pass
