"""The file of remembered logins, in the user's configuration folder, readable by this user only.

It is `{"version": 1, "logins": {"<sidecar's URL>": {"key"} or {"user", "password"}}}`. The secrets are in clear,
since the commands need them: the file's mode protects them.
"""

import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from opensearch_ml_stream.plugin.cli.command_errors import CommandFailed
from opensearch_ml_stream.plugin.security.presented_credentials import ApiKey, NameAndPassword

Secret = NameAndPassword | ApiKey

_VERSION = 1
_MAX_BYTES = 1024 * 1024
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def login_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the file's path: below XDG_CONFIG_HOME, if that is absolute, else below ~/.config."""
    config = environment.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(config):
        config = os.path.join(environment.get("HOME") or os.path.expanduser("~"), ".config")
    return Path(config, "opensearch-ml-stream", "logins.json")


def read_logins(path: Path) -> dict[str, Secret]:
    """Return the remembered logins by URL; none without the file.

    Raises:
        CommandFailed: If others can read or write the file, or it cannot be read.
    """
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if mode & _OTHERS:
                raise CommandFailed(
                    f"Others can read or write the remembered logins ({path}, mode {stat.S_IMODE(mode):o}); replace "
                    f"its logins if somebody did, then `chmod 600` it or delete it"
                )
            content = file.read(_MAX_BYTES)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise CommandFailed(f"Cannot read the remembered logins {path}: {error.strerror}") from error
    try:
        return _parse(content)
    except (LookupError, TypeError, ValueError, AttributeError):
        raise CommandFailed(f"{path} does not hold logins that this version can read; delete it and log in") from None


def write_logins(path: Path, logins: Mapping[str, Secret]) -> None:
    """Replace the file atomically, readable by this user only; CommandFailed if it cannot be written."""
    content = orjson.dumps(
        {"version": _VERSION, "logins": {url: _members(secret) for url, secret in logins.items()}},
        option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE,
    )
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(path, content)
    except OSError as error:
        raise CommandFailed(f"Cannot write the remembered logins {path}: {error.strerror}") from error


def _replace(path: Path, content: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # readable by this user only, too
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise


def _parse(content: bytes) -> dict[str, Secret]:
    document = orjson.loads(content)
    if document["version"] != _VERSION:
        raise ValueError("another version")
    return {url: _secret(members) for url, members in document["logins"].items()}


def _secret(members: Any) -> Secret:
    values = [members["key"]] if "key" in members else [members["user"], members["password"]]
    if not all(isinstance(value, str) for value in values):
        raise TypeError("a login is of strings")
    return ApiKey(*values) if len(values) == 1 else NameAndPassword(*values)


def _members(secret: Secret) -> dict[str, str]:
    if isinstance(secret, ApiKey):
        return {"key": secret.value}
    return {"user": secret.name, "password": secret.password}
