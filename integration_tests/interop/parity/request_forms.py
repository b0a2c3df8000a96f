"""Exchanges about the form of requests: methods, paths, query parameters, content types, bodies."""

from collections.abc import Mapping
from typing import Any

from integration_tests.interop.parity.connectors import CONNECTOR
from integration_tests.interop.parity.exchanges import Exchanges, Step

CREATE: Step = ("POST /connectors/_create", CONNECTOR)
_MINIMAL = b'{"name":"@","version":1,"protocol":"http","credential":{"k":"v"},"actions":[]}'
_YAML = b"""---
name: parity
version: 1
protocol: http
parameters:
  model: m
  number: 0.5
credential: {key: k}
actions:
- action_type: predict
  method: POST
  url: http://127.0.0.1:1/
  request_body: |
    {"a": "${parameters.a}"}
"""


_IN_QUERY = "source_content_type=application/json&source=%7B%22query%22:%7B%22ids%22:%7B%22values%22:%5B%5D%7D%7D%7D"


def _get(query: str, headers: Mapping[str, str] | None = None) -> list[Step]:
    return [CREATE, (f"GET /connectors/@connector{query}", None, headers or {})]


def _sent(body: bytes, content_type: str) -> list[Step]:
    return [("POST /connectors/_create", body, {"Content-Type": content_type}), ("GET /connectors/@connector", None)]


METHODS: Exchanges = {
    f"{method} {path}": [(f"{method} {path}", None)]
    for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS")
    for path in (
        "/connectors/_create",
        "/connectors/nobody",
        "/connectors/_search",
        "/models/nobody/_predict",
        "/models/_register",
        "/models/nobody",
        "/tasks/nobody",
        "/nowhere",
    )
    if (method, path) not in (("GET", "/connectors/_search"), ("POST", "/connectors/_search"))
}

QUERIES: Exchanges = {
    "query: pretty": _get("?pretty"),
    "query: pretty=false": _get("?pretty=false"),
    "query: pretty in words": _get("?pretty=maybe"),
    "query: human": _get("?human=true"),
    "query: error_trace": _get("?error_trace=true"),
    "query: an unknown parameter": _get("?color=red"),
    "query: two unknown parameters": _get("?color=red&size=5"),
    "query: nearly a known parameter": _get("?prety=true"),
    "query: an error with error_trace": [("GET /connectors/nobody?error_trace=true", None)],
    "query: an error with pretty": [("GET /connectors/nobody?pretty", None)],
    **{
        f"filter_path: {pattern}": _get(f"?filter_path={pattern}")
        for pattern in (
            "name",
            "name,version",
            "actions.url",
            "actions.*",
            "*.model",
            "**.url",
            "-name",
            "-actions",
            "-**.url",
            "nothing",
            "na*",
            "parameters",
            "actions.headers.Authorization",
            "",
            "*",
            "**",
            "actions,-actions.url",
        )
    },
    "filter_path: an error": [("GET /connectors/nobody?filter_path=nothing", None)],
    "filter_path: a search": [
        CREATE,
        (f"GET /connectors/_search?filter_path=hits.total,_shards.failed&{_IN_QUERY}", None),
    ],
    "source without its content type": [("GET /connectors/_search?source=%7B%7D", None)],
}

CONTENT_TYPES: Exchanges = {
    **{
        f"content type: {kind or 'empty'}": _sent(_MINIMAL, kind)
        for kind in (
            "",
            "text/plain",
            "application/json; charset=utf-8",
            "application/json;charset=latin1",
            "APPLICATION/JSON",
            "application/x-ndjson",
            "application/vnd.opensearch+json",
            "application/x-www-form-urlencoded",
            "application/xml",
            "json",
            "*/*",
        )
    },
    "content type: JSON that says YAML": _sent(_MINIMAL, "application/yaml"),
    "content type: YAML that says JSON": _sent(_YAML, "application/json"),
    "content type: with a GET": _get("", {"Content-Type": "text/plain"}),
}

BODIES: Exchanges = {
    "body: cut off": _sent(b'{"name": "x"', "application/json"),
    "body: an array": _sent(b"[1]", "application/json"),
    "body: a string": _sent(b'"x"', "application/json"),
    "body: null": _sent(b"null", "application/json"),
    "body: blank": _sent(b"  ", "application/json"),
    "body: not UTF-8": _sent(b'{"name": "\xff"}', "application/json"),
    "body: a comment": _sent(_MINIMAL.replace(b"{", b"/* x */ {", 1), "application/json"),
    "body: a byte order mark": _sent(b"\xef\xbb\xbf" + _MINIMAL, "application/json"),
    "body: a field twice": _sent(b'{"name":"a",' + _MINIMAL[1:], "application/json"),
    "body: a brace more": _sent(_MINIMAL + b"}", "application/json"),
    "body: text behind": _sent(_MINIMAL + b" x", "application/json"),
    "body: single quotes": _sent(b"{'name': 'x'}", "application/json"),
    "body: NaN": _sent(_MINIMAL.replace(b":1,", b":NaN,"), "application/json"),
    "body: a comma more": _sent(_MINIMAL.replace(b"[]}", b"[],}"), "application/json"),
}


def _as(accept: str, path: str = "/connectors/@connector") -> list[Step]:
    return [CREATE, (f"GET {path}", None, {"Accept": accept})]


FORMATS: Exchanges = {
    "YAML": _sent(_YAML, "application/yaml"),
    "YAML: not YAML": _sent(b"a: [", "application/yaml"),
    "YAML: an alias": _sent(
        b"name: &a x\nversion: *a\nprotocol: http\ncredential: {k: v}\nactions: []\n", "application/yaml"
    ),
    "YAML: a field twice": _sent(b"name: a\nname: b\n", "application/yaml"),
    "YAML: two documents": _sent(_YAML + b"---\nname: other\n", "application/yaml"),
    "YAML: a scalar": _sent(b"hello", "application/yaml"),
    "YAML: a date, yes, an octal number": _sent(
        _YAML.replace(
            b"0.5", b"0.5\n  d: 2020-01-01\n  y: yes\n  o: 017\n  t: true\n  n: null\n  e:\n  f: 1e3\n  s: 1:30"
        ),
        "application/yaml",
    ),
    "YAML: in a prediction": [
        ("POST /models/@echomodel/_predict", b"parameters:\n  input: hi\n", {"Content-Type": "application/yaml"}),
    ],
    "format: yaml": _get("?format=yaml"),
    "format: json": _get("?format=json"),
    "format: cbor": _get("?format=cbor"),
    "format: smile": _get("?format=smile"),
    "format: magic": _get("?format=magic"),
    "format: yaml of an error": [("GET /connectors/nobody?format=yaml", None)],
    **{
        f"accept: {kind}": _as(kind)
        for kind in (
            "application/json",
            "*/*",
            "application/yaml",
            "text/html",
            "text/plain",
            "application/cbor",
            "application/json, text/plain, */*",
            "magic",
            "application/vnd.opensearch+json",
            "text/event-stream",
        )
    },
}


def _all(*parts: Exchanges) -> dict[str, Any]:
    return {name: steps for part in parts for name, steps in part.items()}


EXCHANGES: Exchanges = _all(METHODS, QUERIES, CONTENT_TYPES, BODIES, FORMATS)
