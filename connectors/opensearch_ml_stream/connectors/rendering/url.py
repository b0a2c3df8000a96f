"""A connector's URL: filled with a request's percent-encoded values, checked, and split into parts to compare."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from opensearch_ml_stream.connectors.documents import MAX_URL_LENGTH, check_url_length
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.template import Parameters, Template

CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")

# The path of one of Bedrock's models ends in one of these, some with more behind it.
_BEDROCK_CALLS = ("invoke", "converse", "count-tokens")
_QUERY = re.compile(r"[?#]")
_DEFAULT_PORTS = {"http": 80, "https": 443}


class Origin(NamedTuple):
    """Where a URL leads to: `host` in lower case and None without one, `port` with the scheme's default."""

    scheme: str
    user: str
    host: str | None
    port: int | None


def render_url(template: Template, parameters: Parameters) -> str:
    """Return the URL with the request's values percent-encoded, so that none can change its path or query.

    A value that fills one segment of the path, with others behind it, stays one: its slashes are encoded too. At the
    end of a path it may be several, as the names of Workers AI's models are.
    """
    values = _PercentEncoded(parameters.request, _segments(template))
    url = template.render_text(Parameters(parameters.connector, values, parameters.stand_in))
    if len(url) > MAX_URL_LENGTH:
        check_url_length(len(url))
    return _with_bedrock_model(url) if "/model/" in url else url


def _with_bedrock_model(url: str) -> str:
    """Return a URL of Bedrock with its model's id as one segment, as Bedrock wants it: an ARN has a slash within."""
    query = _QUERY.search(url)
    path = url if query is None else url[: query.start()]
    before, _, rest = path.partition("/model/")
    model, _, call = rest.rpartition("/")
    if "/" not in model or not call.startswith(_BEDROCK_CALLS):
        return url
    return f"{before}/model/{model.replace('/', '%2F')}/{call}{url[len(path) :]}"


def _segments(template: Template) -> frozenset[str]:
    """Return the names of the parameters that fill one segment of a URL's path, with others behind it."""
    around = zip(template.literals, template.placeholders, template.literals[1:], strict=False)
    return frozenset(one.name for before, one, after in around if before.endswith("/") and after.startswith("/"))


def split_url(url: str) -> tuple[Origin, str] | None:
    """Return a URL's origin, as it is parsed and not as it is written, and the rest; None if it cannot be parsed."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    user, at, _ = parts.netloc.rpartition("@")
    default = _DEFAULT_PORTS.get(parts.scheme)
    origin = Origin(parts.scheme, user + at, parts.hostname, default if port is None else port)
    return origin, parts._replace(scheme="", netloc="").geturl()


def find_origin(url: str) -> Origin | None:
    """Return a URL's origin, None if it cannot be parsed."""
    return None if (parts := split_url(url)) is None else parts[0]


@lru_cache(maxsize=256)  # most requests go to the same few URLs; up to 4 MB of them, that of urlsplit as many
def check_url(url: str) -> None:
    """Raise InvalidRequest for a URL that is not one of HTTP, or that has `..` in its path."""
    try:
        parts = urlsplit(url)
    except ValueError:  # a bracket without its other half, a host name that is none after normalisation
        raise _no_uri() from None
    if parts.scheme not in _DEFAULT_PORTS:
        raise InvalidRequest(f"Protocol is not http or https: {parts.scheme}")
    if not parts.hostname or ".." in parts.path.split("/") or CONTROL.search(url):
        raise _no_uri()


def check_characters(value: str) -> None:
    """Raise InvalidRequest for half of a surrogate pair."""
    try:
        value.encode()
    except UnicodeEncodeError:  # a script's result or a connector's own parameter may hold it
        raise InvalidRequest("A value in the connector's url or headers holds half of a surrogate pair") from None


class _PercentEncoded(Mapping[str, str]):
    """Values percent-encoded when they are read: most parameters are no part of the URL, and some are long.

    Each is encoded once, and no more of them than a URL may have.
    """

    def __init__(self, values: Mapping[str, str], segments: frozenset[str]) -> None:
        self._values = values
        self._segments = segments
        self._encoded: dict[str, str] = {}
        self._length = 0

    def __getitem__(self, name: str) -> str:
        if name not in self._encoded:
            value = self._values[name]
            self._length += len(value)
            check_url_length(self._length)
            check_characters(value)
            self._encoded[name] = quote(value, safe=":@,-._~" if name in self._segments else ":@,/-._~")
        return self._encoded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _no_uri() -> InvalidRequest:
    return InvalidRequest(
        "Encountered error when trying to create uri from endpoint in ml connector. "
        "Please update the endpoint in connection configuration"
    )
