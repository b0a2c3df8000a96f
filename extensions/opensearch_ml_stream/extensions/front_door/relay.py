"""Relays one request to the cluster and its response back, both as streams."""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress

from starlette.types import Message, Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import Unavailable
from opensearch_ml_stream.extensions.front_door.cluster_hosts import ClusterHosts, Host, HostConnection
from opensearch_ml_stream.extensions.front_door.hop_by_hop import Headers, end_to_end, head_lines, trailer_fields
from opensearch_ml_stream.extensions.front_door.request_heads import RequestHeads
from opensearch_ml_stream.plugin.upstream.http1.exchange import Exchange
from opensearch_ml_stream.plugin.upstream.http1.response_head import Head
from opensearch_ml_stream.plugin.upstream.network_errors import BrokenConnection
from opensearch_ml_stream.rest_handlers.http.asgi_extensions import (
    BROKEN,
    HTTP_TRAILERS,
    INFORMATIONAL,
    LONG_REQUEST,
    REQUEST_TRAILERS,
)

# A body of this size is sent when the host has asked for it: one that it refuses must not be sent.
LARGE_BODY_BYTES = 1024 * 1024
CONTINUE_SECONDS = 1.0  # then it is sent anyway (RFC 9110, section 10.1.1)
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})

log = logging.getLogger(__name__)


class ClientGone(Exception):
    """The client disconnected: nobody waits for the response."""


