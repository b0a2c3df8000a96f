"""The commands `users add`, `list`, `password` and `remove`."""

from typing import Annotated

import typer

from opensearch_ml_stream.plugin.cli.accounts.account_store import Role, StoreOptions, tell, with_store
from opensearch_ml_stream.plugin.cli.options import (
    Config,
    Json,
    Store,
    StorePassword,
    ask,
    check_secret_source,
    read_secret,
)
from opensearch_ml_stream.plugin.cli.printing import print_note, print_table
from opensearch_ml_stream.plugin.clock import now_millis
from opensearch_ml_stream.plugin.security import own_accounts

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
    store: Store = None,
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
    config: Config = None, store: Store = None, store_password: StorePassword = None, json: Json = False
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
    store: Store = None,
    store_password: StorePassword = None,
) -> None:
    """Change the password of a user."""
    secret = _read_password(name, password)
    options = StoreOptions(config, store, store_password)
    _, use = with_store(options, lambda store: own_accounts.change_password(store, name, secret))
    print_note(f"Changed the password of {name}. {use}")


@users_app.command()
def remove(name: Name, config: Config = None, store: Store = None, store_password: StorePassword = None) -> None:
    """Remove a user. Removing the last one opens nothing while the sidecar runs."""
    options = StoreOptions(config, store, store_password)
    _, use = with_store(options, lambda store: own_accounts.remove_account(store, own_accounts.user_id(name)))
    print_note(f"Removed the user {name}. {use}")


def _read_password(name: str, source: str) -> str:
    check_secret_source("--password", source)
    if source == "-":
        return ask(f"Password of {name}", twice=True)
    return read_secret("password", source)
