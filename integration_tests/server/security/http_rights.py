"""The table of rights over HTTP: every route that the OpenAPI document has, and those of the playground."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import httpx
from integration_tests.server.security.needs import BASE, PLAYGROUND_ROUTES, ROUTES, Needs
from integration_tests.server.security.rights import Answer, Login

_METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}  # the fields of a path item
_OF_MODEL_SERVERS = ("/v2", "/generate-stream")  # how paths begin whose errors are `{"error": "<reason>"}`
_OF_ANTHROPIC = "/v1/messages"  # how those begin whose errors are Anthropic's
_ANTHROPIC_TYPES = {401: "authentication_error", 403: "permission_error"}
_OF_OPENAI = "/v1/"  # how those begin whose errors are OpenAI's, but for these
_OPENAI_TYPES = {401: ("authentication_error", "invalid_api_key"), 403: ("permission_error", None)}


@dataclass(frozen=True, slots=True)
class HttpPort:
    client: httpx.Client

    @property
    def needs(self) -> Mapping[str, Needs | None]:
        return {**ROUTES, **PLAYGROUND_ROUTES}

    def rows(self, login: Login) -> list[str]:
        """Each operation, as `METHOD /path`."""
        document = self.client.get(f"{BASE}/openapi.json", headers=login).raise_for_status().json()
        paths = document["paths"].items()
        described = [
            f"{method.upper()} {path}" for path, operations in paths for method in operations if method in _METHODS
        ]
        return [*described, *PLAYGROUND_ROUTES]

    def spellings(self, row: str) -> Sequence[str]:
        takes_slash = path_of(row).startswith((BASE, "/v2")) and not row.endswith("/dataplane.json")
        return (row, row + "/") if takes_slash else (row,)

    def ask(self, row: str, login: Login) -> Answer:
        body: object = {} if row.startswith(("POST", "PUT")) else None
        headers = {**login, "Connection": "close"}
        with self.client.stream(row.split(" ")[0], path_of(row), json=body, headers=headers) as response:
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                return Answer("let in")  # and it does not end
            response.read()
            return _answer(row, response)


def path_of(row: str) -> str:
    """The path of a route, with ids that do not exist."""
    return re.sub(r"{\w+}", "none-such", row.split(" ")[1])


def _answer(row: str, response: httpx.Response) -> Answer:
    status = response.status_code
    if status == 401 and response.json() == _error_body(row, "Unauthorized", status):
        challenged = response.headers["www-authenticate"].startswith("Basic realm=")
        return Answer("unknown") if challenged else Answer("failed", "401 without a challenge")
    if status == 403:
        return _refused(row, response)
    if status == 429:
        return Answer("locked out")
    return Answer("failed", f"{status} {response.text[:200]}") if status == 401 or status >= 500 else Answer("let in")


def _refused(row: str, response: httpx.Response) -> Answer:
    error = response.json()["error"]
    reason = error if isinstance(error, str) else error.get("reason") or error["message"]
    is_right = response.json() == _error_body(row, reason, 403)
    return Answer("refused", reason) if is_right else Answer("failed", response.text[:200])


def _error_body(row: str, reason: str, status: int) -> object:
    """OpenSearch's body, or that of model servers, OpenAI or Anthropic."""
    if path_of(row).startswith(_OF_ANTHROPIC):
        error = {"type": _ANTHROPIC_TYPES[status], "message": reason}
        return {"type": "error", "error": error, "request_id": None}
    if path_of(row).startswith(_OF_OPENAI):
        kind, code = _OPENAI_TYPES[status]
        return {"error": {"message": reason, "type": kind, "param": None, "code": code}}
    if path_of(row).startswith(_OF_MODEL_SERVERS):
        return {"error": reason}
    cause = {"type": "security_exception", "reason": reason}
    return {"error": {"root_cause": [cause], **cause}, "status": status}
