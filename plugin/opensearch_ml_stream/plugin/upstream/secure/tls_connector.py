"""TLSConnector: opens the TLS connections of a worker, and has what they share."""

import asyncio
import ssl
import time

from opensearch_ml_stream.plugin.upstream.secure.client_handshake import Handshake
from opensearch_ml_stream.plugin.upstream.secure.handshake_turns import HandshakeTurns
from opensearch_ml_stream.plugin.upstream.secure.read_buffers import ReadBuffers
from opensearch_ml_stream.plugin.upstream.secure.record_layer import RecordLayer
from opensearch_ml_stream.plugin.upstream.secure.resumable_sessions import Peer, ResumableSessions
from opensearch_ml_stream.plugin.upstream.secure.tls_transport import TLSTransport
from opensearch_ml_stream.plugin.upstream.target import Target


class TLSConnector:
    """Opens TLS connections, resuming the session of an earlier one where there is one."""

    def __init__(self) -> None:
        self._buffers = ReadBuffers()
        self._turns = HandshakeTurns()
        self._sessions = ResumableSessions(time.monotonic)

    async def open(self, context: ssl.SSLContext, protocol: asyncio.Protocol, address: str, target: Target) -> None:
        """Connect to an address of a target, for whose host the certificate must be. The protocol gets its transport.

        OSError if the connection cannot be opened: ssl.SSLError if it is TLS that fails.
        """
        peer = Peer(context, target.host, target.port)
        session = self._sessions.get(peer)
        try:
            await self._open(protocol, address, peer, session)
        except (ConnectionResetError, ssl.SSLError):
            if session is None:
                raise
            self._sessions.forget(peer)  # whatever the peer did not like, it has accepted connections without it
            await self._open(protocol, address, peer, None)

    async def _open(self, protocol: asyncio.Protocol, address: str, peer: Peer, session: ssl.SSLSession | None) -> None:
        def new_records() -> RecordLayer:
            return RecordLayer(peer.context, peer.host, session)

        def start(tcp: asyncio.Transport, records: RecordLayer, rest: bytes) -> None:
            transport = TLSTransport(tcp, records, self._buffers, protocol, learn)
            transport.start(rest)

        def learn(connection: ssl.SSLObject) -> None:
            self._sessions.learn(peer, connection)

        handshake = Handshake(new_records, self._buffers, self._turns, start)
        try:
            await asyncio.get_running_loop().create_connection(lambda: handshake, address, peer.port)
            await handshake.finished
        except BaseException:
            handshake.abandon()
            raise
