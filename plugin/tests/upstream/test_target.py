"""A URL becomes the place to connect to and the request line, and nothing else can be made of it."""

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.action import ProviderRequest
from opensearch_ml_stream.plugin.upstream.http1.request_bytes import request_bytes
from opensearch_ml_stream.plugin.upstream.proxies import proxy_for
from opensearch_ml_stream.plugin.upstream.target import Target, parse_target


@pytest.mark.parametrize(
    ("url", "target"),
    [
        (
            "https://API.openai.com/v1/x",
            Target("https", "api.openai.com", 443, "api.openai.com:443", "api.openai.com", "/v1/x"),
        ),
        ("http://h:8080", Target("http", "h", 8080, "h:8080", "h:8080", "/")),
        ("http://h:80/?a=b c&d=%20", Target("http", "h", 80, "h:80", "h", "/?a=b%20c&d=%20")),
        ("http://[::1]:9/a:b", Target("http", "::1", 9, "[::1]:9", "[::1]:9", "/a:b")),
        (
            "https://bücher.example/ü",
            Target(
                "https", "xn--bcher-kva.example", 443, "xn--bcher-kva.example:443", "xn--bcher-kva.example", "/%C3%BC"
            ),
        ),
        ("http://h/p#fragment", Target("http", "h", 80, "h:80", "h", "/p")),
    ],
)
def test_a_url_is_taken_apart(url: str, target: Target) -> None:
    assert parse_target(url) == target


@pytest.mark.parametrize(
    "url",
    ["ftp://h/", "http:///x", "http://h:99999/", "http://h:x/", "http://u:p@h/", "http://h:0/", "http://[::1/", "//h"],
)
def test_a_url_that_cannot_be_called_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        parse_target(url)
    assert "u:p" not in raised.value.reason


def test_a_request_is_head_and_body_in_one_piece() -> None:
    request = ProviderRequest("POST", "http://h/x", {"X-A": "ü", "Connection": "close", "content-length": "9"}, b"{}")
    assert request_bytes(request, parse_target(request.url)) == (
        b"POST /x HTTP/1.1\r\nHost: h\r\nX-A: \xc3\xbc\r\nAccept-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}"
    )


def test_a_get_has_no_length_and_a_signed_host_is_kept() -> None:
    request = ProviderRequest("GET", "http://h:81/x", {"host": "h:81"}, b"")
    assert request_bytes(request, parse_target(request.url)) == (
        b"GET /x HTTP/1.1\r\nhost: h:81\r\nAccept-Encoding: identity\r\n\r\n"
    )


@pytest.mark.parametrize("method", ["GET /", "G\r\nX", ""])
def test_a_method_cannot_carry_a_second_line(method: str) -> None:
    with pytest.raises(InvalidRequest):
        request_bytes(ProviderRequest(method, "http://h/", {}, b""), parse_target("http://h/"))


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://h/", "http://proxy:3128"),
        ("https://h/", None),
        ("http://inside.example/", None),
        ("http://h:81/", None),
    ],
)
def test_the_environment_chooses_the_proxy(url: str, proxy: str | None) -> None:
    assert proxy_for(url, {"http": "proxy:3128", "no": "inside.example,h:81"}) == proxy
