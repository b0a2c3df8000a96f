"""What of a request goes to OpenSearch to say who calls, and what never does."""

from ipaddress import ip_network

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, Unauthorized
from opensearch_ml_stream.plugin.security.caller_headers import TrustedProxy, caller_headers
from opensearch_ml_stream.rest_handlers.callers import Scope

PROXY = TrustedProxy("x-proxy-user", "x-proxy-roles", (ip_network("10.0.1.0/24"), ip_network("2001:db8::5")))
USER = (b"x-proxy-user", b"ann")
LOGIN = (b"authorization", b"Basic YTpi")
TOKEN = (b"authorization", b"Bearer t")


def request(*headers: tuple[bytes, bytes], client: str | None = "10.0.1.7") -> Scope:
    return {"headers": list(headers), "client": None if client is None else (client, 50000)}


@pytest.mark.parametrize("value", [b"Basic YTpi", b"Bearer a.b.c", b"Negotiate x", b"Bearer " + b"x" * 16_000])
def test_any_login_that_opensearch_may_know_is_sent_as_it_came(value: bytes) -> None:
    assert caller_headers(request((b"authorization", value)), None) == {"authorization": value.decode()}


def test_nothing_else_of_a_request_is_sent() -> None:
    others = [
        (b"x-forwarded-for", b"127.0.0.1"), (b"x-proxy-user", b"admin"), (b"x-proxy-roles", b"admin"),
        (b"securitytenant", b"t"), (b"cookie", b"a=b"),
        (b"host", b"h"), (b"x-opaque-id", b"1"),
    ]  # fmt: skip
    assert caller_headers(request(LOGIN, *others), None) == {"authorization": "Basic YTpi"}
    assert caller_headers(request(*others), None) is None


@pytest.mark.parametrize("headers", [[LOGIN, LOGIN], [LOGIN, (b"x-api-key", b"k")], [TOKEN, (b"x-api-key", b"k")]])
def test_two_logins_in_one_request_are_refused(headers: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(InvalidRequest):
        caller_headers(request(*headers), None)


def test_a_token_may_be_in_both_headers() -> None:
    assert caller_headers(request(TOKEN, (b"x-api-key", b"t")), None) == {"authorization": "Bearer t"}


@pytest.mark.parametrize("value", [b"ApiKey mls_1_2", b"apikey x", b""])
def test_the_sidecars_own_keys_are_not_for_opensearch(value: bytes) -> None:
    assert caller_headers(request((b"authorization", value)), None) is None


@pytest.mark.parametrize(
    "headers",
    [
        [(b"authorization", b"Basic \xff")],
        [(b"authorization", b"Basic a\tb")],
        [(b"authorization", b"Bearer " + b"x" * 16_200)],
    ],
)
def test_what_has_no_one_meaning_is_refused(headers: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(Unauthorized):
        caller_headers(request(*headers), None)


@pytest.mark.parametrize(
    ("client", "shown"),
    [("10.0.1.7", "10.0.1.7"), ("::ffff:10.0.1.7", "10.0.1.7"), ("2001:db8::5", "2001:db8::5")],
)
def test_the_proxys_user_is_sent_with_the_proxys_own_address(client: str, shown: str) -> None:
    scope = request(USER, LOGIN, (b"x-proxy-roles", b"a,b"), (b"x-forwarded-for", b"127.0.0.1"), client=client)
    expected = {"x-proxy-user": "ann", "x-forwarded-for": shown, "x-proxy-roles": "a,b"}
    assert caller_headers(scope, PROXY) == expected


def test_backend_roles_are_sent_only_if_a_header_was_named_for_them() -> None:
    proxy = TrustedProxy("x-proxy-user", "", PROXY.networks)
    sent = caller_headers(request(USER, (b"x-proxy-roles", b"admin")), proxy)
    assert sent == {"x-proxy-user": "ann", "x-forwarded-for": "10.0.1.7"}


@pytest.mark.parametrize("client", ["10.0.2.7", "127.0.0.1", "::1", "2001:db8::6", "fe80::1%eth0", "no address", None])
def test_a_user_named_from_elsewhere_is_refused_whatever_else_the_request_has(
    client: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(Unauthorized):
        caller_headers(request(USER, LOGIN, client=client), PROXY)
    assert "x-proxy-user" in caplog.text
    assert "ann" not in caplog.text


@pytest.mark.parametrize("headers", [[USER, USER], [(b"x-proxy-user", "änn".encode())]])
def test_a_user_who_is_named_twice_or_not_in_ascii_is_refused(headers: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(Unauthorized):
        caller_headers(request(*headers), PROXY)


def test_through_a_proxy_that_names_nobody_a_login_counts() -> None:
    assert caller_headers(request((b"x-proxy-user", b""), LOGIN), PROXY) == {"authorization": "Basic YTpi"}
    assert caller_headers(request((b"x-proxy-roles", b"admin")), PROXY) is None


@pytest.mark.parametrize("headers", [[LOGIN], [USER], [USER, LOGIN]])
def test_whom_a_caller_asks_to_be_is_for_opensearch_to_decide(headers: list[tuple[bytes, bytes]]) -> None:
    other = ("opendistro_security_impersonate_as", "bob")
    sent = caller_headers(request(*headers, (b"opendistro_security_impersonate_as", b"bob")), PROXY)
    assert sent == {**(caller_headers(request(*headers), PROXY) or {}), other[0]: other[1]}


def test_only_who_logs_in_can_ask_to_be_another_and_only_one() -> None:
    asked = (b"opendistro_security_impersonate_as", b"bob")
    assert caller_headers(request(asked), PROXY) is None
    for twice in ([LOGIN, asked, asked], [LOGIN, (asked[0], "b\u00f6b".encode())]):
        with pytest.raises(Unauthorized):
            caller_headers(request(*twice), PROXY)
    assert caller_headers(request(LOGIN, (asked[0], b"")), PROXY) == {"authorization": "Basic YTpi"}
