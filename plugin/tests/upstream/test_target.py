"""A URL becomes an authority to connect to and a request line, and nothing else can be made of it."""

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.upstream.target import Target, parse_target

ODD_CHARACTER = "The connector's url holds white space, a control character or a backslash: percent-encode it"
UNREADABLE = "The connector's url has a host or port that cannot be read"


@pytest.mark.parametrize(
    ("url", "target"),
    [
        (
            "https://API.openai.com/v1/x",
            Target("https", "api.openai.com", 443, "api.openai.com:443", "api.openai.com", "/v1/x"),
        ),
        ("http://h:8080", Target("http", "h", 8080, "h:8080", "h:8080", "/")),
        ("http://h:80/?a=é&d=%20", Target("http", "h", 80, "h:80", "h", "/?a=%C3%A9&d=%20")),
        ("http://[::1]:9/a:b", Target("http", "::1", 9, "[::1]:9", "[::1]:9", "/a:b")),
        (
            "https://bücher.example/ü",
            Target(
                "https", "xn--bcher-kva.example", 443, "xn--bcher-kva.example:443", "xn--bcher-kva.example", "/%C3%BC"
            ),
        ),
    ],
)
def test_a_url_is_taken_apart(url: str, target: Target) -> None:
    assert parse_target(url) == target


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://h/", "Protocol is not http or https: ftp"),
        ("//h", "Protocol is not http or https: "),
        ("http:///x", "The connector's url has no host"),
        ("http://", "The connector's url has no host"),
        ("http://a b/", ODD_CHARACTER),
        ("http://a\x00b/", ODD_CHARACTER),
        ("http://a\\b/", ODD_CHARACTER),
        ("http://h/a b", ODD_CHARACTER),
        ("http://h/a\tb", ODD_CHARACTER),
        ("http://h/a\u2028b", ODD_CHARACTER),
        ("http://h/a\x85b", ODD_CHARACTER),
        (" http://h/", ODD_CHARACTER),
        ("http://h/\n", ODD_CHARACTER),
        ("http://h/a\\b", ODD_CHARACTER),
        ("http://h/p#fragment", "The connector's url has a fragment (#), which no request can send: leave it away"),
        ("http://h#", "The connector's url has a fragment (#), which no request can send: leave it away"),
        ("http://a%2eb/", "The connector's url has percent-encoding in its host"),
        ("http://[fe80::1%eth0]/", "The connector's url has percent-encoding in its host"),
        ("http://h:80:81/", UNREADABLE),
        ("http://[::1]:80:81/", UNREADABLE),
        ("http://[::1]x:80/", UNREADABLE),
        ("http://x[::1]:80/", UNREADABLE),
        ("http://[1.2.3.4]/", UNREADABLE),
        ("http://a!b/", UNREADABLE),
        ("http://h\N{CARE OF}x/", UNREADABLE),
        ("http://h/a/../b", "The connector's url has a path that leads upwards (..)"),
        ("http://h/a/%2E%2e", "The connector's url has a path that leads upwards (..)"),
        ("http://h/a/..%2fb", "The connector's url has a path that leads upwards (..)"),
        ("http://h/a/..%5Cb", "The connector's url has a path that leads upwards (..)"),
        ("http://a@b@c/", "The connector's url holds a user name. Put credentials into a header of the connector"),
        ("http://u:p@h/", "The connector's url holds a user name. Put credentials into a header of the connector"),
        ("http://@h/", "The connector's url holds a user name. Put credentials into a header of the connector"),
        ("http://h:0/", "Port out of range: 0"),
        ("http://h:99999/", UNREADABLE),
        ("http://h:x/", UNREADABLE),
        ("http://[::1/", UNREADABLE),
        ("http://" + "ü" * 64 + "/", UNREADABLE),
    ],
)
def test_a_url_that_cannot_be_called_is_refused_without_repeating_it(url: str, problem: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        parse_target(url)
    assert raised.value.reason == problem


@pytest.mark.parametrize(
    ("url", "authority", "host_header"),
    [
        ("http://h:443/", "h:443", "h:443"),
        ("https://h:443/", "h:443", "h"),
        ("https://h:80/", "h:80", "h:80"),
        ("https://[2606:4700::1111]/", "[2606:4700::1111]:443", "[2606:4700::1111]"),
        ("http://h:/", "h:80", "h"),
        ("http://h:65535/", "h:65535", "h:65535"),
    ],
)
def test_the_host_header_holds_a_port_that_is_not_the_default(url: str, authority: str, host_header: str) -> None:
    target = parse_target(url)
    assert (target.authority, target.host_header) == (authority, host_header)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://h", "/"),
        ("http://h?a=1", "/?a=1"),
        ("http://h/a?", "/a"),
        ("http://h/a%2Fb%20c", "/a%2Fb%20c"),
        ("http://h/v1/m:predict(1)[2]~_-.!$&'*+,;=@", "/v1/m:predict(1)[2]~_-.!$&'*+,;=@"),
        ("http://h/?q=a/b?c", "/?q=a/b?c"),
        ('http://h/"<>^`{|}?"<>^`{|}', "/%22%3C%3E%5E%60%7B%7C%7D?%22%3C%3E%5E%60%7B%7C%7D"),
        ("http://h/..a/b..?../..", "/..a/b..?../.."),
    ],
)
def test_a_path_is_escaped_where_it_is_not_yet(url: str, path: str) -> None:
    assert parse_target(url).path == path
