"""The commands `login` and `logout`."""

import os
from typing import Annotated

import typer

from opensearch_ml_stream.plugin.cli.command_errors import CommandFailed
from opensearch_ml_stream.plugin.cli.login import Login, environment_login, given_login
from opensearch_ml_stream.plugin.cli.login_file import login_file, read_logins, write_logins
from opensearch_ml_stream.plugin.cli.options import DEFAULT_URL, ask
from opensearch_ml_stream.plugin.cli.printing import print_note
from opensearch_ml_stream.plugin.cli.sidecar_api import open_api_as
from opensearch_ml_stream.plugin.cli.sidecar_options import SidecarOptions, Url, takes_sidecar
from opensearch_ml_stream.plugin.cli.sidecar_url import is_in_clear, sidecar_url
from opensearch_ml_stream.plugin.security.presented_credentials import NameAndPassword
from opensearch_ml_stream.plugin.security.secret_hashes import split_key


@takes_sidecar
def login(
    sidecar: SidecarOptions,
    no_store: Annotated[bool, typer.Option("--no-store", help="Check the login and remember nothing.")] = False,
) -> None:
    """Check a user's login, or a key, and remember it for the sidecar's URL.

    Without --api-key or --user it asks for a user and the password. What it remembers is for you alone to read.
    """
    url, path = sidecar_url(sidecar.url), login_file()
    going_before = environment_login(os.environ)
    with open_api_as(None, sidecar) as api:
        if api.admits():
            raise CommandFailed(
                f"{url} lets everyone in, so no login can be checked; nothing is remembered. A first user or key is in "
                "force within 2 s"
            )
    if is_in_clear(url):
        print_note(f"warning: {url} is not encrypted: anyone on the way can read the login")
    if not no_store:
        read_logins(path)  # a file that cannot be read is an error before anything is asked
    presented = given_login(sidecar) or _asked_login()
    with open_api_as(presented, sidecar) as api:
        if not api.admits():
            raise CommandFailed(f"{url} refuses {_name(presented)} (status 401); nothing is remembered")
    if no_store:
        print_note(f"{url} lets in {_name(presented)}")
        return
    write_logins(path, {**read_logins(path), url: presented.secret})
    print_note(f"Logged in to {url} as {_name(presented)}. Remembered in {path}, for you alone")
    if going_before is not None:
        print_note(f"warning: {going_before.source} takes precedence over it")


def logout(url: Url = DEFAULT_URL) -> None:
    """Forget the login that is remembered for a sidecar's URL."""
    forgotten, path = sidecar_url(url), login_file()
    logins = read_logins(path)
    if forgotten not in logins:
        others = f"; there is one for {', '.join(sorted(logins))}" if logins else ""
        print_note(f"No login is remembered for {forgotten}{others}")
        return
    write_logins(path, {other: secret for other, secret in logins.items() if other != forgotten})
    print_note(f"Forgot the login for {forgotten}")


def _asked_login() -> Login:
    user = ask("User", hidden=False)
    return Login(NameAndPassword(user, ask(f"Password of {user}")), "the user")


def _name(presented: Login) -> str:
    """Return how a login is shown: by the user's name, or the id of the sidecar's own key."""
    if isinstance(presented.secret, NameAndPassword):
        return presented.secret.name
    parts = split_key(presented.secret.value)
    return "the key" if parts is None else f"the key {parts[0]}"
