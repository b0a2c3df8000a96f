"""Checks provider URLs against the operator's trusted endpoints: RE2 expressions, each for the whole URL."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters, fill_with_stand_ins
from opensearch_ml_stream.connectors.syntax.regex import compile_regex
from opensearch_ml_stream.plugin.settings import Settings

MAX_PATTERN_LENGTH = 256  # as in ML Commons

_SETTING_NAME = "plugins.ml_commons.trusted_connector_endpoints_regex"


def check_endpoint(url: str, settings: Settings) -> None:
    """Raise InvalidRequest if no regex of the trusted endpoints matches the whole URL."""
    if not _is_trusted(url, settings.trusted_connector_endpoints_regex):
        raise InvalidRequest("Connector URL is not matching the trusted connector endpoint regex")


@lru_cache(maxsize=1024)  # checked at every call, and most calls have the same few URLs
def _is_trusted(url: str, patterns: tuple[str, ...]) -> bool:
    try:
        has_user = "@" in urlsplit(url).netloc  # `http://trusted:80@other/` goes to `other`
    except ValueError:
        return False
    return not has_user and any(pattern.fullmatch(url) for pattern in compile_patterns(_SETTING_NAME, patterns))


@lru_cache(maxsize=32)
def compile_patterns(setting: str, patterns: tuple[str, ...]) -> tuple[Any, ...]:
    """Compile the regular expressions of a setting. InvalidRequest names the one that is wrong."""
    return tuple(_compile(setting, pattern) for pattern in patterns)


def fill_url(url: str, parameters: Mapping[str, str]) -> str:
    """Fill a connector's parameters into its URL; what only a request can fill is left as it is."""
    connector = ConnectorParameters.compile(parameters)
    return fill_with_stand_ins(url, connector, {}, lambda name: "${parameters." + name + "}")


def _compile(setting: str, pattern: str) -> Any:
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise InvalidRequest(f"{setting}: a regex has more than {MAX_PATTERN_LENGTH} characters: {pattern[:40]}...")
    try:
        return compile_regex(pattern)
    except InvalidRequest as error:
        raise InvalidRequest(
            f"{setting}: {error.reason}. Patterns are RE2: no back-references, no look-around"
        ) from None
