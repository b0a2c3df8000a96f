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

Role = Annotated[str, typer.Option("--role", help=f"What it may do: {', '.join(SHIPPED_ROLES)}.")]


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """The values of `--config`, `--store` and `--store-password`."""

    config: Path | None
    store: str | None
    password: str | None


def with_store(options: StoreOptions, work: Callable[[Store], Awaitable[T]]) -> T:
    """Open the store of the settings, await `work` on it and return its result."""
    settings = load_settings(options.config, options={"store": options.store})
    settings = replace(settings, store=with_store_password(settings.store, options.password))
    opening = import_module("opensearch_ml_stream.plugin.store.open_store")  # loaded late: it takes half a second

    async def run() -> T:
        async with opening.open_store(settings.store, settings.index_prefix) as store:
            result = await work(store)
            await warn_if_not_in_force(settings.security, store)
            return result

    return asyncio.run(run())


async def warn_if_not_in_force(security: str, store: Store) -> None:
    """Say on standard error that users and keys of the store do not count where those of its cluster do."""
    with suppress(MLStreamError):
        if security in ("auto", "opensearch") and store.security is not None and await store.security.is_installed():
            typer.echo(
                "Note: the store's cluster has the security plugin, so its users call, and not those of the sidecar; "
                "see opensearch_ml_stream.security",
                err=True,
            )
