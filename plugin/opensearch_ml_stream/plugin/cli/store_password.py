"""The store's password: from the environment, a file or a prompt, and not in the process list."""

import os
import sys
from urllib.parse import SplitResult, quote, unquote, urlsplit

from opensearch_ml_stream.plugin.cli.command_errors import WrongUsage
from opensearch_ml_stream.plugin.cli.options import read_secret

PASSWORD_VARIABLE = "MLSTREAM_STORE_PASSWORD"

_OPTION = "--store-password"


def with_store_password(url: str, option: str | None) -> str:
    """Return the store's URL with the password of `--store-password` or, if it has none, of the environment.

    Raises:
        WrongUsage: If the option is a password itself, cannot be read, or does not fit the URL.
    """
    if option is None:
        password = os.environ.get(PASSWORD_VARIABLE)
        parts = _split(url)
        if not password or parts is None or not parts.username or parts.password:
            return url
        return _with_userinfo(parts, f"{_user(parts)}:{quote(password, safe='')}")
    if option != "-" and not option.startswith(("env:", "file:")):
        raise WrongUsage(
            f"{_OPTION} must be env:NAME, file:PATH or - (to be asked): the command line is for all users to see"
        )
    parts = _split(url)
    if parts is None or not parts.username or parts.password:
        raise WrongUsage(f"{_OPTION} needs a store with a user and without a password: --store https://user@host:9200")
    return _with_userinfo(parts, f"{_user(parts)}:{quote(read_secret('store', option), safe='')}")


def hide_store_password(url: str | None) -> None:
    """Start this program again without the password that `--store` has on the command line, if it has one.

    All users of a machine can read the command line of a process for as long as it runs. The environment, where the
    password goes instead, only this user can read. Signals and the parent see no difference: it is the same process.
    """
    parts = _split(url or "")
    if url is None or parts is None or not parts.password or os.name != "posix":
        return
    bare = _with_userinfo(parts, _user(parts))
    replaced = {url: bare, f"--store={url}": f"--store={bare}"}
    command = [replaced.get(argument, argument) for argument in sys.orig_argv]
    if command != sys.orig_argv:
        os.execve(sys.executable, command, {**os.environ, PASSWORD_VARIABLE: unquote(parts.password)})


def _split(url: str) -> SplitResult | None:
    """Return the parts of an OpenSearch's URL, None for any other store."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return parts if parts.scheme in ("http", "https") else None


def _user(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[0].partition(":")[0]


def _with_userinfo(parts: SplitResult, userinfo: str) -> str:
    return parts._replace(netloc=f"{userinfo}@{parts.netloc.rpartition('@')[2]}").geturl()
