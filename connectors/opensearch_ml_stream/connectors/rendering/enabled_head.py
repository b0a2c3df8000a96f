"""Turn the provider's streaming on in a request's URL and headers."""

from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit, urlunsplit

from opensearch_ml_stream.connectors.stream_spec import Enable


def enable_head(enable: Enable, url: str, headers: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    """Return the URL and headers of a request with what turns the stream on in them."""
    if enable.url:
        url = _enable_url(enable.url, url)
    if enable.query:
        parts = urlsplit(url)
        own = [pair for pair in parts.query.split("&") if pair and pair.partition("=")[0] not in enable.query]
        url = urlunsplit(parts._replace(query="&".join([*own, urlencode(enable.query)])))
    if enable.headers:
        lower = {name.lower() for name in enable.headers}
        headers = {
            **{name: value for name, value in headers.items() if name.lower() not in lower},
            **enable.headers,
        }
    return url, headers


def _enable_url(replacements: tuple[tuple[str, str], ...], url: str) -> str:
    """Return the URL with the first replacement that applies made in its path, at the path's end if possible.

    A path that has the new string already stays as it is.
    """
    parts = urlsplit(url)
    path = parts.path
    if any(path.endswith(new) for _, new in replacements):
        return url
    for old, new in replacements:
        if path.endswith(old):
            return urlunsplit(parts._replace(path=path.removesuffix(old) + new))
    for old, new in replacements:
        before, separator, after = path.rpartition(old)
        if separator and new not in path:
            return urlunsplit(parts._replace(path=f"{before}{new}{after}"))
    return url
