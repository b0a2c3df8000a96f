"""The environment chooses the proxy of a URL."""

import pytest

from opensearch_ml_stream.connectors.errors import Unavailable
from opensearch_ml_stream.plugin.upstream.proxies import Proxy, parse_proxy, proxy_for
from opensearch_ml_stream.plugin.upstream.target import parse_target

PROXY = Proxy("proxy", 3128, "proxy:3128")


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://h/", PROXY),
        ("https://h/", None),
        ("http://inside.example/", None),
        ("http://sub.inside.example/", None),
        ("http://outside.example/", PROXY),
        ("http://h:81/", None),
        ("http://h:82/", PROXY),
    ],
)
def test_the_environment_chooses_the_proxy(url: str, proxy: Proxy | None) -> None:
    assert proxy_for(parse_target(url), {"http": "proxy:3128", "no": "inside.example,h:81"}) == proxy


def test_each_scheme_has_its_proxy() -> None:
    proxies = {"http": "http://a:1", "https": "http://b:2/"}
    chosen = [proxy_for(parse_target(url), proxies) for url in ("http://h/", "https://h/")]
    assert [proxy and proxy.authority for proxy in chosen] == ["a:1", "b:2"]
    assert proxy_for(parse_target("https://h/"), {}) is None


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://h", Proxy("h", 80, "h:80")),
        ("http://[::1]:3128", Proxy("::1", 3128, "[::1]:3128")),
        ("http://user@h:1", Proxy("h", 1, "h:1", "Basic dXNlcjo=")),
        ("u%3Aser:p%40ss@h:1", Proxy("h", 1, "h:1", "Basic dTpzZXI6cEBzcw==")),
    ],
)
def test_the_url_of_a_proxy_may_have_a_login(url: str, proxy: Proxy) -> None:
    assert parse_proxy(url, "HTTP_PROXY") == proxy


@pytest.mark.parametrize("url", ["", "http://", "http://secret@", "http://secret:x:y", "socks5://secret:1"])
def test_what_is_no_http_proxy_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(Unavailable, match="The environment variable HTTP_PROXY ") as raised:
        parse_proxy(url, "HTTP_PROXY")
    assert "secret" not in raised.value.reason
