"""Checks before a server listens: any address but loopback requires a login."""

import asyncio
import logging
import socket
from contextlib import suppress
from ipaddress import ip_address

from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError, Unavailable
from opensearch_ml_stream.plugin.security.own_accounts import has_accounts
from opensearch_ml_stream.plugin.store import Cluster, SecurityPlugin, Store
from opensearch_ml_stream.rest_handlers.actions import MODEL_SEARCH

LOOK_SECONDS = 3.0

_REFUSED = "ML Commons in the store's cluster refuses a search (%s). %s"
_CANNOT_BE_CHECKED = (
    "Whether ML Commons in the store's cluster can search is not known (%s); with that permission the store's user "
    "finds out at the next start. %s"
)
_CERTIFICATE = (
    "With plugins.security.system_indices.permission.enabled: true each _search and /stats of ML Commons is 403 for "
    "everyone: beside ML Commons leave it false, and log in with an administrator's client certificate (client_cert "
    "in --store; docs/opensearch-users.md, Beside ML Commons)"
)

log = logging.getLogger(__name__)


def needs_login(security: str, host: str) -> bool:
    """Whether nobody may call without an account, even while there is none."""
    return security == "own" or (security == "auto" and not is_loopback(host))


def plugin_of(store: Store) -> SecurityPlugin:
    """Return the security plugin of the store's cluster; InvalidRequest if the store is embedded."""
    if store.security is None:
        raise InvalidRequest(
            "opensearch_ml_stream.security is opensearch, and the embedded store has no users: name a cluster with "
            "--store, or set it to own"
        )
    return store.security


async def check_start(security: str, host: str, store: Store) -> None:
    """Raise InvalidRequest if the server would let nobody in: it has no account yet and would need one.

    Or its users are to be OpenSearch's, and the cluster has no security plugin. A store that does not respond now may
    have what is needed; its callers are refused until it does.
    """
    with suppress(Unavailable, TimeoutError):
        async with asyncio.timeout(LOOK_SECONDS):
            if security == "opensearch" and not await plugin_of(store).is_installed():
                raise InvalidRequest(
                    "opensearch_ml_stream.security is opensearch, and the store's cluster has no security plugin"
                )
            if security == "auto" and not is_loopback(host) and _addresses(host):  # without one there is no server
                await _check_for_accounts(host, store)
            if store.cluster is not None:
                await _warn_of_refused_searches(store.cluster)


async def _warn_of_refused_searches(cluster: Cluster) -> None:
    """Log what to do if ML Commons beside the store cannot search, as where users may be let into system indices."""
    with suppress(MLStreamError):
        reason = await cluster.ml_commons_refusal()
        if reason is not None:
            log.warning(_CANNOT_BE_CHECKED if MODEL_SEARCH in reason else _REFUSED, reason, _CERTIFICATE)


async def _check_for_accounts(host: str, store: Store) -> None:
    if (store.security is not None and await store.security.is_installed()) or await has_accounts(store):
        return
    raise InvalidRequest(
        f"On {host} everyone in the network could call, with your keys and at your cost. Add a user first "
        "(`opensearch-ml-stream users add NAME --role ml_full_access`) or a key (`keys create NAME --role "
        "ml_predict_access`), serve on 127.0.0.1, or let everyone in with --insecure-no-auth"
    )


def is_loopback(host: str) -> bool:
    """Whether every address of the host is this machine's own; False for a name that has none."""
    addresses = _addresses(host)
    return bool(addresses) and all(ip_address(address.partition("%")[0]).is_loopback for address in addresses)


def _addresses(host: str) -> set[str]:
    try:
        return {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return set()
