"""The credentials in a request: `Authorization: Basic`, `Bearer` or `ApiKey`, or `x-api-key`."""

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass, field

from opensearch_ml_stream.connectors.errors import InvalidRequest, Unauthorized
from opensearch_ml_stream.plugin.store import IMPERSONATION
from opensearch_ml_stream.rest_handlers.callers import Scope

MAX_CHARACTERS = 4096  # of a credential; a longer one is none of ours

_KEY_SCHEMES = ("bearer", "apikey")
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
    """Read the credentials of a request; None if it has none.

    Unauthorized for a scheme that is not ours and for what cannot be read, InvalidRequest for two logins.
    """
    if (authorization := authorization_of(headers)) is not None:
        return _from_authorization(authorization)
    key = _login(b"x-api-key", headers, MAX_CHARACTERS)
    return None if key is None else ApiKey(key.strip())


def authorization_of(headers: Iterable[tuple[bytes, bytes]], most: int = MAX_CHARACTERS) -> str | None:
    """Return the header `Authorization`, None if it is absent. Unauthorized if it has more characters.

    InvalidRequest for two of them, or one beside an `x-api-key` that differs: only the client knows which is meant.
    """
    authorization = _login(b"authorization", headers, most)
    if authorization is not None and (key := _login(b"x-api-key", headers, most)):
        scheme, _, credential = authorization.strip().partition(" ")
        if scheme.lower() not in _KEY_SCHEMES or credential.strip() != key.strip():
            raise InvalidRequest(
                "The request has two logins that differ, Authorization and x-api-key: send one of them"
            )
    return authorization


def without_credentials(scope: Scope) -> Scope:
    """Return the request without the headers that authenticate its caller, who may be another user in the cluster."""
    return {**scope, "headers": [pair for pair in scope["headers"] if pair[0] not in _HEADERS]}


def single_header(name: bytes, headers: Iterable[tuple[bytes, bytes]], most: int = MAX_CHARACTERS) -> str | None:
    """Return the header's value, None if it is absent. Unauthorized if there are two, or it has more characters."""
    values = [value for header, value in headers if header == name]
    if not values:
        return None
    if len(values) > 1 or len(values[0]) > most:
        raise Unauthorized
    return values[0].decode("latin-1")


def _login(name: bytes, headers: Iterable[tuple[bytes, bytes]], most: int) -> str | None:
    """Return the value of a header with credentials, as `single_header` does. InvalidRequest if there are two."""
    if sum(header == name for header, _ in headers) > 1:
        raise InvalidRequest(f"The request has the header {name.decode()} more than once; send it once")
    return single_header(name, headers, most)


def _from_authorization(value: str) -> NameAndPassword | ApiKey:
    scheme, _, credential = value.strip().partition(" ")
    if scheme.lower() == "basic":
        return _name_and_password(credential.strip())
    if scheme.lower() in _KEY_SCHEMES:
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