class Relay:
    """One request. `run` it once.

    The request's body is read from the client no faster than the host takes it, the response's from the host no faster
    than the client does. A task of its own sends the body, and then waits for the client to disconnect.
    """

    def __init__(self, hosts: ClusterHosts, heads: RequestHeads, scope: Scope, receive: Receive, send: Send) -> None:
        self._hosts = hosts
        self._heads = heads
        self._head = head = heads.head_of(scope)
        self._receive = receive
        self._send = send
        self._extensions = scope.get("extensions") or {}
        self._kept = b""  # of the body, to be sent again if the first host breaks
        self._more = head.length != 0  # of the body, that is still to be received
        self._expect = head.expects_continue or (head.length or 0) >= LARGE_BODY_BYTES
        self._body_begun = False  # whether a part of the body that is not kept was sent to a host
        self._trailers: Iterable[tuple[bytes, bytes]] = ()  # of the request
        self._gone = False
        self._answered = asyncio.Event()  # by the host: it wants the body, or has begun its response
        self._started = asyncio.Event()  # the response to the client

    async def run(self) -> None:
        """Relay the request. Unavailable if no host responds and nothing has been sent to the client."""
        if self._more and LONG_REQUEST in self._extensions:
            await self._send({"type": LONG_REQUEST})
        try:
            if self._more and not self._expect:
                self._kept = self._part_of(await self._receive())
            await self._try_hosts()
        except ClientGone:
            return

    async def _try_hosts(self) -> None:
        tried: set[Host] = set()
        while True:
            used = await self._hosts.connection(tried)
            host = used.host
            try:
                await self._exchange(used)
            except BrokenConnection as error:
                if not used.is_reused:  # else the host closed it as idle, most often
                    self._hosts.failed(host, error.problem)
                    tried.add(host)
                if not self._may_repeat():
                    raise Unavailable(
                        f"OpenSearch's host {host.authority} broke off: {error.problem}. Whether it has done the "
                        "request is not known"
                    ) from None
            else:
                return

    async def _exchange(self, used: HostConnection) -> None:
        """Do the exchange on one connection; BrokenConnection if it ends before the host has sent a byte."""
        authority, exchange = used.host.authority, used.exchange(self._head.method)
        end = b"" if self._more else self._end_of_body()
        head = self._head.for_host(authority, expect=self._more and self._expect)
        exchange.begin(head + self._framed(self._kept) + end)
        upload = used.connection.loop.create_task(self._upload(exchange))
        try:
            response = await self._final_head(exchange, authority)
            self._hosts.responded(used.host)
            await self._respond(exchange, response)
        except BrokenConnection as error:
            if self._gone:
                raise ClientGone from None
            if self._started.is_set():
                log.warning("OpenSearch's host %s broke off inside a response: %s", authority, error.problem)
                await self._break_off(error)
            elif exchange.bytes_received:
                raise _not_http(authority, error.problem) from None
            else:
                raise
        finally:
            upload.cancel()
            # On a connection that waits for the rest of a body the next request would be taken for it.
            self._hosts.release(used, exchange.reusable and not self._more)

    def _may_repeat(self) -> bool:
        """Whether the request may be sent to another host: its body is complete, and running it twice does no harm.

        A host that has not asked for the body has not run the request.
        """
        return not self._body_begun and (self._head.method in _SAFE_METHODS or (self._more and self._expect))

    async def _upload(self, exchange: Exchange) -> None:
        """Send what is left of the body, then wait until the client disconnects, and end the exchange."""
        try:
            if self._more and self._expect and not await self._may_continue(exchange):
                await self._started.wait()  # to receive before would tell the client to send the body
            while self._more and exchange.status < 400:
                self._body_begun = True
                data = self._framed(self._part_of(await self._receive()))
                if not self._more:
                    data += self._end_of_body()
                exchange.write(data)
                await exchange.drain()
            while (await self._receive())["type"] != "http.disconnect":
                pass  # the rest of a body that the host has refused
        except ClientGone:
            pass
        except BrokenConnection:
            return  # whoever reads the response notices it too
        except Exception:
            exchange.abort()  # else the exchange would wait for a response to half a request
            raise
        self._gone = True
        exchange.abort()

    async def _may_continue(self, exchange: Exchange) -> bool:
        """Wait until the host asks for the body, or for a while; return whether it has not refused the request."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CONTINUE_SECONDS):
                await self._answered.wait()
        return not exchange.status

    def _part_of(self, message: Message) -> bytes:
        """Return the part of the body in a message. ClientGone if it says so."""
        if message["type"] == "http.disconnect":
            raise ClientGone
        self._more = message.get("more_body", False)
        self._trailers = message.get(REQUEST_TRAILERS, ())
        body: bytes = message.get("body", b"")
        return body

    def _framed(self, data: bytes) -> bytes:
        return b"%x\r\n%b\r\n" % (len(data), data) if data and self._head.length is None else data

    def _end_of_body(self) -> bytes:
        if self._head.length is not None:
            return b""
        return b"0\r\n%b\r\n" % head_lines(self._heads.trailers_of(self._trailers))

    async def _final_head(self, exchange: Exchange, authority: str) -> Head:
        """Return the final head, and pass on interim ones; `100 Continue` is the server's to send."""
        while True:
            head = await exchange.next_head()
            if head.status >= 600:
                raise _not_http(authority, f"status {head.status} was not asked for")
            if head.status >= 200 or head.status == 100:
                self._answered.set()
            if head.status >= 200:
                return head
            if head.status != 100 and INFORMATIONAL in self._extensions:
                headers = _without_length(head)
                await self._send({"type": INFORMATIONAL, "status": head.status, "headers": headers})

    async def _respond(self, exchange: Exchange, head: Head) -> None:
        with_trailers = _is_chunked(head) and not exchange.at_end and HTTP_TRAILERS in self._extensions
        self._started.set()
        start = {"type": "http.response.start", "status": head.status, "headers": _response_headers(head)}
        await self._send({**start, "trailers": True} if with_trailers else start)
        more = True
        while more:
            data = await exchange.read()
            more = bool(data) and not exchange.at_end
            await self._send({"type": "http.response.body", "body": data, "more_body": more})
        if with_trailers:
            await self._send({"type": HTTP_TRAILERS, "headers": trailer_fields(exchange.trailers)})

    async def _break_off(self, error: BrokenConnection) -> None:
        """Break the client's connection, so that it sees that the response is incomplete."""
        if BROKEN not in self._extensions:
            raise error
        await self._send({"type": BROKEN})


def _not_http(authority: str, problem: str) -> Unavailable:
    return Unavailable(f"OpenSearch's host {authority} does not speak HTTP/1.1: {problem}")


def _is_chunked(head: Head) -> bool:
    return "transfer-encoding" in head.headers


def _response_headers(head: Head) -> Headers:
    """Return the headers that go on, with one Content-Length at most, and none beside chunks or with a 204."""
    length = None if _is_chunked(head) or head.status == 204 else head.headers.get("content-length")
    headers = _without_length(head)
    if length is not None:
        headers.append((b"content-length", length.partition(",")[0].strip().encode()))
    return headers


def _without_length(head: Head) -> Headers:
    fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in head.fields]
    return [pair for pair in end_to_end(fields) if pair[0] != b"content-length"]
