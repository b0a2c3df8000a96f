"""The options that name the store, and how these commands work on it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.plugin.cli.running.store_password import with_store_password
from opensearch_ml_stream.plugin.security.permissions import SHIPPED_ROLES
from opensearch_ml_stream.plugin.settings.sources import load_settings
from opensearch_ml_stream.plugin.store import Store

T = TypeVar("T")

Role = Annotated[
    str, typer.Option("--role", help=f"What it may do: {', '.join(SHIPPED_ROLES)}; or several, separated by commas.")
]


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """The values of `--config`, `--store` and `--store-password`."""

    config: Path | None
    store: str | None
    password: str | None


def with_store(options: StoreOptions, work: Callable[[Store], Awaitable[T]], *, adds: bool = False) -> T:
    """Open the store of the settings, await `work` on it and return its result.

    If that `adds` an account to which no sidecar with these settings would look, say so on stderr.
    """
    settings = load_settings(options.config, options={"store": options.store})
    settings = replace(settings, store=with_store_password(settings.store, options.password))
    opening = import_module("opensearch_ml_stream.plugin.store.open_store")  # loaded late: it takes half a second

    async def run() -> T:
        async with opening.open_store(settings.store, settings.index_prefix) as store:
            result = await work(store)
            if adds and (reason := await why_unused(settings.security, store)):
                typer.echo(f"warning: it lets nobody in: {reason}", err=True)
            return result

    return asyncio.run(run())


async def why_unused(security: str, store: Store) -> str | None:
    """Return why a sidecar with this setting and store does not look at accounts of its own; None if it does."""
    name = "opensearch_ml_stream.security"
    if security == "none":
        return f"with {name}: none nobody has to log in"
    if security == "opensearch":
        return f"with {name}: opensearch users of the cluster call"
    with suppress(MLStreamError):  # the account was stored all the same
        if security == "auto" and store.security is not None and await store.security.is_installed():
            return f"the cluster has the security plugin, so its users call; {name}: own would change that"
    return None
