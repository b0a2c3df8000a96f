"""The provider of the exchanges: `/echo` shows what it was sent, the other paths name their response."""

import json

from integration_tests.support.fake_provider import Request, Script, head, json_response

_SHOWN = ("authorization", "content-type", "x-n", "x-b")


def respond(request: Request) -> Script:
    """Return the response to a request, by its path."""
    path = request.path.removeprefix("/")
    if path.startswith("status-"):
        return _status(int(path.removeprefix("status-")))
    if path == "embeddings":
        return json_response({"data": [{"embedding": [0.5, 1.0, -2]} for _ in request.json()["input"]]})
    if path in _BODIES:
        body = _BODIES[path]
        return [head(content_type="application/json", content_length=str(len(body))) + body]
    return json_response(
        {
            "method": request.method,
            "path": request.path,
            "headers": {name: request.headers[name] for name in _SHOWN if name in request.headers},
            "body": request.body.decode(),
        }
    )


_DATA = json.dumps(
    {
        "s": "x",
        "n": 1.5,
        "l": [3, 1, 2],
        "e": [],
        "a": [{"s": 1, "t": 2, "n": "v"}, {"s": 5, "t": 6}],
        "o": {"k1": 1, "k2": "v"},
        "null": None,
    }
).encode()
_BODIES = {"text": b"plain", "array": json.dumps([1, 2]).encode(), "empty": b"", "data": _DATA, "other": _DATA}


def _status(status: int) -> Script:
    if status == 204:
        return [head(status)]
    return json_response({"error": {"message": 'no "luck"'}}, status)
