"""The store's password: from the environment, a file or a prompt. `__main__` takes it off the command line."""

import os
from urllib.parse import SplitResult, quote, urlsplit

from opensearch_ml_stream.plugin.cli.command_errors import WrongUsage
from opensearch_ml_stream.plugin.cli.options import check_secret_source, read_secret
from opensearch_ml_stream.plugin.store.cluster_url import split_urls

PASSWORD_VARIABLE = "MLSTREAM_STORE_PASSWORD"

_OPTION = "--store-password"


def with_store_password(url: str, option: str | None) -> str:
    """Return the store's URL with the password of `--store-password` or, if it has none, of the environment.

    Raises:
        WrongUsage: If the option is a password itself, cannot be read, or does not fit the URL.
    """
    return ",".join(_with_password(one, option) for one in split_urls(url))


def _with_password(url: str, option: str | None) -> str:
    if option is None:
        password = os.environ.get(PASSWORD_VARIABLE)
        parts = _split(url)
        if not password or parts is None or not parts.username or parts.password:
            return url
        return _with_userinfo(parts, f"{_user(parts)}:{quote(password, safe='')}")
    check_secret_source(_OPTION, option)
    parts = _split(url)
    if parts is None or not parts.username or parts.password:
        raise WrongUsage(f"{_OPTION} needs a store with a user and without a password: --store https://user@host:9200")
    return _with_userinfo(parts, f"{_user(parts)}:{quote(read_secret('store', option), safe='')}")


def _split(url: str) -> SplitResult | None:
    """Return the parts of an OpenSearch's URL, None for any other store."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return parts if parts.scheme in ("http", "https") else None


def _user(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[0].partition(":")[0]


def _with_userinfo(parts: SplitResult, userinfo: str) -> str:
    return parts._replace(netloc=f"{userinfo}@{parts.netloc.rpartition('@')[2]}").geturl()
