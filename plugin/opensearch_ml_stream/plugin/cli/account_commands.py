"""The commands `users` and `keys`: the sidecar's own accounts, written to its store; the sidecar need not run."""

import asyncio
import os
import re
import shlex
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.plugin.cli.command_errors import WrongUsage
from opensearch_ml_stream.plugin.cli.options import (
    Config,
    Json,
    StorePassword,
    StoreUrl,
    ask,
    check_secret_source,
    read_secret,
)
from opensearch_ml_stream.plugin.cli.printing import print_note, print_table, print_text, waiting
from opensearch_ml_stream.plugin.cli.store_password import with_store_password
from opensearch_ml_stream.plugin.clock import now_millis
from opensearch_ml_stream.plugin.installed_extensions import load_installed_settings
from opensearch_ml_stream.plugin.limits.replica_leases import is_served
from opensearch_ml_stream.plugin.security import own_accounts
from opensearch_ml_stream.plugin.security.permissions import SHIPPED_ROLES
from opensearch_ml_stream.plugin.settings.sources import default_store
from opensearch_ml_stream.plugin.store import Store

T = TypeVar("T")

IN_FORCE = "In force within 2 s."

Role = Annotated[
    str, typer.Option("--role", help=f"What it may do: {', '.join(SHIPPED_ROLES)}; or several, separated by commas.")
]

users_app = typer.Typer(no_args_is_help=True, help="Users of the sidecar's own, with a name and a password.")

Name = Annotated[str, typer.Argument(help="Name of the user.")]
Password = Annotated[
    str,
    typer.Option("--password", metavar="env:NAME|file:PATH|-", help="The password: a variable, a file, or asked for."),
]


@users_app.command()
def add(
    name: Name,
    role: Role,
    password: Password = "-",
    config: Config = None,
    store: StoreUrl = None,
    store_password: StorePassword = None,
) -> None:
    """Add a user. From the first one on, every caller has to log in."""
    secret = _read_password(name, password)
    options = StoreOptions(config, store, store_password)
    _, use = with_store(
        options, lambda store: own_accounts.add_user(store, name, secret, role, now_millis()), adds=True
    )
    print_note(f"Added the user {name} with the role {role}. {use}")


@users_app.command("list")
def list_users(
    config: Config = None, store: StoreUrl = None, store_password: StorePassword = None, json: Json = False
) -> None:
    """List the users and their roles."""
    found, use = with_store(
        StoreOptions(config, store, store_password), lambda store: own_accounts.accounts(store, "user")
    )
    print_table(("Name", "Roles"), [(user.name, user.roles) for user in found], json=json)
    tell(use)


@users_app.command()
def password(
    name: Name,
    password: Password = "-",
    config: Config = None,
    store: StoreUrl = None,
    store_password: StorePassword = None,
) -> None:
    """Change the password of a user."""
    secret = _read_password(name, password)
    options = StoreOptions(config, store, store_password)
    _, use = with_store(options, lambda store: own_accounts.change_password(store, name, secret))
    print_note(f"Changed the password of {name}. {use}")


@users_app.command()
def remove(name: Name, config: Config = None, store: StoreUrl = None, store_password: StorePassword = None) -> None:
    """Remove a user. After the last one is removed, a running sidecar still asks for a login."""
    options = StoreOptions(config, store, store_password)
    _, use = with_store(options, lambda store: own_accounts.remove_account(store, own_accounts.user_id(name)))
    print_note(f"Removed the user {name}. {use}")


def _read_password(name: str, source: str) -> str:
    check_secret_source("--password", source)
    if source == "-":
        return ask(f"Password of {name}", twice=True)
    return read_secret("password", source)


keys_app = typer.Typer(no_args_is_help=True, help="Keys for programs, each with its own role.")

