"""Open the gate that the setting `opensearch_ml_stream.security` selects."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

from opensearch_ml_stream.connectors.errors import MLStreamError, Unavailable
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.security.caller_headers import trusted_proxy
from opensearch_ml_stream.plugin.security.cluster_gate import ClusterGate, unknown_caller
from opensearch_ml_stream.plugin.security.own_gate import LOOK_SECONDS, OwnGate, OwnLogins
from opensearch_ml_stream.plugin.security.start_checks import needs_login, plugin_of
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.store import SecurityPlugin, Store
from opensearch_ml_stream.rest_handlers.callers import Caller, OpenGate, PassingGate, Scope

WATCH_SECONDS = 1.0

log = logging.getLogger(__name__)


class AutoGate:
    """Admits OpenSearch's users if the cluster has the security plugin, else the sidecar's own.

    No caller is admitted before the cluster has answered; the first answer holds from then on.
    """

    def __init__(self, plugin: SecurityPlugin, users_of_cluster: PassingGate, own: OwnGate) -> None:
        self._plugin = plugin
        self._users_of_cluster = users_of_cluster
        self._own = own
        self._chosen: PassingGate | None = None

    @property
    def asks_for_login(self) -> bool:
        """Whether nobody is let in without credentials; False while that is not known."""
        return self._chosen is not None and self._chosen.asks_for_login

    @property
    def is_settled(self) -> bool:
        """Whether nothing can change any more about who decides."""
        return self._chosen is self._users_of_cluster or (self._chosen is not None and self._own.is_closed is True)

    async def admit(self, scope: Scope, *actions: str) -> Caller:
        """Return the caller; see `Gate.admit`."""
        return await (await self._chosen_gate()).admit(scope, *actions)

    async def admit_to_cluster(self, scope: Scope) -> Scope:
        """Return the request; see `PassingGate.admit_to_cluster`."""
        return await (await self._chosen_gate()).admit_to_cluster(scope)

    async def look(self) -> None:
        """Ask the cluster, and where its users do not decide, look for accounts."""
        if self._chosen is None:
            with suppress(MLStreamError, TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._choose()
        if self._chosen is self._own and not self._own.is_closed:
            await self._own.look()

    async def _chosen_gate(self) -> PassingGate:
        if self._chosen is None:
            try:
                await self._choose()
            except Unavailable as error:  # nobody is let in unasked
                raise unknown_caller(error) from None
        assert self._chosen is not None
        return self._chosen

    async def _choose(self) -> None:
        installed = await self._plugin.is_installed()
        if self._chosen is None:
            self._chosen = self._users_of_cluster if installed else self._own
            if installed:
                log.info("Callers log in as users of OpenSearch: the cluster has the security plugin")


@asynccontextmanager
async def open_gate(
    settings: Settings,
    store: Store,
    runtime: Path,
    now: Clock,
    background: BackgroundTasks,
    login_key: bytes | None = None,
) -> AsyncIterator[PassingGate]:
    """Open the gate for the setting `opensearch_ml_stream.security`, of a server that listens on `settings.host`.

    All workers of the server share the folder `runtime` and `login_key`, by which they recognize verified logins.
    InvalidRequest for `opensearch` without a cluster.

    With `auto` the cluster's security plugin decides, if there is one. Otherwise everyone is admitted on loopback until
    there is an account; from then on, until this process ends, an account is needed: removing the last one does not
    open the gate.
    """
    if settings.security == "none":
        yield OpenGate()
        return
    if settings.security == "opensearch":
        yield _users_of_cluster(settings, plugin_of(store))
        return
    accounts = OwnLogins(store, runtime, now, login_key)
    own = OwnGate(accounts, store, is_closed=True if needs_login(settings.security, settings.host) else None)
    gate: OwnGate | AutoGate = own
    if settings.security == "auto" and store.security is not None:
        gate = AutoGate(store.security, _users_of_cluster(settings, store.security), own)

    async def look() -> float | None:
        if not gate.is_settled:
            await gate.look()
        return None if gate.is_settled else WATCH_SECONDS

    wait = await look()
    with closing(accounts):
        if wait is None:
            yield gate
            return
        async with background.running("accounts", look, after=wait):
            yield gate


def _users_of_cluster(settings: Settings, plugin: SecurityPlugin) -> ClusterGate:
    return ClusterGate(plugin, dict(settings.role_permissions), trusted_proxy(settings), settings.store_timeout_seconds)
