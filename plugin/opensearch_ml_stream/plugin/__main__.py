"""The program `opensearch-ml-stream`, and `python -m opensearch_ml_stream.plugin`.

All users of a machine can read the command line of a running process. So a password in `--store` is removed from it
first, before the commands are loaded, which takes most of a second.
"""

import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from urllib.parse import unquote, urlsplit

PASSWORD_VARIABLE = "MLSTREAM_STORE_PASSWORD"  # read by cli/store_password.py

_OPTION = "--store"
_NEXT_URL = re.compile(r",(?=https?://)")  # as in store/cluster_url.py


def main() -> None:
    """Run a command, in a process whose command line shows no password of the store.

    If it shows one, the process executes this program again, with the password in the environment, which only this user
    can read. It stays the same process for signals and for its parent.
    """
    command, password = without_password(sys.orig_argv)
    if password and os.name == "posix":
        os.execve(sys.executable, command, {**os.environ, PASSWORD_VARIABLE: password})
    import_module("opensearch_ml_stream.plugin.cli").main()


def without_password(command: Sequence[str]) -> tuple[list[str], str | None]:
    """Return a command line without the password in the URL of its `--store`, and the password; None if it has none."""
    bare = list(command)
    password = None
    for index, argument in enumerate(command):
        if argument.startswith(f"{_OPTION}="):
            url, found = _split_passwords(argument.removeprefix(f"{_OPTION}="))
            bare[index] = f"{_OPTION}={url}"
        elif index and command[index - 1] == _OPTION:
            bare[index], found = _split_passwords(argument)
        else:
            continue
        password = found or password
    return bare, password


def _split_passwords(store: str) -> tuple[str, str | None]:
    """Return the URLs of a store, one for each host, without their password, and the password.

    URLs with different passwords are returned unchanged: the command refuses them and ends.
    """
    split = [_split_password(url) for url in _NEXT_URL.split(store)]
    passwords = {password for _, password in split}
    return (",".join(url for url, _ in split), passwords.pop()) if len(passwords) == 1 else (store, None)


def _split_password(url: str) -> tuple[str, str | None]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return url, None
    if parts.scheme not in ("http", "https") or not parts.password:
        return url, None
    userinfo, _, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{userinfo.partition(':')[0]}@{host}").geturl(), unquote(parts.password)


if __name__ == "__main__":
    main()
