"""YAML for clients that ask for it: a request body becomes JSON at the door, a response becomes YAML on its way out.

Scalars are those of JSON (YAML 1.2), so that `yes`, a date and `017` are strings. Aliases and tags are refused, since
few bytes of them stand for much.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from opensearch_ml_stream.connectors.errors import BodyTooLarge, InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsontext

CONTENT_TYPE = "application/yaml"
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's takes 1 µs a byte, the one in Python 20
MAX_BYTES = 32 * 1024 if hasattr(yaml, "CSafeLoader") else 2 * 1024

_MAX_INDENT = 20  # characters; else a deeply nested array of numbers would become a hundred times as long

_NULLS = ("", "~", "null", "Null", "NULL")
_BOOLEANS = {"true": "true", "True": "true", "TRUE": "true", "false": "false", "False": "false", "FALSE": "false"}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_PLAIN_KEY = re.compile(r"(?!(?:y|n|yes|no|on|off|true|false|null)\Z)[A-Za-z_][A-Za-z0-9_.-]*", re.IGNORECASE)
_NOT_PRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def to_json(data: bytes) -> bytes:
    """Return the first document of a YAML body as JSON text.

    BodyTooLarge beyond MAX_BYTES. InvalidRequest if it is not YAML, is nested too deeply, or has an alias or a tag.
    """
    if len(data) > MAX_BYTES:
        raise BodyTooLarge(f"A YAML body may have {MAX_BYTES} bytes; send JSON", type="content_too_long_exception")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"The request body is not UTF-8 at byte {error.start}", type="parse_exception") from None
    try:
        return "".join(_json_parts(text)).encode()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = "" if mark is None else f" at line {mark.line + 1}, column {mark.column + 1}"
        raise _not_yaml(f"{error.problem}{where}") from None
    except yaml.YAMLError:
        raise _not_yaml("it has a character that is not allowed") from None


def _json_parts(text: str) -> Iterator[str]:
    """Yield the pieces of the JSON text, event by event, so that nesting ends the parsing and not the worker."""
    open_containers: list[tuple[str, int]] = []  # how each ends, and how many nodes it has
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.DocumentEndEvent):
            return
        if isinstance(event, yaml.CollectionEndEvent):
            yield open_containers.pop()[0]
        elif isinstance(event, yaml.NodeEvent):
            is_key = False
            if open_containers:
                end, count = open_containers[-1]
                open_containers[-1] = (end, count + 1)
                is_key = end == "}" and count % 2 == 0
                yield "" if count == 0 else ":" if end == "}" and not is_key else ","
            if isinstance(event, yaml.ScalarEvent):
                yield _scalar(event, is_key=is_key)
            else:
                yield _start(event, is_key=is_key)
                open_containers.append(("}" if isinstance(event, yaml.MappingStartEvent) else "]", 0))
                if len(open_containers) > jsontext.MAX_DEPTH:
                    raise jsontext.too_deep()


def _scalar(event: yaml.ScalarEvent, *, is_key: bool) -> str:
    value: str = event.value
    if event.tag is not None and event.tag != "!":
        raise _not_yaml("tags are not supported")
    if is_key or event.style:  # a plain one has None, or "" from libyaml
        return json.dumps(value)
    if value in _NULLS:
        return "null"
    return _BOOLEANS.get(value) or (value if _NUMBER.fullmatch(value) else json.dumps(value))


def _start(event: yaml.NodeEvent, *, is_key: bool) -> str:
    if isinstance(event, yaml.AliasEvent):
        raise _not_yaml("aliases are not supported")
    if getattr(event, "tag", None) is not None:
        raise _not_yaml("tags are not supported")
    if is_key:
        raise _not_yaml("the name of a field must be a string")
    return "{" if isinstance(event, yaml.MappingStartEvent) else "["


def _not_yaml(problem: str) -> InvalidRequest:
    return InvalidRequest(f"The request body is not YAML as it is read here: {problem}", type="parse_exception")


def to_yaml(value: Any) -> bytes:
    """Return a JSON value as a YAML document, laid out as OpenSearch does: every string in double quotes."""
    lines = ["---"]
    _add_lines(lines, value, "", "")
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")


def _add_lines(lines: list[str], value: Any, first: str, indent: str) -> None:
    """Add the lines of a value: `first` is before the first of them, `indent` before the others."""
    if not isinstance(value, dict | list) or not value or len(indent) > _MAX_INDENT:
        lines.append(first + _on_one_line(value))
    elif isinstance(value, dict):
        for key, item in value.items():
            name = f"{first}{key if _PLAIN_KEY.fullmatch(key) else _on_one_line(key)}:"
            if isinstance(item, dict | list) and item and len(indent) < _MAX_INDENT:
                lines.append(name)
                inner = f"{indent}  " if isinstance(item, dict) else indent
                _add_lines(lines, item, inner, inner)
            else:
                lines.append(f"{name} {_on_one_line(item)}")
            first = indent
    else:
        for item in value:
            _add_lines(lines, item, f"{first}- ", f"{indent}  ")
            first = indent


def _on_one_line(value: Any) -> str:
    """Return a value as JSON, which is YAML too, but for characters that JSON takes and YAML does not."""
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and "." not in text:
        return text.replace("e", ".0e")  # 1e+20 is a string to readers of YAML 1.1
    return _NOT_PRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
