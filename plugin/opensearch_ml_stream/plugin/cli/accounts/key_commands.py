"""The commands `keys create`, `list` and `revoke`."""

import re
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

import typer

from opensearch_ml_stream.plugin.cli.accounts.account_store import Role, StoreOptions, tell, with_store
from opensearch_ml_stream.plugin.cli.command_errors import WrongUsage
from opensearch_ml_stream.plugin.cli.options import Config, Json, Store, StorePassword
from opensearch_ml_stream.plugin.cli.printing import print_note, print_table, print_text
from opensearch_ml_stream.plugin.clock import now_millis
from opensearch_ml_stream.plugin.security import own_accounts

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
    store: Store = None,
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
    config: Config = None, store: Store = None, store_password: StorePassword = None, json: Json = False
) -> None:
    """List the keys' ids, names, roles and ends; the keys themselves are not known any more."""
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
    store: Store = None,
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
