"""A HTTPUpstream whose connections are fake transports, each with the responses of its provider."""

from collections.abc import Iterable, Mapping

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.upstream import Upstream, UpstreamResponse
from opensearch_ml_stream.plugin.upstream.addresses import Resolver
from opensearch_ml_stream.plugin.upstream.http1.client import HTTPUpstream
from opensearch_ml_stream.plugin.upstream.http1.connection import Connection
from opensearch_ml_stream.plugin.upstream.http1.pool import Route
from opensearch_ml_stream.plugin.upstream.target import Target
from opensearch_ml_stream.plugin.upstream.tls_contexts import TLSContexts
from tests.upstream.fake_transport import FakeTransport

ADDRESS = "93.184.216.34"
CONFIG = ClientConfig(connection_timeout=10, read_timeout=30)
URL = "http://provider.example/v1/chat"
REQUEST = ProviderRequest("POST", URL, {}, b"{}")
SENT = b"POST /v1/chat HTTP/1.1\r\nHost: provider.example\r\nAccept-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}"
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n[DONE]\r\n"


class ScriptedUpstream(HTTPUpstream):
    """Makes a connection for each script, a list of what is received after each request; then none comes about."""

    def __init__(self, *scripts: Iterable[bytes], settings: Settings | None = None, address: str = ADDRESS) -> None:
        self.live = LiveSettings(settings or Settings())
        super().__init__(self.live, Resolver(), TLSContexts())
        self.transports: list[FakeTransport] = []
        self.connects: list[tuple[Target, Route, float]] = []
        self._scripts = iter(scripts)
        self._address = address

    async def connect(self, target: Target, route: Route, seconds: float) -> Connection:
        self.connects.append((target, route, seconds))
        script = next(self._scripts, None)
        if script is None:
            raise UpstreamError("no connection")
        connection = Connection(self._address)
        transport = FakeTransport(connection, script)
        connection.connection_made(transport)
        self.transports.append(transport)
        return connection


async def read_to_end(response: UpstreamResponse) -> bytes:
    parts = []
    while data := await response.read():
        parts.append(data)
    return b"".join(parts)


async def fetch(
    upstream: Upstream,
    request: ProviderRequest = REQUEST,
    config: ClientConfig = CONFIG,
    tls: Mapping[str, str] | None = None,
    pool_key: str = "connector",
) -> bytes:
    """The whole body of one call."""
    async with upstream.open(request, config, tls or {}, pool_key) as response:
        return await read_to_end(response)
