"""Opens the gate that the setting `opensearch_ml_stream.security` asks for."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.plugin.background_task import running_beside
from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.security.lockouts import Lockouts
from opensearch_ml_stream.plugin.security.own_accounts import has_accounts
from opensearch_ml_stream.plugin.security.own_gate import OwnAccounts
from opensearch_ml_stream.plugin.security.presented_credentials import presented_credentials
from opensearch_ml_stream.plugin.security.start_rules import needs_login
from opensearch_ml_stream.plugin.store import Store
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller, Gate, OpenGate, Scope

LOOK_SECONDS = 0.8
WATCH_SECONDS = 1.0

log = logging.getLogger(__name__)


class OwnGate:
    """Lets in the users and keys of the sidecar's own, and everyone while there are none.

    `is_closed` is whether there are, None while the store has not said so yet.
    """

    def __init__(self, accounts: OwnAccounts, store: Store, *, is_closed: bool | None) -> None:
        self._accounts = accounts
        self._store = store
        self.is_closed = is_closed

    @property
    def asks_for_login(self) -> bool:
        """Whether nobody is let in without credentials; False while that is not known."""
        return self.is_closed is True

    async def admit(self, scope: Scope, *actions: str) -> Caller:
        """Return the caller; see `Gate.admit`."""
        if self.is_closed is None:
            await self._look()  # or the store's error: nobody is let in unasked
        if not self.is_closed:
            return ANYONE
        return await self._accounts.admit(presented_credentials(scope["headers"]), *actions)

    async def look_for_accounts(self) -> None:
        """Close the gate if the store has an account, for as long as this process runs.

        While the store does not respond nothing changes: nobody can add an account then.
        """
        with suppress(MLStreamError, TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await self._look()
        if self.is_closed:
            log.info("Callers log in: this sidecar has users or keys of its own")

    async def _look(self) -> None:
        found = await has_accounts(self._store)
        self.is_closed = self.is_closed or found  # never opened again, whichever of two looks ends last


@asynccontextmanager
async def open_gate(security: str, host: str, store: Store, runtime: Path, now: Clock) -> AsyncIterator[Gate]:
    """Open the gate for `auto`, `own` or `none`, of a server that listens on `host`.

    `runtime` is a folder that all workers of the server share.

    With `auto` on loopback everyone is let in until there is an account. From then on, until this process ends, nobody
    is without one: removing the last does not open the gate.
    """
    if security == "none":
        yield OpenGate()
        return
    accounts = OwnAccounts(store, Lockouts(runtime), now)
    gate = OwnGate(accounts, store, is_closed=True if needs_login(security, host) else None)
    if not gate.is_closed:
        await gate.look_for_accounts()
    with closing(accounts):
        async with running_beside(_watch(gate)):
            yield gate


async def _watch(gate: OwnGate) -> None:
    while not gate.is_closed:
        await asyncio.sleep(WATCH_SECONDS)
        await gate.look_for_accounts()
