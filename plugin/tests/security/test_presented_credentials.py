"""What a request presents to say who calls."""

import base64

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, Unauthorized
from opensearch_ml_stream.plugin.security.presented_credentials import (
    ApiKey,
    NameAndPassword,
    presented_credentials,
)


def basic(text: str) -> bytes:
    return b"Basic " + base64.b64encode(text.encode())


@pytest.mark.parametrize(
    ("headers", "credentials"),
    [
        ([], None),
        ([(b"authorization", basic("ann:pa:ss wörd"))], NameAndPassword("ann", "pa:ss wörd")),
        ([(b"authorization", b"basic " + base64.b64encode(b"ann:"))], NameAndPassword("ann", "")),
        ([(b"authorization", b"Bearer k")], ApiKey("k")),
        ([(b"authorization", b"ApiKey  k ")], ApiKey("k")),
        ([(b"x-api-key", b"k")], ApiKey("k")),
        ([(b"x-api-key", b" k"), (b"authorization", b"Bearer k")], ApiKey("k")),
        ([(b"x-api-key", b""), (b"authorization", b"Bearer k")], ApiKey("k")),
    ],
)
def test_credentials_are_read_from_either_header(
    headers: list[tuple[bytes, bytes]], credentials: NameAndPassword | ApiKey | None
) -> None:
    assert presented_credentials(headers) == credentials


@pytest.mark.parametrize(
    "headers",
    [
        [(b"authorization", b"")],
        [(b"authorization", b"Negotiate abc")],
        [(b"authorization", b"Basic !!!")],
        [(b"authorization", b"Basic " + base64.b64encode(b"\xff:x"))],
        [(b"authorization", basic("no colon"))],
        [(b"authorization", basic(":no name"))],
        [(b"authorization", b"Bearer " + b"k" * 5000)],
    ],
)
def test_what_cannot_be_read_is_unauthorized(headers: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(Unauthorized):
        presented_credentials(headers)


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        (
            [(b"x-api-key", b"k"), (b"authorization", b"Bearer other")],
            "two logins that differ, Authorization and x-api-key",
        ),
        (
            [(b"x-api-key", b"k"), (b"authorization", basic("k:k"))],
            "two logins that differ, Authorization and x-api-key",
        ),
        ([(b"authorization", b"Bearer a"), (b"authorization", b"Bearer b")], "authorization more than once"),
        ([(b"x-api-key", b"a"), (b"x-api-key", b"b")], "x-api-key more than once"),
        ([(b"authorization", b"Bearer a"), (b"x-api-key", b"a"), (b"x-api-key", b"b")], "x-api-key more than once"),
    ],
)
def test_two_logins_in_one_request_are_refused_by_a_reason_that_shows_neither(
    headers: list[tuple[bytes, bytes]], reason: str
) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        presented_credentials(headers)


def test_secrets_are_not_in_a_representation() -> None:
    assert "hush" not in repr(NameAndPassword("ann", "hush")) + repr(ApiKey("hush"))
