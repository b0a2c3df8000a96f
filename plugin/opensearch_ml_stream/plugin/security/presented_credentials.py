"""What a request presents to say who calls: `Authorization: Basic`, `Bearer` or `ApiKey`, or `x-api-key`."""

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass, field

from opensearch_ml_stream.connectors.errors import Unauthorized
from opensearch_ml_stream.plugin.store import IMPERSONATION
from opensearch_ml_stream.rest_handlers.callers import Scope

MAX_CHARACTERS = 4096  # of a credential; a longer one is none of ours

_HEADERS = (b"authorization", b"x-api-key", IMPERSONATION.encode())


@dataclass(frozen=True, slots=True)
class NameAndPassword:
    """A user's name and password."""

    name: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key, which is its own user."""

    value: str = field(repr=False)


def presented_credentials(headers: Iterable[tuple[bytes, bytes]]) -> NameAndPassword | ApiKey | None:
    """Read the credentials of a request; None if it has none. `Authorization` counts before `x-api-key`.

    Unauthorized for a scheme that is not ours, for two values of one header, and for what cannot be read.
    """
    if (authorization := single_header(b"authorization", headers)) is not None:
        return _from_authorization(authorization)
    key = single_header(b"x-api-key", headers)
    return None if key is None else ApiKey(key.strip())


def without_credentials(scope: Scope) -> Scope:
    """Return the request without the headers that say who calls: in the cluster they would be someone else."""
    return {**scope, "headers": [pair for pair in scope["headers"] if pair[0] not in _HEADERS]}


def single_header(name: bytes, headers: Iterable[tuple[bytes, bytes]], most: int = MAX_CHARACTERS) -> str | None:
    """Return the header's value, None if it is absent. Unauthorized if there are two, or it has more characters."""
    values = [value for header, value in headers if header == name]
    if not values:
        return None
    if len(values) > 1 or len(values[0]) > most:
        raise Unauthorized
    return values[0].decode("latin-1")


def _from_authorization(value: str) -> NameAndPassword | ApiKey:
    scheme, _, credential = value.strip().partition(" ")
    if scheme.lower() == "basic":
        return _name_and_password(credential.strip())
    if scheme.lower() in ("bearer", "apikey"):
        return ApiKey(credential.strip())
    raise Unauthorized


def _name_and_password(encoded: str) -> NameAndPassword:
    try:
        decoded = base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise Unauthorized from None
    name, separator, password = decoded.partition(":")
    if not separator or not name:
        raise Unauthorized
    return NameAndPassword(name, password)
