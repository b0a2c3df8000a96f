"""Exchanges about connectors that are there: access, update, get, delete."""

from typing import Any

from integration_tests.interop.parity.connectors import ACTION, CONNECTOR, but, created
from integration_tests.interop.parity.exchanges import Exchanges, Step


def _updated(*steps: Step) -> list[Step]:
    """Return the steps between the creation of a connector and a look at what has become of it."""
    return [("POST /connectors/_create", CONNECTOR), *steps, ("GET /connectors/@connector", None)]


def _put(**changes: Any) -> list[Step]:
    return _updated(("PUT /connectors/@connector", changes))


ACCESS: Exchanges = {
    "create: no roles in an array": created(but(CONNECTOR, backend_roles=[])),
    "create: roles": created(but(CONNECTOR, backend_roles=["a"])),
    "create: all roles": created(but(CONNECTOR, add_all_backend_roles=True)),
    "create: not all roles": created(but(CONNECTOR, add_all_backend_roles=False)),
    "create: access public": created(but(CONNECTOR, access_mode="public")),
    "create: access private": created(but(CONNECTOR, access_mode="private")),
    "create: an unknown access mode": created(but(CONNECTOR, access_mode="secret")),
    "create: access null": created(but(CONNECTOR, access_mode=None, backend_roles=None, add_all_backend_roles=None)),
    "update: no roles in an array": _put(backend_roles=[]),
    "update: roles": _put(backend_roles=["a", "b"]),
    "update: roles that are a string": _put(backend_roles="a"),
    "update: all roles": _put(add_all_backend_roles=True),
    "update: access public": _put(access_mode="public"),
    "update: access private": _put(access_mode="private"),
    "update: access restricted": _put(access_mode="restricted", backend_roles=["a"]),
    "update: an unknown access mode": _put(access_mode="secret"),
}

UPDATE: Exchanges = {
    "update nothing": _put(),
    "update: name and description": _put(name="@name 2", description="new"),
    "update: a blank name": _put(name=" "),
    "update: an empty name": _put(name=""),
    "update: a null name": _put(name=None),
    "update: a number as name": _put(name=5),
    "update: the version": _put(version=2),
    "update: the protocol": _put(protocol="aws_sigv4"),
    "update: an unknown protocol": _put(protocol="grpc"),
    "update: a parameter more": _put(parameters={"extra": [1]}),
    "update: a parameter's value": _put(parameters={"model": "other"}),
    "update: parameters null": _put(parameters=None),
    "update: no parameters": _put(parameters={}),
    "update: parameters in a string": _put(parameters="a"),
    "update: a credential more": _put(credential={"other": "o"}),
    "update: no credentials": _put(credential={}),
    "update: the actions": _put(actions=[but(ACTION, url="@provider/other")]),
    "update: no actions": _put(actions=[]),
    "update: an action of an unknown type": _put(actions=[but(ACTION, action_type="guess")]),
    "update: a URL that is not trusted": _put(actions=[but(ACTION, url="https://example.org/")]),
    "update: client_config": _put(client_config={"read_timeout": 3}),
    "update: client_config with an unknown key": _put(client_config={"color": "red"}),
    "update: an unknown field": _put(color="red"),
    "update: the time of creation": _put(created_time=1),
    "update: the id": _put(connector_id="x"),
    "update: an unknown connector": [("PUT /connectors/nobody", {"description": "d"})],
    "update: without a body": [("POST /connectors/_create", CONNECTOR), ("PUT /connectors/@connector", None)],
    "update: a connector in use": [
        ("POST /connectors/_create", CONNECTOR),
        (
            "POST /models/_register?deploy=false",
            {"name": "@name", "function_name": "remote", "connector_id": "@connector"},
        ),
        ("PUT /connectors/@connector", {"description": "new"}),
        ("POST /models/@model/_deploy", None),
        ("PUT /connectors/@connector", {"description": "newer"}),
        ("DELETE /connectors/@connector", None),
        ("POST /models/@model/_undeploy", None),
        ("DELETE /connectors/@connector", None),
        ("DELETE /models/@model", None),
        ("DELETE /connectors/@connector", None),
        ("GET /connectors/@connector", None),
    ],
}

LOOK: Exchanges = {
    "get: an unknown connector": [("GET /connectors/nobody", None)],
    "get: with return_content": [
        ("POST /connectors/_create", CONNECTOR),
        ("GET /connectors/@connector?return_content=true", None),
    ],
    "get: with return_content in words": [
        ("POST /connectors/_create", CONNECTOR),
        ("GET /connectors/@connector?return_content=maybe", None),
    ],
    "get: a slash at the end": _updated(("GET /connectors/@connector/", None)),
    **{
        f"get: the id {id}": [(f"GET /connectors/{id}", None)]
        for id in (
            "a%2Fb",
            "a%20b",
            "%F0%9F%98%80",
            "-x",
            "_x",
            "a.b",
            "a:b",
            "a%00b",
            "x" * 513,
            "*",
            "a,b",
            "..",
            "%25",
        )
    },
    "delete: an unknown connector": [("DELETE /connectors/nobody", None)],
    "delete: twice": [
        ("POST /connectors/_create", CONNECTOR),
        ("DELETE /connectors/@connector", None),
        ("DELETE /connectors/@connector", None),
        ("GET /connectors/@connector", None),
        ("PUT /connectors/@connector", {"description": "d"}),
    ],
    "delete: with a body": [("POST /connectors/_create", CONNECTOR), ("DELETE /connectors/@connector", {"a": 1})],
}

EXCHANGES: Exchanges = {**ACCESS, **UPDATE, **LOOK}
