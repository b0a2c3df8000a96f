"""Exchanges about models that are there: update, deploy, undeploy, delete."""

from typing import Any

from integration_tests.interop.parity.connectors import but
from integration_tests.interop.parity.exchanges import Exchanges, Step
from integration_tests.interop.parity.models import (
    EMBEDDING,
    GET_MODEL,
    GUARDRAILS,
    MODEL,
    PREDICT,
    SCHEMA,
    UNDEPLOY,
)


def _put(**fields: Any) -> list[Step]:
    return [("POST /models/_register", MODEL), ("PUT /models/@model", fields), GET_MODEL]


UPDATE: Exchanges = {
    "update a model: nothing": _put(),
    "update a model: name and description": _put(name="@name 2", description="new"),
    "update a model: a blank name": _put(name=" "),
    "update a model: a null name": _put(name=None),
    "update a model: disabled": _put(is_enabled=False),
    "update a model: an unknown field": _put(color="red"),
    "update a model: the state": _put(model_state="DEPLOYED"),
    "update a model: the function": _put(function_name="text_embedding"),
    "update a model: an unknown group": _put(model_group_id="nobody"),
    "update a model: an unknown connector_id": _put(connector_id="noconnector"),
    "update a model: an inline connector for one with a connector_id": _put(connector={"description": "d"}),
    "update a model: both connectors": _put(connector_id="@echoconnector", connector={"description": "d"}),
    "update a model: rate_limiter": _put(rate_limiter={"limit": 5, "unit": "MINUTES"}),
    "update a model: half a rate_limiter": _put(rate_limiter={"limit": 5}),
    "update a model: deploy_setting": _put(deploy_setting={"is_auto_deploy_enabled": False}),
    "update a model: guardrails": _put(guardrails=GUARDRAILS),
    "update a model: guardrails of an unknown type": _put(guardrails={"type": "magic"}),
    "update a model: model_config": _put(model_config=EMBEDDING),
    "update a model: an empty model_config": _put(model_config={}),
    "update a model: interface": _put(interface={"input": SCHEMA}),
    "update a model: merges what is stored": [
        (
            "POST /models/_register",
            but(MODEL, guardrails=GUARDRAILS, model_config=EMBEDDING, interface={"output": SCHEMA}),
        ),
        ("PUT /models/@model", {"guardrails": {"type": "local_regex", "input_guardrail": {"regex": ["x"]}}}),
        ("PUT /models/@model", {"interface": {"input": SCHEMA}, "model_config": but(EMBEDDING, embedding_dimension=4)}),
        GET_MODEL,
    ],
    "update a model: backend_roles": _put(backend_roles=["a"]),
    "update a model: an unknown model": [("PUT /models/nobody", {"description": "d"})],
    "update a model: without a body": [
        ("POST /models/_register", MODEL),
        ("PUT /models/@model", None),
    ],
    "update a model: while it is deployed": [
        ("POST /models/_register?deploy=true", MODEL),
        PREDICT,
        ("PUT /models/@model", {"is_enabled": False}),
        ("wait", 2.1),
        PREDICT,
        ("PUT /models/@model", {"is_enabled": True}),
        ("wait", 2.1),
        PREDICT,
        UNDEPLOY,
    ],
    "update a model: to a new group": [
        ("POST /models/_register", MODEL),
        ("POST /model_groups/_register", {"name": "@name new"}),
        ("PUT /models/@model", {"model_group_id": "@group"}),
        GET_MODEL,
        ("GET /model_groups/@group", None),
    ],
}

DEPLOYMENT: Exchanges = {
    "deploy and undeploy": [
        ("POST /models/_register", MODEL),
        ("POST /models/@model/_deploy", None),
        ("GET /tasks/@task", None),
        ("DELETE /models/@model", None),
        ("POST /models/@model/_deploy", None),
        UNDEPLOY,
        GET_MODEL,
        UNDEPLOY,
        ("DELETE /models/@model", None),
        ("DELETE /models/@model", None),
        GET_MODEL,
    ],
    "deploy: the old path": [
        ("POST /models/_register", MODEL),
        ("POST /models/@model/_load", None),
        ("GET /tasks/@task", None),
        ("POST /models/@model/_unload", None),
    ],
    "deploy: an empty object": [
        ("POST /models/_register", MODEL),
        ("POST /models/@model/_deploy", {}),
        ("GET /tasks/@task", None),
        UNDEPLOY,
    ],
    "deploy: nodes": [
        ("POST /models/_register", MODEL),
        ("POST /models/@model/_deploy", {"node_ids": ["n"]}),
    ],
    "deploy: an unknown model": [("POST /models/nobody/_deploy", None)],
    "undeploy: an unknown model": [("POST /models/nobody/_undeploy", None)],
    "undeploy many: by id": [
        ("POST /models/_register?deploy=true", MODEL),
        PREDICT,
        ("POST /models/_unload", {"model_ids": ["@model", "nobody"]}),
        ("POST /models/_undeploy", {"model_ids": ["@model"], "node_ids": ["n"]}),
    ],
    "undeploy many: an unknown model": [("POST /models/_undeploy", {"model_ids": ["nobody"]})],
    "undeploy many: no ids": [("POST /models/_undeploy", {"model_ids": []})],
    "undeploy many: an empty object": [("POST /models/_undeploy", {})],
    "undeploy many: without a body": [("POST /models/_undeploy", None)],
    "undeploy many: an id in a string": [("POST /models/_undeploy", {"model_ids": "nobody"})],
    "get: an unknown model": [("GET /models/nobody", None)],
    "get: a model with return_content": [
        ("POST /models/_register", MODEL),
        ("GET /models/@model?return_content=true", None),
    ],
    "delete: an unknown model": [("DELETE /models/nobody", None)],
    **{
        f"get: the model {id}": [(f"GET /models/{id}", None)]
        for id in ("a%2Fb", "a%20b", "%F0%9F%98%80", "-x", "_x", "a.b", "x" * 513, "*")
    },
}

EXCHANGES: Exchanges = {**UPDATE, **DEPLOYMENT}
