"""Which URLs are the same sidecar, and which may not name one."""

import pytest

from opensearch_ml_stream.plugin.cli.command_errors import WrongUsage
from opensearch_ml_stream.plugin.cli.sidecar_url import is_in_clear, sidecar_url

FORM = "--url must be of the form http://host:port"


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://127.0.0.1:9510", "http://127.0.0.1:9510"),
        ("HTTP://Host:80/", "http://host"),
        ("HTTPS://h:443", "https://h"),
        ("https://h:80/a/b/", "https://h:80/a/b"),
        ("http://[::1]:9510", "http://[::1]:9510"),
        ("http://h/a/../b", "http://h/b"),
    ],
)
def test_a_url_has_one_form(text: str, url: str) -> None:
    assert sidecar_url(text) == url
    assert sidecar_url(url) == url


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("localhost:9510", FORM),
        ("http://", FORM),
        ("//h", FORM),
        ("ftp://h", FORM),
        ("http://h?x=1", FORM),
        ("http://h#x", FORM),
        ("http://h:99999999", FORM),
        ("http://h:x", FORM),
        ("http://me:hunter2@h", "--url cannot hold a login"),
        ("http://hunter2@h", "--url cannot hold a login"),
        ("http://good\\@hunter2.evil", "--url cannot hold a login"),
    ],
)
def test_what_is_no_url_of_a_sidecar_is_wrong_usage_and_not_shown(text: str, words: str) -> None:
    with pytest.raises(WrongUsage, match=words) as raised:
        sidecar_url(text)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "in_clear"),
    [
        ("http://127.0.0.1:9510", False),
        ("http://127.5.0.1", False),
        ("http://[::1]:9510", False),
        ("http://localhost:9510", False),
        ("https://h", False),
        ("http://h", True),
        ("http://10.0.0.1:9510", True),
    ],
)
def test_without_tls_only_this_machine_is_safe_from_readers(url: str, in_clear: bool) -> None:
    assert is_in_clear(url) is in_clear
