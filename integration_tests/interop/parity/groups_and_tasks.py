"""Exchanges about model groups and tasks, and searches of all four resources."""

from typing import Any

from integration_tests.interop.parity.connectors import CONNECTOR
from integration_tests.interop.parity.exchanges import Exchanges, Step
from integration_tests.interop.parity.models import MODEL

REGISTER: Step = ("POST /model_groups/_register", {"name": "@name", "description": "d"})
GET: Step = ("GET /model_groups/@group", None)


def _registered(**fields: Any) -> list[Step]:
    return [("POST /model_groups/_register", {"name": "@name", **fields}), GET]


def _put(**fields: Any) -> list[Step]:
    return [REGISTER, ("PUT /model_groups/@group", fields), GET]


GROUPS: Exchanges = {
    "register a group": _registered(),
    "register a group: a description": _registered(description="d"),
    "register a group: an empty description": _registered(description=""),
    "register a group: a null description": _registered(description=None),
    "register a group: twice": [REGISTER, REGISTER],
    "register a group: an empty object": [("POST /model_groups/_register", {})],
    "register a group: a blank name": _registered(name=" "),
    "register a group: an empty name": _registered(name=""),
    "register a group: a null name": _registered(name=None),
    "register a group: an object as name": _registered(name={}),
    "register a group: an unknown field": _registered(color="red"),
    "register a group: roles": _registered(backend_roles=["a"]),
    "register a group: no roles in an array": _registered(backend_roles=[]),
    "register a group: all roles": _registered(add_all_backend_roles=True),
    "register a group: access public": _registered(access_mode="public"),
    "register a group: access private": _registered(access_mode="private"),
    "register a group: an unknown access mode": _registered(access_mode="secret"),
    "register a group: without a body": [("POST /model_groups/_register", None)],
    "get: an unknown group": [("GET /model_groups/nobody", None)],
    "update a group": _put(name="@name 2", description="new"),
    "update a group: its own name": _put(name="@name"),
    "update a group: a blank name": _put(name=" "),
    "update a group: nothing": _put(),
    "update a group: an unknown field": _put(color="red"),
    "update a group: roles": _put(backend_roles=["a"]),
    "update a group: access": _put(access_mode="public"),
    "update a group: a name that is taken": [
        ("POST /model_groups/_register", {"name": "@name 1"}),
        ("POST /model_groups/_register", {"name": "@name 2"}),
        ("PUT /model_groups/@group", {"name": "@name 1"}),
    ],
    "update an unknown group": [("PUT /model_groups/nobody", {"description": "d"})],
    "delete a group": [REGISTER, ("DELETE /model_groups/@group", None), GET],
    "delete: an unknown group": [("DELETE /model_groups/nobody", None)],
}

TASKS: Exchanges = {
    "task of a registration": [
        ("POST /models/_register", MODEL),
        ("GET /tasks/@task", None),
        ("GET /tasks/@task/", None),
        ("POST /tasks/@task/_cancel", None),
        ("DELETE /tasks/@task", None),
        ("GET /tasks/@task", None),
        ("DELETE /tasks/@task", None),
    ],
    "get: an unknown task": [("GET /tasks/nobody", None)],
    "cancel: an unknown task": [("POST /tasks/nobody/_cancel", None)],
    "delete: an unknown task": [("DELETE /tasks/nobody", None)],
}

_BY_NAME = {"query": {"term": {"name.keyword": "@name"}}}
_SEARCHES: dict[str, Any] = {
    "by a term": _BY_NAME,
    "by an id": {"query": {"ids": {"values": ["nobody"]}}},
    "without source": {**_BY_NAME, "_source": False},
    "of one field": {**_BY_NAME, "_source": ["name"]},
    "without a field": {**_BY_NAME, "_source": {"excludes": ["created_time", "last_updated_time"]}},
    "of size 0": {**_BY_NAME, "size": 0},
    "of a negative size": {**_BY_NAME, "size": -1},
    "sorted": {**_BY_NAME, "sort": [{"created_time": "desc"}]},
    "sorted by an unknown field": {**_BY_NAME, "sort": [{"color": "desc"}]},
    "by a bool query": {
        "query": {"bool": {"filter": [_BY_NAME["query"]], "must_not": [{"exists": {"field": "color"}}]}}
    },
    "by a prefix": {"query": {"prefix": {"name.keyword": "@name"}}},
    "by a wildcard": {"query": {"wildcard": {"name.keyword": {"value": "@name*"}}}},
    "by an unknown query": {"query": {"magic": {}}},
    "with an unknown key": {**_BY_NAME, "color": "red"},
    "with the total": {**_BY_NAME, "track_total_hits": True},
    "by a query string": {"query": {"query_string": {"query": 'name.keyword:"@name"'}}},
    "from an array": [],
}


def _searched(search: Any) -> list[Step]:
    return [("POST /connectors/_create", CONNECTOR), ("POST /connectors/_search", search)]


SEARCH: Exchanges = {
    **{f"search {name}": _searched(search) for name, search in _SEARCHES.items()},
    "search: with GET": [("POST /connectors/_create", CONNECTOR), ("GET /connectors/_search", _BY_NAME)],
    "search: models": [("POST /models/_register", MODEL), ("POST /models/_search", _BY_NAME)],
    "search: groups": [REGISTER, ("POST /model_groups/_search", _BY_NAME)],
    "search: a credential": [
        ("POST /connectors/_create", CONNECTOR),
        (
            "POST /connectors/_search",
            {"query": {"bool": {"must": [_BY_NAME["query"], {"exists": {"field": "credential"}}]}}},
        ),
    ],
    "search: not JSON": [("POST /connectors/_search", b"{")],
}

EXCHANGES: Exchanges = {**GROUPS, **TASKS, **SEARCH}
