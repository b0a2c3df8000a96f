"""Which provider URLs are trusted: the operator's list of regular expressions, RE2 syntax, each over the whole URL."""

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

import re2

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters, Missing, Parameters, Template
from opensearch_ml_stream.plugin.settings import Settings

MAX_PATTERN_LENGTH = 256  # as in ML Commons

_TRUSTED = "plugins.ml_commons.trusted_connector_endpoints_regex"


def check_endpoint(url: str, settings: Settings) -> None:
    """InvalidRequest if no regex of the trusted endpoints matches the whole URL."""
    if not _is_trusted(url, settings.trusted_connector_endpoints_regex):
        raise InvalidRequest("Connector URL is not matching the trusted connector endpoint regex")


@lru_cache(maxsize=1024)  # asked at every call, and most calls are of the same few URLs
def _is_trusted(url: str, patterns: tuple[str, ...]) -> bool:
    try:
        user = "@" in urlsplit(url).netloc  # `http://trusted:80@other/` goes to `other`
    except ValueError:
        return False
    return not user and any(pattern.fullmatch(url) for pattern in compile_patterns(_TRUSTED, patterns))


@lru_cache(maxsize=32)
def compile_patterns(setting: str, patterns: tuple[str, ...]) -> tuple["re2._Regexp", ...]:
    """The compiled regular expressions of a setting; InvalidRequest names the one that is wrong."""
    return tuple(_compile(setting, pattern) for pattern in patterns)


def fill_url(url: str, parameters: Mapping[str, str]) -> str:
    """The URL with a connector's parameters put in; what only a request can fill is left as it is."""
    template = Template.compile(url, json=False)
    connector = ConnectorParameters.compile(parameters)
    left: dict[str, str] = {}
    while True:
        try:
            return template.render_text(Parameters(connector, left))
        except Missing as missing:
            left.update({name: "${parameters." + name + "}" for name in missing.names})


def _compile(setting: str, pattern: str) -> "re2._Regexp":
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise InvalidRequest(f"{setting}: a regex has more than {MAX_PATTERN_LENGTH} characters: {pattern[:40]}...")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        why = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        raise InvalidRequest(
            f"{setting}: [{pattern}] is not a regex that RE2 takes (no back-references, no look-around): {why}"
        ) from None