_UNITS = {"m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"([1-9][0-9]{0,5})([mhd])")


@keys_app.command()
def create(
    name: Annotated[str, typer.Argument(help="What the key is for; callers are shown by it.")],
    role: Role,
    expires: Annotated[
        str | None, typer.Option("--expires", metavar="30d", help="How long it is valid: minutes m, hours h, days d.")
    ] = None,
    config: Config = None,
    store: StoreUrl = None,
    store_password: StorePassword = None,
) -> None:
    """Create a key and print it, this once. From the first one on, every caller has to log in."""
    now = now_millis()
    end = None if expires is None else now + 1000 * _seconds(expires)
    options = StoreOptions(config, store, store_password)
    key, use = with_store(options, lambda store: own_accounts.create_key(store, name, role, now, end), adds=True)
    until = "" if end is None else f", valid until {_time(end)}"
    print_note(f"Key {key.id} with the role {role}{until}. It is shown this once. {use}")
    print_text(key.value)


@keys_app.command("list")
def list_keys(
    config: Config = None, store: StoreUrl = None, store_password: StorePassword = None, json: Json = False
) -> None:
    """List the keys' ids, names, roles and expiry dates; the keys themselves are not stored."""
    now = now_millis()
    found, use = with_store(
        StoreOptions(config, store, store_password), lambda store: own_accounts.accounts(store, "key")
    )
    end = _iso_end if json else partial(_end, now=now)
    rows = [(key.id.partition(":")[2], key.name, key.roles, end(key)) for key in found]
    print_table(("Id", "Name", "Roles", "Valid until"), rows, json=json)
    tell(use)


@keys_app.command()
def revoke(
    id: Annotated[str, typer.Argument(metavar="KEY_ID", help="Id of the key, as `keys list` shows it.")],
    config: Config = None,
    store: StoreUrl = None,
    store_password: StorePassword = None,
) -> None:
    """Revoke a key."""
    options = StoreOptions(config, store, store_password)
    _, use = with_store(options, lambda store: own_accounts.remove_account(store, own_accounts.key_id(id)))
    print_note(f"Revoked the key {id}. {use}")


def _seconds(duration: str) -> int:
    match = _DURATION.fullmatch(duration)
    if match is None:
        raise WrongUsage("--expires must be a number with m, h or d, such as 90m, 12h or 30d")
    return int(match[1]) * _UNITS[match[2]]


def _end(key: own_accounts.Account, now: int) -> str:
    if key.expires is None:
        return "no end"
    return f"{_time(key.expires)}{' (expired)' if key.is_expired(now) else ''}"


def _iso_end(key: own_accounts.Account) -> str | None:
    return None if key.expires is None else datetime.fromtimestamp(key.expires / 1000, UTC).isoformat()


def _time(millis: int) -> str:
    return datetime.fromtimestamp(millis / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """The values of `--config`, `--store` and `--store-password`."""

    config: Path | None
    store: str | None
    password: str | None


def with_store(options: StoreOptions, work: Callable[[Store], Awaitable[T]], *, adds: bool = False) -> tuple[T, str]:
    """Open the store, await `work` on it, and return its result with a sentence about whether a server uses the store.

    A missing embedded store is created only if `work` adds an account (`adds`); otherwise it raises WrongUsage. stderr
    says that a store was created, and why a sidecar with these settings would ignore the account.
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
                print_note(f"warning: it cannot be used: {reason}")
            if await is_served(store, now_millis()):
                return result, IN_FORCE
            return result, f"No running server uses this store: start one with `opensearch-ml-stream serve {pasted}`."

    with waiting("waiting for the store"):
        return asyncio.run(run())


def tell(use: str) -> None:
    """Print the sentence of `with_store` on stderr if no server uses the store."""
    if use != IN_FORCE:
        print_note(use)


def embedded_file(url: str) -> Path | None:
    """Return the file of an embedded store; None for one in memory or in a cluster."""
    path = url.removeprefix("sqlite:///")
    return None if path in (url, ":memory:") else Path(path)


def _nearest(file: Path) -> str:
    """Return a hint at an existing store whose path is similar to that of a missing file; empty without one."""
    beside = [str(path) for path in file.parent.glob("*") if path.is_file()]
    known = [embedded_file(default_store(os.environ, name)) for name in ("store", "demo")]
    candidates = [*beside, *(str(path) for path in known if path is not None and path.exists())]
    similar = get_close_matches(str(file), candidates, n=1)
    return f"Did you mean --store {shlex.quote(f'sqlite:///{similar[0]}')}? " if similar else ""


async def why_unused(security: str, store: Store) -> str | None:
    """Return why a sidecar with this setting and store ignores its own accounts; None if it uses them."""
    name = "opensearch_ml_stream.security"
    if security == "none":
        return f"with {name}: none, nobody has to log in"
    if security == "opensearch":
        return f"with {name}: opensearch, only users of the cluster can log in"
    with suppress(MLStreamError):  # the account is stored anyway
        if security == "auto" and store.security is not None and await store.security.is_installed():
            return f"the cluster has the security plugin, so its users call; {name}: own would change that"
    return None
