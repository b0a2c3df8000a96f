"""`max_connection`: how many connections one connector may hold at a time, and the wait for a free one."""

import asyncio
from collections import deque
from dataclasses import dataclass, field

from opensearch_ml_stream.connectors.errors import Throttled


@dataclass(slots=True)
class _Share:
    """One connector's: how many are taken, and who waits, first come first served."""

    acquired: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)


class ConnectionLimiter:
    """A slot is taken before a connection is opened or reused, and given back when the response is left."""

    def __init__(self) -> None:
        self._shares: dict[str, _Share] = {}

    def acquired(self, pool_key: str) -> int:
        share = self._shares.get(pool_key)
        return 0 if share is None else share.acquired

    def try_acquire(self, pool_key: str, limit: int) -> bool:
        """Takes a slot if one is free and nobody waits for it."""
        share = self._shares.get(pool_key)
        if share is None:
            share = self._shares[pool_key] = _Share()
        if share.acquired >= limit or share.waiting:
            return False
        share.acquired += 1
        return True

    async def acquire(self, pool_key: str, limit: int, wait: float) -> None:
        """Takes a slot, waiting up to `wait` seconds for one. Throttled (429) says that none came free."""
        if self.try_acquire(pool_key, limit):
            return
        share = self._shares[pool_key]
        turn = asyncio.get_running_loop().create_future()
        share.waiting.append(turn)
        try:
            async with asyncio.timeout(wait):
                await turn
        except TimeoutError:
            self._leave(pool_key, share, turn)
            raise Throttled(
                f"Connection pool timeout: all {limit} connections of the connector were busy for {wait:g} s. "
                "Raise max_connection or connection_timeout in the connector's client_config, or send less",
                retry_after="1",
            ) from None
        except asyncio.CancelledError:
            self._leave(pool_key, share, turn)
            raise

    def release(self, pool_key: str, limit: int) -> None:
        """Frees a slot: the one who waits longest gets it, unless the limit has shrunk meanwhile."""
        share = self._shares[pool_key]
        share.acquired -= 1
        self._hand_on(share, limit)
        if not share.acquired and not share.waiting:
            del self._shares[pool_key]

    def _leave(self, pool_key: str, share: _Share, turn: asyncio.Future[None]) -> None:
        if turn in share.waiting:
            share.waiting.remove(turn)
        elif turn.done() and not turn.cancelled():
            # The slot was handed over in the very moment of leaving: it goes to the next.
            self.release(pool_key, share.acquired)

    @staticmethod
    def _hand_on(share: _Share, limit: int) -> None:
        while share.waiting and share.acquired < limit:
            turn = share.waiting.popleft()
            if not turn.done():
                share.acquired += 1
                turn.set_result(None)
