"""ConnectionLimiter: enforces `max_connection`, the number of connections that one connector may use at a time."""

import asyncio
from collections import deque
from dataclasses import dataclass, field

from opensearch_ml_stream.connectors.errors import Throttled


@dataclass(slots=True)
class _Share:
    """One connector's connections in use, and the callers that wait for one."""

    acquired: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)


class ConnectionLimiter:
    """Limits the connections in use by pool key (the connector's id); callers wait first come, first served.

    `acquire` comes before a connection is opened or reused, `release` when its response is left. The limit is an
    argument of both, since it can change while connections are in use.
    """

    def __init__(self) -> None:
        self._shares: dict[str, _Share] = {}

    def acquired(self, pool_key: str) -> int:
        """Return how many connections are in use."""
        share = self._shares.get(pool_key)
        return 0 if share is None else share.acquired

    def try_acquire(self, pool_key: str, limit: int) -> bool:
        """Acquire a connection if one is free and nobody waits for it; return whether it was."""
        share = self._shares.get(pool_key)
        if share is None:
            share = self._shares[pool_key] = _Share()
        if share.acquired >= limit or share.waiting:
            return False
        share.acquired += 1
        return True

    async def acquire(self, pool_key: str, limit: int, wait: float) -> None:
        """Acquire a connection, waiting up to `wait` seconds. Throttled (429) if none was released in that time."""
        if self.try_acquire(pool_key, limit):
            return
        share = self._shares[pool_key]
        turn = asyncio.get_running_loop().create_future()
        share.waiting.append(turn)
        try:
            async with asyncio.timeout(wait):
                await turn
        except TimeoutError:
            self._stop_waiting(pool_key, share, turn)
            raise Throttled(
                f"Connection pool timeout: all {limit} connections of the connector were busy for {wait:g} s. "
                "Raise max_connection or connection_timeout in the connector's client_config, or send less",
                retry_after="1",
                limit="max_connection",
            ) from None
        except asyncio.CancelledError:
            self._stop_waiting(pool_key, share, turn)
            raise

    def release(self, pool_key: str, limit: int) -> None:
        """Release a connection to the caller that has waited longest, unless the limit has shrunk meanwhile."""
        share = self._shares[pool_key]
        share.acquired -= 1
        self._wake_next(share, limit)
        if not share.acquired and not share.waiting:
            del self._shares[pool_key]

    def _stop_waiting(self, pool_key: str, share: _Share, turn: asyncio.Future[None]) -> None:
        if turn in share.waiting:
            share.waiting.remove(turn)
        elif turn.done() and not turn.cancelled():
            # The connection was handed over at the very moment of leaving: it goes to the next caller.
            self.release(pool_key, share.acquired)

    @staticmethod
    def _wake_next(share: _Share, limit: int) -> None:
        while share.waiting and share.acquired < limit:
            turn = share.waiting.popleft()
            if not turn.done():
                share.acquired += 1
                turn.set_result(None)
