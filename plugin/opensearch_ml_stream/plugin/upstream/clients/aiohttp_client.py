"""Upstream on aiohttp: for HTTP proxies, and for servers that the native client has trouble with."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from io import BytesIO
from ssl import SSLContext

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from multidict import CIMultiDict
from yarl import URL

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.upstream import Sink, UpstreamResponse, network_errors, pump_by_reading
from opensearch_ml_stream.plugin.upstream.addresses import AddressPolicy, Resolver, literal_address
from opensearch_ml_stream.plugin.upstream.clients.connection_limiter import ConnectionLimiter
from opensearch_ml_stream.plugin.upstream.http1.content_coding import decoded
from opensearch_ml_stream.plugin.upstream.http1.request_bytes import provider_headers
from opensearch_ml_stream.plugin.upstream.proxies import proxy_for
from opensearch_ml_stream.plugin.upstream.target import Target, parse_target
from opensearch_ml_stream.plugin.upstream.tls import TLSContexts, tls_key

MAX_HEADER_BYTES = 64 * 1024
READ_BUFFER_BYTES = 64 * 1024
# One is in use, and one for each address policy that was in force before: an operator changes it now and then.
MAX_SESSIONS = 16


class AiohttpResponse:
    """A response whose head has been received; see UpstreamResponse."""

    __slots__ = ("_authority", "_failure", "_read_timeout", "_response", "_silence", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse, authority: str, read_timeout: float) -> None:
        self._response = response
        self._authority = authority
        self._read_timeout = read_timeout
        self._silence: float | None = None  # if it is less than `read_timeout`
        self._failure: UpstreamError | None = None
        self.status = response.status
        self.headers: Mapping[str, str] = {
            name.lower(): ", ".join(response.headers.getall(name)) for name in response.headers
        }

    async def read(self) -> bytes:
        """See UpstreamResponse.read."""
        if self._failure is not None:
            raise self._failure
        try:
            async with asyncio.timeout(self._silence):
                return await self._response.content.readany()
        except TimeoutError:
            if self._silence is not None:
                raise network_errors.fell_silent(self._authority, self._silence) from None
            raise network_errors.read_timed_out(self._authority, self._read_timeout) from None
        except (aiohttp.ClientError, OSError):
            raise self._broken_off() from None

    async def pump(self, sink: Sink) -> bool:
        """See UpstreamResponse.pump."""
        return await pump_by_reading(self.read, sink)

    def limit_silence(self, seconds: float) -> None:
        """See UpstreamResponse.limit_silence."""
        if seconds < self._read_timeout:
            self._silence = seconds

    def fail(self, error: UpstreamError) -> None:
        """See UpstreamResponse.fail."""
        if not self._response.content.is_eof():
            self._failure = error
            self._response.close()

    def _broken_off(self) -> UpstreamError:
        return self._failure or network_errors.closed_in_the_middle(self._authority)


class AiohttpUpstream:
    """A session for each address policy: connections are reused where host, TLS and policy are the same.

    aiohttp itself asks a session's resolver, which returns addresses that the policy allows and no others: the host is
    not looked up a second time between check and connection.
    """

    def __init__(
        self,
        new_session: Callable[[AbstractResolver], aiohttp.ClientSession],
        live: LiveSettings,
        resolver: Resolver,
        contexts: TLSContexts,
        proxies: Mapping[str, str],
    ) -> None:
        self._new_session = new_session
        self._sessions: dict[AddressPolicy | None, aiohttp.ClientSession] = {}
        self._proxies = proxies
        self._live = live
        self._resolver = resolver
        self._contexts = contexts
        self._limiter = ConnectionLimiter()

    @asynccontextmanager
    async def open(
        self, request: ProviderRequest, config: ClientConfig, tls: Mapping[str, str], pool_key: str = ""
    ) -> AsyncIterator[UpstreamResponse]:
        """See Upstream.open."""
        target = parse_target(request.url)
        proxy = proxy_for(request.url, self._proxies)
        policy = AddressPolicy.of(self._live.current).for_url(request.url)
        await self._check_target(target, policy, proxy)
        key = tls_key(request.url, config, tls)
        context = await self._contexts.get(key) if target.scheme == "https" else None
        await self._limiter.acquire(pool_key, config.max_connection, config.connection_timeout)
        try:
            session = await self._session(policy if proxy is None else None)
            response = await self._send(session, request, target, config, context, proxy)
            del request  # a prompt may be large, and its response long
            try:
                yield decoded(AiohttpResponse(response, target.authority, config.read_timeout), target.authority)
            finally:
                response.close()  # keeps a connection whose response has ended, aborts any other
        finally:
            self._limiter.release(pool_key, config.max_connection)

    async def close(self) -> None:
        """Close all connections."""
        for session in self._sessions.values():
            await session.close()

    async def _check_target(self, target: Target, policy: AddressPolicy, proxy: str | None) -> None:
        """Raise InvalidRequest if the address is not allowed, as far as it is known before the connection.

        Direct calls: an address in the URL, since aiohttp asks no resolver for one. Calls by a proxy: what this
        machine's DNS says; the proxy looks the host up itself, and its own rules decide in the end.
        """
        if proxy is None:
            if (literal := literal_address(target.host)) is not None:
                policy.check(target.host, (literal,))
            return
        policy.check_name(target.host)
        try:
            addresses = await self._resolver.resolve(target.host)
        except UpstreamError:
            return  # a name that only the proxy's DNS knows
        policy.check(target.host, addresses)

    async def _session(self, policy: AddressPolicy | None) -> aiohttp.ClientSession:
        """Return the session of a policy, of None for calls by a proxy: the proxy's own host is not checked."""
        session = self._sessions.get(policy)
        if session is None:
            session = self._sessions[policy] = self._new_session(_CheckedResolver(self._resolver, policy))
            if len(self._sessions) > MAX_SESSIONS:
                await self._sessions.pop(next(iter(self._sessions))).close()
        return session

    async def _send(
        self,
        session: aiohttp.ClientSession,
        request: ProviderRequest,
        target: Target,
        config: ClientConfig,
        context: SSLContext | None,
        proxy: str | None,
    ) -> aiohttp.ClientResponse:
        authority = target.authority
        timeout = aiohttp.ClientTimeout(sock_connect=config.connection_timeout, sock_read=config.read_timeout)
        try:
            # aiohttp forgets its read timeout after an interim response (1xx): a provider could be waited for for ever.
            async with asyncio.timeout(config.connection_timeout + config.read_timeout):
                return await session.request(
                    request.method,
                    URL(f"{target.scheme}://{target.host_header}{target.path}", encoded=True),
                    headers=CIMultiDict(provider_headers(request, target)),
                    data=BytesIO(request.body) if request.body else None,  # as a file: aiohttp sends it in pieces
                    ssl=context if context is not None else True,
                    timeout=timeout,
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
    upstream = AiohttpUpstream(_new_session, live, resolver, contexts, proxies)
    try:
        yield upstream
    finally:
        await upstream.close()


def _new_session(resolver: AbstractResolver) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, resolver=resolver, use_dns_cache=False),
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=("User-Agent", "Content-Type", "Accept-Encoding", "Accept"),
        max_line_size=MAX_HEADER_BYTES,
        max_field_size=MAX_HEADER_BYTES,
        read_bufsize=READ_BUFFER_BYTES,
        auto_decompress=False,  # it would decompress all that one read has brought, in memory and at once
    )


class _CheckedResolver(AbstractResolver):
    """Resolves for aiohttp, to addresses that `policy` allows; to any for a proxy's host, which has no policy."""

    def __init__(self, resolver: Resolver, policy: AddressPolicy | None) -> None:
        self._resolver = resolver
        self._policy = policy

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        try:
            addresses = await self._resolver.resolve(host)
        except UpstreamError as error:
            raise OSError(None, error.reason) from None
        if self._policy is not None:
            self._policy.check(host, addresses)
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
