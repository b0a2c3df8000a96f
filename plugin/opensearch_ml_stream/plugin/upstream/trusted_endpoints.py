"""Checks provider URLs against the operator's trusted endpoints; see `settings.endpoint_patterns`."""

import re
from collections.abc import Mapping
from functools import lru_cache

from opensearch_ml_stream.connectors.documents import MAX_URL_LENGTH
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters, fill_with_stand_ins
from opensearch_ml_stream.connectors.rendering.unfilled_values import left_in_url, with_stand_ins
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.settings.endpoint_patterns import EndpointPattern, compile_endpoint
from opensearch_ml_stream.plugin.settings.endpoint_permissions import EndpointPermissions
from opensearch_ml_stream.plugin.upstream.target import parse_target

_NOT_TRUSTED = "Connector URL is not matching the trusted connector endpoint regex"
_PLACEHOLDER = "${parameters."
_ORIGIN = re.compile(r"(?:[^/?#]*://)?[^/?#]*")
_NEVER_IN_ORIGIN = re.compile(r"[\s\x00-\x20\x7f-\x9f\\@%]")


def check_endpoint(url: str, settings: Settings) -> None:
    """Raise InvalidRequest if a URL cannot be called, or if no regex of the trusted endpoints matches it."""
    if not is_trusted(url, settings.trusted_connector_endpoints_regex):
        raise untrusted(url)


def untrusted(url: str) -> InvalidRequest:
    """Return the error for a URL that no regex of the trusted endpoints matches."""
    return _not_trusted(parse_target(url).origins[0])


def check_connector_url(url: str, parameters: Mapping[str, str], settings: Settings) -> None:
    """Check a connector's URL when it is stored, as far as its own parameters fill it.

    What only a request fills is checked at each call, by `check_endpoint`. Where something is left to be given, with
    which no call is made, only the rest is checked.
    """
    filled = fill_url(url, parameters)
    try:
        _check_filled(filled if len(filled) > MAX_URL_LENGTH else with_stand_ins(filled), settings)
    except InvalidRequest:
        if left := left_in_url(filled):
            raise InvalidRequest(f"{_NOT_TRUSTED}: put your value in place of {left} first") from None
        raise


def _check_filled(filled: str, settings: Settings) -> None:
    match = _ORIGIN.match(filled)
    origin = match[0] if match is not None else ""
    if _PLACEHOLDER not in origin or len(filled) > MAX_URL_LENGTH:
        check_endpoint(filled, settings)
        return
    patterns = _compile(settings.trusted_connector_endpoints_regex)
    path = filled[len(origin) :] or "/"
    if _NEVER_IN_ORIGIN.search(origin) or not any(pattern.matches(origin, path) for pattern in patterns):
        raise _not_trusted(None)


@lru_cache(maxsize=256)  # checked at every call, and most calls have the same few URLs
def is_trusted(url: str, patterns: tuple[str, ...]) -> bool:
    """Return whether one of the patterns allows a URL. InvalidRequest if it cannot be called."""
    target = parse_target(url)
    return any(pattern.matches(origin, target.path) for pattern in _compile(patterns) for origin in target.origins)


def is_allowed(endpoint: str, permissions: EndpointPermissions, *, needs_private: bool) -> bool:
    """Return whether all that the server needs is allowed by patterns of whatever form."""
    if not is_trusted(endpoint, permissions.patterns):
        return False
    if not needs_private:
        return True
    private = permissions.private_patterns
    return permissions.private_allowed and (not private or is_trusted(endpoint, private))


def fill_url(url: str, parameters: Mapping[str, str]) -> str:
    """Fill a connector's parameters into its URL; what only a request can fill is left as it is."""
    connector = ConnectorParameters.compile(parameters)
    return fill_with_stand_ins(url, connector, {}, lambda name: "${parameters." + name + "}")


@lru_cache(maxsize=32)
def _compile(patterns: tuple[str, ...]) -> tuple[EndpointPattern, ...]:
    return tuple(compile_endpoint(pattern) for pattern in patterns)


def _not_trusted(origin: str | None) -> InvalidRequest:
    """Return the error, in ML Commons' words and with what to do. A host that `parse_target` takes can be pasted."""
    advice = "" if origin is None else f". If {origin} is to be trusted: opensearch-ml-stream endpoints allow {origin}"
    return InvalidRequest(f"{_NOT_TRUSTED}{advice}")
