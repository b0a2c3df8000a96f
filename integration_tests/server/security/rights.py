"""The table of rights: what each route needs, and which users have it. A route without a row fails the tests."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import httpx
from integration_tests.support.secured.secured_cluster import PASSWORD

BASE = "/_plugins/_ml"
V2 = "/v2"
_ML = "cluster:admin/opensearch/ml/"
_MONITOR = "cluster:monitor/"

Needs = tuple[str, ...]
"""Actions of which a caller must be allowed one; a refusal names the first."""

LOGIN: Needs = ()
"""Whoever logged in."""

EVERYONE = None
"""Whoever asks; for the metrics, whoever asks on this machine."""

_NEEDS_BELOW_BASE: dict[str, Needs] = {
    "POST /models/{model_id}/_predict/stream": (_ML + "predict/stream", _ML + "predict"),
    "POST /models/{model_id}/_predict": (_ML + "predict",),
    "POST /_predict/{algorithm}/{model_id}": (_ML + "predict",),
    "POST /models/{model_id}/_batch_predict": (_ML + "predict",),
    "POST /connectors/_create": (_ML + "create_connector",),
    "GET /connectors/_search": (_ML + "connectors/search",),
    "POST /connectors/_search": (_ML + "connectors/search",),
    "GET /connectors/{id}": (_ML + "connectors/get",),
    "PUT /connectors/{id}": (_ML + "connectors/update",),
    "DELETE /connectors/{id}": (_ML + "connectors/delete",),
    "POST /models/_register": (_ML + "register_model",),
    "POST /models/_upload": (_ML + "register_model",),
    "POST /models/{id}/{version}/_register": (_ML + "register_model",),
    "POST /models/{id}/{version}/_upload": (_ML + "register_model",),
    "GET /models/_search": (_ML + "models/search",),
    "POST /models/_search": (_ML + "models/search",),
    "POST /models/_undeploy": (_ML + "undeploy_models",),
    "POST /models/_unload": (_ML + "undeploy_models",),
    "POST /models/{id}/_deploy": (_ML + "deploy_model",),
    "POST /models/{id}/_load": (_ML + "deploy_model",),
    "POST /models/{id}/_undeploy": (_ML + "undeploy_models",),
    "POST /models/{id}/_unload": (_ML + "undeploy_models",),
    "GET /models/{id}": (_ML + "models/get",),
    "PUT /models/{id}": (_ML + "models/update",),
    "DELETE /models/{id}": (_ML + "models/delete",),
    "POST /model_groups/_register": (_ML + "register_model_group",),
    "GET /model_groups/_search": (_ML + "model_groups/search",),
    "POST /model_groups/_search": (_ML + "model_groups/search",),
    "GET /model_groups/{id}": (_ML + "model_groups/get",),
    "PUT /model_groups/{id}": (_ML + "update_model_group",),
    "DELETE /model_groups/{id}": (_ML + "model_groups/delete",),
    "GET /tasks/_search": (_ML + "tasks/search",),
    "POST /tasks/_search": (_ML + "tasks/search",),
    "POST /tasks/{id}/_cancel": (_ML + "tasks/cancel",),
    "POST /tasks/{id}/_cancel_batch": (_ML + "tasks/cancel",),
    "GET /tasks/{id}": (_ML + "tasks/get",),
    "DELETE /tasks/{id}": (_ML + "tasks/delete",),
    "POST /controllers/{id}": (_ML + "controllers/create",),
    "GET /controllers/{id}": (_ML + "controllers/get",),
    "PUT /controllers/{id}": (_ML + "controllers/update",),
    "DELETE /controllers/{id}": (_ML + "controllers/delete",),
    "GET /config/{id}": (_ML + "config/get",),
    "GET /profile/models/{id}": (_ML + "profile/nodes",),
    "GET /profile/models": (_ML + "profile/nodes",),
    "GET /profile/tasks/{id}": (_ML + "profile/nodes",),
    "GET /profile/tasks": (_ML + "profile/nodes",),
    "GET /profile": (_ML + "profile/nodes",),
    "GET /stats/{stat}": (_ML + "stats/nodes",),
    "GET /stats": (_ML + "stats/nodes",),
    "GET /{node_id}/stats/{stat}": (_ML + "stats/nodes",),
    "GET /{node_id}/stats": (_ML + "stats/nodes",),
    "GET /_settings": (_MONITOR + "settings",),
    "PUT /_settings": ("cluster:admin/settings/update",),
    "GET /openapi.json": LOGIN,
}

_NEEDS_OF_A_V2_MODEL: dict[str, Needs] = {
    "GET ": (_ML + "models/get",),
    "GET /ready": (_ML + "models/get", _ML + "predict", _ML + "predict/stream"),
    "POST /infer": (_ML + "predict",),
    "POST /generate": (_ML + "predict",),
    "POST /infer_stream": (_ML + "predict/stream", _ML + "predict"),
    "POST /generate_stream": (_ML + "predict/stream", _ML + "predict"),
    "GET /docs": (_ML + "models/get",),
    "GET /docs/dataplane.json": (_ML + "models/get",),
}

_V2_MODEL = f"{V2}/models/{{model_name}}"

NEEDS: dict[str, Needs | None] = {
    **{row.replace(" ", f" {BASE}", 1): needs for row, needs in _NEEDS_BELOW_BASE.items()},
    "POST /generate-stream": (_ML + "predict/stream", _ML + "predict"),
    "GET /generate-stream": (_ML + "predict/stream", _ML + "predict"),
    "GET /generate-stream/{file}": (_ML + "predict/stream", _ML + "predict"),
    **{
        row.replace(" ", f" {path}", 1): needs
        for row, needs in _NEEDS_OF_A_V2_MODEL.items()
        for path in (_V2_MODEL, f"{_V2_MODEL}/versions/{{model_version}}")
    },
    f"GET {V2}": LOGIN,
    f"GET {V2}/docs": LOGIN,
    f"GET {V2}/docs/dataplane.json": LOGIN,
    f"GET {V2}/health/live": EVERYONE,
    f"GET {V2}/health/ready": EVERYONE,
    f"POST {V2}/repository/index": (_ML + "models/search",),
    f"POST {V2}/repository/models/{{model_name}}/load": (_ML + "deploy_model",),
    f"POST {V2}/repository/models/{{model_name}}/unload": (_ML + "undeploy_models",),
    "GET /": LOGIN,
    "GET /_health/live": EVERYONE,
    "GET /_health/ready": EVERYONE,
    "GET /metrics": EVERYONE,
}
"""What each route needs, with the names of ML Commons' transport actions (3.6.0), not read from our code."""

