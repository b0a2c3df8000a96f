"""The environment chooses the proxy of a URL."""

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.upstream.proxies import proxy_for


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://h/", "http://proxy:3128"),
        ("https://h/", None),
        ("http://inside.example/", None),
        ("http://sub.inside.example/", None),
        ("http://outside.example/", "http://proxy:3128"),
        ("http://h:81/", None),
        ("http://h:82/", "http://proxy:3128"),
    ],
)
def test_the_environment_chooses_the_proxy(url: str, proxy: str | None) -> None:
    assert proxy_for(url, {"http": "proxy:3128", "no": "inside.example,h:81"}) == proxy


def test_each_scheme_has_its_proxy_and_a_proxy_may_be_reached_over_tls() -> None:
    proxies = {"http": "http://a:1", "https": "https://b:2"}
    assert proxy_for("http://h/", proxies) == "http://a:1"
    assert proxy_for("https://h/", proxies) == "https://b:2"
    assert proxy_for("https://h/", {}) is None


def test_a_url_that_cannot_be_called_has_no_proxy() -> None:
    with pytest.raises(InvalidRequest):
        proxy_for("ftp://h/", {"ftp": "proxy:3128"})
