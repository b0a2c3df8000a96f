"""Values in a connector that nobody has filled in. Calls of such a connector are refused.

One kind are values that the connector's user has to give, such as `<YOUR RESOURCE NAME>` in ML Commons' public
blueprints. A URL never holds angle brackets. Elsewhere they may be meant, as in the stop word `</s>`, so there only a
text that asks its reader for something counts. The other kind are placeholders of an unknown form, such as
`${credentials.key}`, which ML Commons sends as they stand. A connector with either is stored, as in ML Commons, with a
warning.
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

CREDENTIAL = re.compile(r"\$\{credential\.([^\s{}]+)\}")  # as headers have them
_IN_BRACES = re.compile(r"\$\{[^{}]*\}?")
_NAME_IN_BRACES = re.compile(r"\$\{\s*[A-Za-z_][\s\w.-]*\}")
_NEARLY_OURS = re.compile(r"(?i)\$\{\s*(?P<space>parameters?|params?|credentials?)\b[.\s]*(?P<name>[\w.-]{0,100})")


def is_to_be_given(value: object) -> bool:
    """Whether a value only stands for the one that a user has to give: `<region>`, `YOUR API KEY`."""
    if not isinstance(value, str):
        return False
    text = value.strip()
    return bool(_IN_BRACKETS.fullmatch(text) or _WITHOUT_BRACKETS.fullmatch(text))


def left_in_url(url: str) -> str | None:
    """Return the first placeholder for a user's value in a URL, None if there is none."""
    left = _IN_BRACKETS.search(url) if "<" in url else None
    return None if left is None else left[0][:MAX_SHOWN_CHARS]


def check_url_is_given(url: str) -> None:
    """Raise InvalidRequest for a URL with a value that its user has to give."""
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
    """Return the error of a call to a connector in which `what` is not filled in."""
    return InvalidRequest(
        f"The connector's {what} is not filled in: replace the placeholder in the connector by your own value"
    )


def unknown_placeholders(
    url: str, headers: Mapping[str, str], body: str | None, parameters: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield where an action has a placeholder that nothing fills, and which: of each text the first.

    `parameters` are the connector's. Their values count where they get into the action's texts; names in braces may be
    meant there, as in a prompt about shells, so only what is nearly `parameters` or `credential` counts.
    """
    body = parameters.get("http_body", "") if body is None else body
    texts = [("url", url, False, False), ("request_body", body, False, False)]
    texts += [(f"header '{name}'", value, True, False) for name, value in headers.items()]
    used = _names_used([url, *headers.values(), body], parameters)
    texts += [(f"parameter [{name}]", parameters.get(name, ""), False, True) for name in sorted(used)]
    for place, text, is_header, is_value in texts:
        for match in _unfilled(text, is_header=is_header) if "${" in text else ():
            ours = _NEARLY_OURS.match(match)
            if ours is not None or (not is_value and _NAME_IN_BRACES.fullmatch(match)):
                shown = match[:MAX_SHOWN_CHARS]
                yield place, f"the placeholder {shown}, which nothing fills: {_advice(shown, ours, is_header)}"
                break


def _unfilled(text: str, *, is_header: bool) -> Iterator[str]:
    """Return what stands in braces after a `$`, but those placeholders that are filled, and what is within them."""
    filled = {match.end(1) if match[1] else match.start(): match.end() for match in find_placeholders(text)}
    if is_header:
        filled |= {match.start(): match.end() for match in CREDENTIAL.finditer(text)}
    end = 0
    for match in _IN_BRACES.finditer(text):
        end = max(end, filled.get(match.start(), 0))
        if match.start() >= end:
            yield match[0]


def _advice(placeholder: str, ours: re.Match[str] | None, is_header: bool) -> str:
    if ours is None:
        return f"a parameter is written ${{parameters.{placeholder[2:].strip('} ')}}}"
    name = ours["name"] or "NAME"
    if ours["space"].lower().startswith("param"):
        return f"write ${{parameters.{name}}}"
    if is_header:
        return f"write ${{credential.{name}}}"
    return f"credentials are filled into an action's headers, as ${{credential.{name}}}, and nowhere else"


def left_in_connector(connector: Mapping[str, Any]) -> Iterator[str]:
    """Name each value that a connector's document leaves to be given, its credential in clear.

    The text of a credential is not repeated.
    """
    for name in ("name", "version", "description"):
        if is_to_be_given(connector.get(name)):
            yield _shown(f"[{name}]", connector[name])
    parameters, actions = connector.get("parameters") or {}, connector["actions"]
    in_urls = _names_used([action["url"] for action in actions], parameters)
    for name, value in parameters.items():
        left = left_in_url(value) if name in in_urls else None
        if left or (is_to_be_given(value) and _REQUEST.search(value)):
            yield _shown(f"[parameters.{name}]", left or value)
    for name, value in (connector.get("credential") or {}).items():
        if is_to_be_given(value):
            yield f"[credential.{name}] is not filled in"
    for number, action in enumerate(actions):
        yield from _left_in_action(f"actions.{number}", action)
    for number, action in enumerate(actions):
        headers, body = action.get("headers") or {}, action.get("request_body")
        for where, what in unknown_placeholders(action["url"], headers, body, parameters):
            yield f"[actions.{number}]: {where} has {what}"


def _left_in_action(place: str, action: Mapping[str, Any]) -> Iterator[str]:
    for text in _IN_BRACKETS.findall(action["url"]):
        yield _shown(f"[{place}.url]", text)
    for name, value in (action.get("headers") or {}).items():
        if text := left_in_header(value):
            yield _shown(f"[{place}.headers.{name}]", text)


def _names_used(templates: list[str], parameters: Mapping[str, str]) -> frozenset[str]:
    """Return the names of all parameters whose values get into these templates."""
    names = (match[2] for template in templates for match in find_placeholders(template))
    return parameter_names(names, ConnectorParameters.compile(parameters))


def _shown(place: str, text: str) -> str:
    return f"{place} is not filled in: {text[:MAX_SHOWN_CHARS]}"