_OF_OTHER_SERVERS = ("/generate-stream", V2)
"""How routes begin whose errors are `{"error": "<reason>"}`."""

ALL_OF_ML = {action for needs in NEEDS.values() for action in needs or () if action.startswith(_ML)}
READ_OF_ML = {action for action in ALL_OF_ML if action.endswith(("/get", "/search", "/nodes"))}
MONITOR = {_MONITOR + "settings"}
SETTINGS = {"cluster:admin/settings/update"}
PREDICT = {_ML + "predict", _ML + "predict/stream"}
STREAM = {_ML + "predict/stream"}


@dataclass(frozen=True, slots=True)
class User:
    """A user of the table with the password of all, and the actions that the roles of the user allow."""

    name: str
    allowed: frozenset[str]
    backend_roles: str = ""

    def refusal(self, route: str, needs: Needs) -> dict[str, object]:
        """The body of a 403, as OpenSearch has it, or as the servers have it whose routes these are."""
        user = f"User [name={self.name}, backend_roles=[{self.backend_roles}], requestedTenant=null]"
        reason = {"type": "security_exception", "reason": f"no permissions for [{needs[0]}] and {user}"}
        if route.split(" ")[1].startswith(_OF_OTHER_SERVERS):
            return {"error": reason["reason"]}
        return {"error": {"root_cause": [reason], **reason}, "status": 403}


def routes_of(document: Mapping[str, Mapping[str, Mapping[str, object]]]) -> list[str]:
    """Each operation of an OpenAPI document as `METHOD /path`."""
    methods = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}  # the fields of a path item
    paths = document["paths"].items()
    return [f"{method.upper()} {path}" for path, operations in paths for method in operations if method in methods]


Login = tuple[str, str] | Callable[[httpx.Request], httpx.Request] | None
"""A name and a password, or what puts a key into a request."""


def bearer(key: str) -> Login:
    def add(request: httpx.Request) -> httpx.Request:
        request.headers["Authorization"] = f"Bearer {key}"
        return request

    return add


def ask(client: httpx.Client, route: str, login: Login, end: str = "") -> httpx.Response:
    """Calls a route, on any worker, with ids that do not exist and a body that changes nothing."""
    method, path = re.sub(r"{\w+}", "none-such", route).split(" ")
    body: object = {} if method in ("POST", "PUT") else None
    return client.request(method, path + end, auth=login, json=body, headers={"Connection": "close"})


def broken_rights(client: httpx.Client, user: User, routes: Sequence[str], login: Login = None) -> list[str]:
    """What the user gets otherwise than the table says, a line for each route; by the password, if by nothing else."""
    broken = []
    for route in routes:
        needs = NEEDS[route]
        response = ask(client, route, login or (user.name, PASSWORD))
        if not needs or not user.allowed.isdisjoint(needs):
            is_right = response.status_code not in (401, 403) and response.status_code < 500
        else:
            is_right = response.status_code == 403 and response.json() == user.refusal(route, needs)
        if not is_right:
            broken.append(f"{route}: {response.status_code} {response.text[:200]}")
    return broken


def open_routes(client: httpx.Client, login: Login, routes: Sequence[str]) -> set[str]:
    """The routes that let a caller in who does not log in well; the others must say so as OpenSearch does.

    A user whose password is wrong too often is locked out: 429.
    """
    let_in = set()
    for route in routes:
        has_slash = route.split(" ")[1].startswith((BASE, V2)) and not (V2 in route and route.endswith(".json"))
        for end in ("", "/") if has_slash else ("",):
            response = ask(client, route, login, end)
            if response.status_code not in (401, 429):
                let_in.add(route)
            elif response.status_code == 401:
                assert response.text == ('{"error":"Unauthorized"}' if f" {V2}" in route else "Unauthorized"), route
                assert response.headers["www-authenticate"].startswith("Basic realm="), route
    return let_in
