"""Requests that are forwarded to the cluster: who may send them, and how they are relayed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import quote

from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError, Unavailable
from opensearch_ml_stream.extensions.front_door.cluster_hosts import ClusterHosts, Host, HostConnection
from opensearch_ml_stream.extensions.front_door.relay import Relay
from opensearch_ml_stream.extensions.front_door.request_heads import RequestHead, RequestHeads
from opensearch_ml_stream.plugin.security.caller_headers import trusted_proxy
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.store.cluster_url import read_cluster_url
from opensearch_ml_stream.plugin.store.opensearch_tls import store_tls, without_credentials
from opensearch_ml_stream.plugin.upstream.network_errors import BrokenConnection
from opensearch_ml_stream.rest_handlers.callers import PassingGate
from opensearch_ml_stream.rest_handlers.http.host_and_origin import security_headers
from opensearch_ml_stream.rest_handlers.http.requests import header
from opensearch_ml_stream.rest_handlers.http.responses import error_response

MAX_FETCHED_BYTES = 16 * 1024 * 1024
FETCH_SECONDS = 30.0
_PATH = "/%:@!$&'()*+,;=-._~"  # what RFC 3986 allows in a path


class FrontDoor:
    """Relays requests to the cluster: with the caller's credentials, never the store's."""

    def __init__(self, hosts: ClusterHosts, heads: RequestHeads) -> None:
        self._hosts = hosts
        self._heads = heads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the request to the cluster as it came, and its response back as it is; 503 if no host responds."""
        try:
            await Relay(self._hosts, self._heads, scope, receive, send).run()
        except MLStreamError as error:
            await error_response(Request(scope), error)(scope, receive, send)

    async def fetch(self, scope: Scope, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """GET a path of the cluster, maybe with a query, with the credentials of that request's caller.

        Return status and body (JSON as OpenSearch has it). Unavailable if no host responds within FETCH_SECONDS, or
        the response is larger than MAX_FETCHED_BYTES.
        """
        head = self._heads.fetch_head(scope, path, body)
        tried: set[Host] = set()
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                while True:
                    used = await self._hosts.connection(tried)
                    try:
                        return await self._fetch(used, head, body)
                    except BrokenConnection as error:
                        if not used.is_reused:
                            self._hosts.failed(used.host, error.problem)
                            tried.add(used.host)
        except TimeoutError:
            raise Unavailable(f"OpenSearch did not respond within {FETCH_SECONDS:g} s; check its load") from None

    async def _fetch(self, used: HostConnection, head: RequestHead, body: bytes) -> tuple[int, bytes]:
        exchange = used.exchange(head.method)
        exchange.begin(head.for_host(used.host.authority, expect=False) + body)
        try:
            while (response := await exchange.next_head()).status < 200:
                pass
            self._hosts.responded(used.host)
            parts, size = [], 0
            while data := await exchange.read():
                parts.append(data)
                size += len(data)
                if size > MAX_FETCHED_BYTES:
                    raise Unavailable(f"OpenSearch's response is larger than {MAX_FETCHED_BYTES} bytes")
            return response.status, b"".join(parts)
        finally:
            self._hosts.release(used, exchange.reusable)


class ClusterRequests:
    """The ASGI application of all requests that go on to the cluster."""

    def __init__(self, door: FrontDoor, gate: PassingGate) -> None:
        self._door = door
        self._gate = gate
        self._open = 0
        self._all_done = asyncio.Event()
        self._all_done.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the request on, if its caller may, and its response back."""
        try:
            admitted = dict(await self._gate.admit_to_cluster(scope))
        except MLStreamError as error:
            await error_response(Request(scope), error)(scope, receive, send)
            return
        self._open += 1
        self._all_done.clear()
        try:
            await self._door(admitted, receive, _with_security_headers(scope, send) if _is_browser(scope) else send)
        finally:
            self._open -= 1
            if not self._open:
                self._all_done.set()

    async def drain(self, seconds: float) -> None:
        """Wait at most so long for forwarded requests, when the server stops."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._all_done.wait()

    async def fetch(self, scope: Scope, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Return what the cluster responds to the caller of a request; see `FrontDoor.fetch`.

        Errors are those of the gate, and Unavailable.
        """
        return await self._door.fetch(dict(await self._gate.admit_to_cluster(scope)), path, body)


def _is_browser(scope: Scope) -> bool:
    """Whether a browser shows the response to its user or to a page; other clients get it as it is."""
    names = {name for name, _ in scope["headers"]}
    return b"origin" in names or b"sec-fetch-site" in names or "text/html" in header(scope, b"accept").lower()


def _with_security_headers(scope: Scope, send: Send) -> Send:
    added = security_headers(scope)
    replaced = {name for name, _ in added} - {b"vary"}

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [pair for pair in message.get("headers", ()) if pair[0].lower() not in replaced]
            message = {**message, "headers": [*kept, *added]}
        await send(message)

    return send_with_headers


@asynccontextmanager
async def open_door(settings: Settings) -> AsyncIterator[FrontDoor]:
    """Open the front door to the cluster of `settings.store`; nothing is sent yet.

    InvalidRequest if the store is no cluster, or its URL cannot be read.
    """
    if not settings.store.startswith(("http://", "https://")):
        raise InvalidRequest("The front door (pass_through) needs an OpenSearch store: --store http(s)://host:port")
    cluster = read_cluster_url(settings.store)
    tls = store_tls(without_credentials(dict(cluster.options))) if cluster.scheme == "https" else None
    hosts = ClusterHosts(cluster.hosts, tls)
    prefix = f"/{quote(cluster.path, safe=_PATH)}" if cluster.path else ""
    try:
        yield FrontDoor(hosts, RequestHeads(prefix.encode("ascii"), trusted_proxy(settings), _identity(settings)))
    finally:
        hosts.close()


def _identity(settings: Settings) -> frozenset[bytes]:
    names = (settings.proxy_auth_user_header, settings.proxy_auth_roles_header)
    return frozenset(name.lower().encode() for name in names if name)
