"""Values that a connector's author left to its user, such as `<YOUR RESOURCE NAME>` in ML Commons' public blueprints.

A connector is stored with them, as in ML Commons, and refused when it is called. No URL holds angle brackets; elsewhere
they may be meant, as in the stop word `</s>`, so there only a text that asks its reader for something counts.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.filled_template import parameter_names
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters, find_placeholders

MAX_SHOWN_CHARS = 100

_IN_BRACKETS = re.compile(r"<[^<>]*>")
_REQUEST = re.compile(r"(?i)(?<![a-z])(?:your|please|replace)(?![a-z])")
_WITHOUT_BRACKETS = re.compile(r"(?:YOUR|PLEASE|REPLACE)[ _-][A-Z0-9 _-]+")
_STAND_IN = "1"  # fits a host's name, a port and a path


def is_to_be_given(value: object) -> bool:
    """Whether a value only stands for the one that a user has to give: `<region>`, `YOUR API KEY`."""
    if not isinstance(value, str):
        return False
    text = value.strip()
    return bool(_IN_BRACKETS.fullmatch(text) or _WITHOUT_BRACKETS.fullmatch(text))


def left_in_url(url: str) -> str | None:
    """Return the first text in a URL that stands for a value to be given, None if there is none."""
    left = _IN_BRACKETS.search(url) if "<" in url else None
    return None if left is None else left[0][:MAX_SHOWN_CHARS]


def check_url_is_given(url: str) -> None:
    """Raise InvalidRequest for a URL that leaves something to be given."""
    if left := left_in_url(url):
        raise not_given(f"url ({left})")


def left_in_header(value: str) -> str | None:
    """Return the first text in a header, as the connector writes it, that stands for a value to be given, or None."""
    left = next((text for text in _IN_BRACKETS.findall(value) if _REQUEST.search(text)), None)
    return None if left is None else left[:MAX_SHOWN_CHARS]


def with_stand_ins(url: str) -> str:
    """Return a URL in which something is given for all that it leaves to be given, so that the rest can be checked."""
    return _IN_BRACKETS.sub(_STAND_IN, url) if "<" in url else url


def not_given(what: str) -> InvalidRequest:
    """Return the error of a call to a connector, of which `what` is still to be given."""
    return InvalidRequest(
        f"The connector's {what} is not filled in: replace the placeholder in the connector by your own value"
    )


def left_in_connector(connector: Mapping[str, Any]) -> Iterator[str]:
    """Name each value that a connector's document leaves to be given, its credential in clear.

    The text of a credential is not repeated.
    """
    for name in ("name", "version", "description"):
        if is_to_be_given(connector.get(name)):
            yield _shown(f"[{name}]", connector[name])
    parameters, actions = connector.get("parameters") or {}, connector["actions"]
    in_urls = _parameters_of_urls(parameters, [action["url"] for action in actions])
    for name, value in parameters.items():
        left = left_in_url(value) if name in in_urls else None
        if left or (is_to_be_given(value) and _REQUEST.search(value)):
            yield _shown(f"[parameters.{name}]", left or value)
    for name, value in (connector.get("credential") or {}).items():
        if is_to_be_given(value):
            yield f"[credential.{name}] is not filled in"
    for number, action in enumerate(actions):
        yield from _left_in_action(f"actions.{number}", action)


def _left_in_action(place: str, action: Mapping[str, Any]) -> Iterator[str]:
    for text in _IN_BRACKETS.findall(action["url"]):
        yield _shown(f"[{place}.url]", text)
    for name, value in (action.get("headers") or {}).items():
        if text := left_in_header(value):
            yield _shown(f"[{place}.headers.{name}]", text)


def _parameters_of_urls(parameters: Mapping[str, str], urls: list[str]) -> frozenset[str]:
    names = (match[2] for url in urls for match in find_placeholders(url))
    return parameter_names(names, ConnectorParameters.compile(parameters))


def _shown(place: str, text: str) -> str:
    return f"{place} is not filled in: {text[:MAX_SHOWN_CHARS]}"
