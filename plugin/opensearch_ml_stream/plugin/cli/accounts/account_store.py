"""The options that name the store, and how these commands work on it."""

import asyncio
import os
import shlex
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.plugin.cli.command_errors import WrongUsage
from opensearch_ml_stream.plugin.cli.printing import print_note, waiting
from opensearch_ml_stream.plugin.cli.running.store_password import with_store_password
from opensearch_ml_stream.plugin.clock import now_millis
from opensearch_ml_stream.plugin.installed_extensions import load_installed_settings
from opensearch_ml_stream.plugin.limits.replica_leases import is_served
from opensearch_ml_stream.plugin.security.permissions import SHIPPED_ROLES
from opensearch_ml_stream.plugin.settings.sources import default_store
from opensearch_ml_stream.plugin.store import Store

T = TypeVar("T")

IN_FORCE = "In force within 2 s."

Role = Annotated[
    str, typer.Option("--role", help=f"What it may do: {', '.join(SHIPPED_ROLES)}; or several, separated by commas.")
]


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """The values of `--config`, `--store` and `--store-password`."""

    config: Path | None
    store: str | None
    password: str | None


def with_store(options: StoreOptions, work: Callable[[Store], Awaitable[T]], *, adds: bool = False) -> tuple[T, str]:
    """Open the store of the settings, await `work` on it; return its result, and a sentence on who uses the store.

    An embedded store is made only where that `adds` an account, and stderr says so, as it does if no sidecar with these
    settings would look at the account. WrongUsage if there is no such store otherwise.
    """
    settings = load_installed_settings(options.config, options={"opensearch_ml_stream.store": options.store})
    settings = replace(settings, store=with_store_password(settings.store, options.password))
    opening = import_module("opensearch_ml_stream.plugin.store.open_store")  # loaded late: it takes half a second
    pasted = f"--store {shlex.quote(opening.shown_store(settings.store))}"
    file = embedded_file(settings.store)
    is_new = file is not None and not file.exists()
    if file is not None and is_new and not adds:
        raise WrongUsage(f"There is no store {file}. {_nearest(file)}Give the --store of `serve`, which makes one")

    async def run() -> tuple[T, str]:
        async with opening.open_store(settings.store, settings.index_prefix) as store:
            result = await work(store)
            if is_new:
                print_note(f"Made a new store: {pasted}")
            if adds and (reason := await why_unused(settings.security, store)):
                print_note(f"warning: it lets nobody in: {reason}")
            if await is_served(store, now_millis()):
                return result, IN_FORCE
            return result, f"No running server uses this store: start one with `opensearch-ml-stream serve {pasted}`."

    with waiting("waiting for the store"):
        return asyncio.run(run())


def tell(use: str) -> None:
    """Print on stderr that no server uses the store, where `with_store` found so."""
    if use != IN_FORCE:
        print_note(use)


def embedded_file(url: str) -> Path | None:
    """Return the file of an embedded store; None for one in memory or in a cluster."""
    path = url.removeprefix("sqlite:///")
    return None if path in (url, ":memory:") else Path(path)


def _nearest(file: Path) -> str:
    """Return a hint at a store whose path is much like that of a file that is not there."""
    beside = [str(path) for path in file.parent.glob("*") if path.is_file()]
    known = [embedded_file(default_store(os.environ, name)) for name in ("store", "demo")]
    candidates = [*beside, *(str(path) for path in known if path is not None and path.exists())]
    similar = get_close_matches(str(file), candidates, n=1)
    return f"Did you mean --store {shlex.quote(f'sqlite:///{similar[0]}')}? " if similar else ""


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
