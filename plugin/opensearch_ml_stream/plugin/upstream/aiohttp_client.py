"""Upstream on aiohttp: for HTTP proxies, and for servers that the native client has trouble with."""

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from io import BytesIO
from ssl import SSLContext

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.http_exceptions import ContentEncodingError
from multidict import CIMultiDict
from yarl import URL

from opensearch_ml_stream.connectors.documents import ClientConfig
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.rendering.action import ProviderRequest
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.upstream import Sink, network_errors, pump_by_reading
from opensearch_ml_stream.plugin.upstream.addresses import AddressPolicy, Resolver
from opensearch_ml_stream.plugin.upstream.connection_limiter import ConnectionLimiter
from opensearch_ml_stream.plugin.upstream.http1.request_bytes import provider_headers
from opensearch_ml_stream.plugin.upstream.proxies import proxy_for
from opensearch_ml_stream.plugin.upstream.target import Target, parse_target
from opensearch_ml_stream.plugin.upstream.tls import TLSContexts, tls_key

MAX_HEADER_BYTES = 64 * 1024
READ_BUFFER_BYTES = 64 * 1024


class AiohttpResponse:
    """A response whose head has been received; see UpstreamResponse."""

    __slots__ = ("_authority", "_read_timeout", "_response", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse, authority: str, read_timeout: float) -> None:
        self._response = response
        self._authority = authority
        self._read_timeout = read_timeout
        self.status = response.status
        self.headers: Mapping[str, str] = {
            name.lower(): ", ".join(response.headers.getall(name)) for name in response.headers
        }

    async def read(self) -> bytes:
        """See UpstreamResponse.read."""
        try:
            return await self._response.content.readany()
        except TimeoutError:
            raise network_errors.read_timed_out(self._authority, self._read_timeout) from None
        except ContentEncodingError:
            coding = self.headers.get("content-encoding", "")
            raise network_errors.undecodable(self._authority, coding) from None
        except (aiohttp.ClientError, OSError):
            raise network_errors.closed_in_the_middle(self._authority) from None

    async def pump(self, sink: Sink) -> bool:
        """See UpstreamResponse.pump."""
        return await pump_by_reading(self.read, sink)


class AiohttpUpstream:
    """One session for all providers: connections are reused where host and TLS are the same."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        live: LiveSettings,
        resolver: Resolver,
        contexts: TLSContexts,
        proxies: Mapping[str, str],
    ) -> None:
        self._session = session
        self._proxies = proxies
        self._live = live
        self._resolver = resolver
        self._contexts = contexts
        self._limiter = ConnectionLimiter()

    @asynccontextmanager
    async def open(
        self, request: ProviderRequest, config: ClientConfig, tls: Mapping[str, str], pool_key: str = ""
    ) -> AsyncIterator[AiohttpResponse]:
        """See Upstream.open."""
        target = parse_target(request.url)
        proxy = proxy_for(request.url, self._proxies)
        await self._check_address(request.url, target, proxy)
        context = await self._contexts.get(tls_key(config, tls)) if target.scheme == "https" else None
        await self._limiter.acquire(pool_key, config.max_connection, config.connection_timeout)
        try:
            response = await self._send(request, target, config, context, proxy)
            del request  # a prompt may be large, and its response long
            try:
                yield AiohttpResponse(response, target.authority, config.read_timeout)
            finally:
                response.close()  # keeps a connection whose response has ended, aborts any other
        finally:
            self._limiter.release(pool_key, config.max_connection)

    async def _check_address(self, url: str, target: Target, proxy: str | None) -> None:
        try:
            addresses = await self._resolver.resolve(target.host)
        except UpstreamError:
            if proxy is None:
                raise
            return  # a name that only the proxy's DNS knows
        AddressPolicy.of(self._live.current).check(target.host, addresses, url)

    async def _send(
        self,
        request: ProviderRequest,
        target: Target,
        config: ClientConfig,
        context: SSLContext | None,
        proxy: str | None,
    ) -> aiohttp.ClientResponse:
        authority = target.authority
        try:
            return await self._session.request(
                request.method,
                URL(f"{target.scheme}://{target.host_header}{target.path}", encoded=True),
                headers=CIMultiDict(provider_headers(request, target)),
                data=BytesIO(request.body) if request.body else None,  # as a file: aiohttp sends it in pieces
                ssl=context if context is not None else True,
                timeout=aiohttp.ClientTimeout(sock_connect=config.connection_timeout, sock_read=config.read_timeout),
                allow_redirects=False,
                proxy=proxy,
            )
        except aiohttp.ConnectionTimeoutError:
            raise network_errors.connect_timed_out(authority, config.connection_timeout) from None
        except TimeoutError:
            raise network_errors.read_timed_out(authority, config.read_timeout) from None
        except aiohttp.ClientConnectorCertificateError as error:
            raise network_errors.unreachable(authority, error.certificate_error) from None  # type: ignore[arg-type]
        except aiohttp.ClientConnectorError as error:
            raise network_errors.unreachable(authority, error.os_error) from None
        except aiohttp.ClientResponseError:
            raise network_errors.not_http(authority, "the head cannot be read") from None
        except (aiohttp.ClientError, OSError):
            raise network_errors.closed_early(authority) from None


@asynccontextmanager
async def open_aiohttp(
    live: LiveSettings, resolver: Resolver, contexts: TLSContexts, proxies: Mapping[str, str]
) -> AsyncIterator[AiohttpUpstream]:
    """Open an Upstream on aiohttp. `proxies` as for `proxy_for`."""
    connector = aiohttp.TCPConnector(limit=0, resolver=_CheckedResolver(resolver), use_dns_cache=False)
    async with aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=("User-Agent", "Content-Type", "Accept-Encoding", "Accept"),
        max_line_size=MAX_HEADER_BYTES,
        max_field_size=MAX_HEADER_BYTES,
        read_bufsize=READ_BUFFER_BYTES,
    ) as session:
        yield AiohttpUpstream(session, live, resolver, contexts, proxies)


class _CheckedResolver(AbstractResolver):
    """Resolves for aiohttp to the addresses that `open` has checked; a proxy's own host is not checked."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        try:
            addresses = await self._resolver.resolve(host)
        except UpstreamError as error:
            raise OSError(None, error.reason) from None
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        """Do nothing: the resolver is closed by its owner."""
