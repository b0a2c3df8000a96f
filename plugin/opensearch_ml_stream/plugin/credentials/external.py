"""Resolve credentials outside the store: `env:NAME` and `file:PATH`, read at each use since tokens rotate.

Off unless `opensearch_ml_stream.external_credentials_enabled`, since anyone who may create a connector could otherwise
read this process's environment and files.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest

MAX_FILE_BYTES = 64 * 1024
_PREFIXES = ("env:", "file:")
_OWN_VARIABLES = "MLSTREAM_"  # those of the sidecar, the store's password among them, are for no provider
_PROC = Path("/proc")  # where the environment can be read as a file


def is_external(credential: Mapping[str, str]) -> bool:
    """Return whether any value is kept outside the store."""
    return any(value.startswith(_PREFIXES) for value in credential.values())


def resolve_credential(credential: Mapping[str, str], enabled: bool) -> Mapping[str, str]:
    """Return the credential with its external values read.

    Forbidden if there are any and `enabled` is False, InvalidRequest if one cannot be read. Errors name the key, never
    a value.
    """
    if not is_external(credential):
        return credential
    if not enabled:
        raise Forbidden(
            "The connector's credential is kept outside (env: or file:), "
            "which opensearch_ml_stream.external_credentials_enabled does not allow"
        )
    return {name: _read(name, value) for name, value in credential.items()}


def _read(name: str, value: str) -> str:
    if value.startswith("env:"):
        variable = value.removeprefix("env:")
        secret = None if variable.startswith(_OWN_VARIABLES) else os.environ.get(variable)
        if secret is None:
            raise InvalidRequest(f"The credential [{name}] names an environment variable that is not set")
        return secret
    if not value.startswith("file:"):
        return value
    path = Path(value.removeprefix("file:"))
    try:
        if path.resolve().is_relative_to(_PROC):
            raise OSError
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES).decode().strip()
    except (OSError, RuntimeError, ValueError):  # also a loop of links, a NUL in the path, bytes that are no text
        raise InvalidRequest(f"The credential [{name}] names a file that cannot be read as text") from None
