"""The store's password comes from where other users cannot see it."""

from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.cli.command_errors import WrongUsage
from opensearch_ml_stream.plugin.cli.store_password import with_store_password

URL = "https://me@host:9200/prefix?verify_certs=false"


def test_the_password_of_a_file_is_put_into_the_url(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("p@ss:w/ord%\n")
    assert with_store_password(URL, f"file:{tmp_path}/password") == (
        "https://me:p%40ss%3Aw%2Ford%25@host:9200/prefix?verify_certs=false"
    )


def test_each_host_of_a_cluster_gets_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLSTREAM_STORE_PASSWORD", "a,b")
    assert with_store_password("http://me@one,http://me@two:9", None) == "http://me:a%2Cb@one,http://me:a%2Cb@two:9"


def test_the_environment_has_the_password_of_a_url_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLSTREAM_STORE_PASSWORD", "env:literal")
    monkeypatch.setenv("OTHER", "other")
    assert with_store_password("http://me@h", None) == "http://me:env%3Aliteral@h"
    assert with_store_password("http://me@h", "env:OTHER") == "http://me:other@h"
    for url in ("http://me:own@h", "http://h:9200", "sqlite:///a", "sqlite:///:memory:", "http://[h"):
        assert with_store_password(url, None) == url


def test_without_a_password_the_url_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLSTREAM_STORE_PASSWORD", raising=False)
    assert with_store_password("http://me@h", None) == "http://me@h"


@pytest.mark.parametrize(
    ("url", "option", "words"),
    [
        ("http://me@h", "hunter2", "must be env:NAME, file:PATH or -"),
        ("http://me@h", "file:/nope", "cannot read the file /nope"),
        ("sqlite:///a", "env:HOME", "needs a store with a user"),
        ("http://h", "env:HOME", "needs a store with a user"),
        ("http://me:pw@h", "env:HOME", "needs a store with a user and without a password"),
    ],
)
def test_an_option_that_cannot_be_used_says_why(url: str, option: str, words: str) -> None:
    with pytest.raises(WrongUsage, match=words) as raised:
        with_store_password(url, option)
    assert "hunter2" not in str(raised.value)
