"""A request on the wire is the connector's, and nothing in it can become a second one."""

from collections.abc import Mapping

import pytest

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.upstream.http1.prepared_requests import PreparedRequests, request_head
from opensearch_ml_stream.plugin.upstream.proxies import Proxy
from opensearch_ml_stream.plugin.upstream.target import parse_target


def request(headers: Mapping[str, str] | None = None, method: str = "POST", body: bytes = b"{}") -> ProviderRequest:
    return ProviderRequest(method, "http://h:81/x?y=1", headers or {}, body)


def bytes_of(made: ProviderRequest) -> bytes:
    call = PreparedRequests(LiveSettings(Settings()), {}).get(made, ClientConfig(), {}, "connector")
    return call.request_bytes(made.body)


def headers_of(made: ProviderRequest) -> list[tuple[str, str]]:
    head, _, _ = bytes_of(made).decode().partition("\r\n\r\n")
    lines = head.split("\r\n")[1:]
    return [(name, value) for name, _, value in (line.partition(": ") for line in lines)]


def test_a_request_is_head_and_body_in_one_piece() -> None:
    made = ProviderRequest("POST", "http://h/x", {"X-A": "ü", "Connection": "close", "content-length": "9"}, b"{}")
    assert bytes_of(made) == (
        b"POST /x HTTP/1.1\r\nHost: h\r\nX-A: \xc3\xbc\r\nAccept-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}"
    )


def test_a_get_has_no_length_and_a_signed_host_is_kept() -> None:
    assert bytes_of(ProviderRequest("GET", "http://h:81/x", {"host": "h:81"}, b"")) == (
        b"GET /x HTTP/1.1\r\nhost: h:81\r\nAccept-Encoding: identity\r\n\r\n"
    )


def test_the_host_comes_first_even_if_the_connector_names_it_last() -> None:
    assert headers_of(request({"Authorization": "a", "HOST": "signed.example"})) == [
        ("HOST", "signed.example"),
        ("Authorization", "a"),
        ("Accept-Encoding", "identity"),
        ("Content-Length", "2"),
    ]


@pytest.mark.parametrize(
    ("method", "body", "length"),
    [
        ("POST", b"", "0"), ("PUT", b"", "0"), ("PATCH", b"", "0"), ("GET", b"", None), ("DELETE", b"", None),
        ("GET", b"{}", "2"), ("DELETE", b"{}", "2"),
    ],
)  # fmt: skip
def test_a_length_is_given_where_a_body_is_or_may_be_expected(method: str, body: bytes, length: str | None) -> None:
    assert dict(headers_of(request({}, method, body))).get("Content-Length") == length


@pytest.mark.parametrize(
    "name",
    [
        "Accept-Encoding", "Connection", "Content-Length", "Expect", "Keep-Alive", "Proxy-Authorization",
        "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
    ],
)  # fmt: skip
def test_what_frames_the_message_cannot_be_set_by_a_connector(name: str) -> None:
    for spelling in (name, name.lower(), name.upper()):
        assert headers_of(request({spelling: "evil"})) == headers_of(request())


@pytest.mark.parametrize("name", ["", "X A", "X:A", "X\r\nY", "X\x00", "Xü", "X\n", "(X)"])
def test_a_header_name_that_http_does_not_allow_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        headers_of(request({name: "a"}))
    assert raised.value.reason == "The connector's headers hold a name or value that HTTP does not allow"


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\n", "\ra", "a\x00", "a\x1f", "a\x7f", "a\x08"])
def test_a_header_value_that_http_does_not_allow_is_refused(value: str) -> None:
    with pytest.raises(InvalidRequest, match="that HTTP does not allow"):
        headers_of(request({"Name": value}))


def test_every_character_of_a_token_is_allowed_in_names_and_tabs_are_in_values() -> None:
    name = "!#$%&'*+-.^_`|~09AZaz"
    assert (name, "a\tb") in headers_of(request({name: "a\tb"}))


def test_spaces_around_a_value_are_not_sent() -> None:
    assert b"\r\nX: a b\r\n" in bytes_of(request({"X": "  a b \t"}))


@pytest.mark.parametrize("method", ["GET /", "G\r\nX", "", "GET\n"])
def test_a_method_cannot_carry_a_second_line(method: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        bytes_of(request({}, method))
    assert raised.value.reason == "The connector's method is not an HTTP method"


def test_half_a_surrogate_pair_in_a_value_is_sent_as_it_is() -> None:
    assert b"\r\nX: \xed\xa0\x80\r\n" in bytes_of(request({"X": "\ud800"}))


def test_a_proxy_gets_the_whole_url_and_its_login() -> None:
    proxy = Proxy("proxy", 3128, "proxy:3128", "Basic bG9naW4=")
    made = request({"Proxy-Authorization": "the connector's"})
    assert request_head(made, parse_target(made.url), proxy) == (
        b"POST http://h:81/x?y=1 HTTP/1.1\r\nHost: h:81\r\nAccept-Encoding: identity\r\n"
        b"Proxy-Authorization: Basic bG9naW4="
    )
