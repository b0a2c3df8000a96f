"""Exchanges about the registration of models."""

from typing import Any

from integration_tests.interop.parity.connectors import ACTION, CONNECTOR, but
from integration_tests.interop.parity.exchanges import Exchanges, Step

SHARED = {"@echoconnector": [("POST /connectors/_create", CONNECTOR)]}
GET_MODEL: Step = ("GET /models/@model", None)
MODEL: dict[str, Any] = {"name": "@name", "function_name": "remote", "connector_id": "@echoconnector"}
INLINE: dict[str, Any] = {"name": "@name", "function_name": "remote", "connector": CONNECTOR}
PREDICT: Step = ("POST /models/@model/_predict", {"parameters": {"input": "hi"}})
UNDEPLOY: Step = ("POST /models/@model/_undeploy", None)


def _registered(body: Any, path: str = "/models/_register") -> list[Step]:
    return [(f"POST {path}", body), GET_MODEL]


def _inline(*absent: str, **changes: Any) -> list[Step]:
    body = but(INLINE, connector=but(CONNECTOR, *absent, **changes))
    return [("POST /models/_register", body), GET_MODEL, PREDICT, UNDEPLOY]


def _with(**fields: Any) -> list[Step]:
    return _registered(but(MODEL, **fields))


def _put_inline(**fields: Any) -> list[Step]:
    return [("POST /models/_register", INLINE), ("PUT /models/@model", {"connector": fields}), GET_MODEL]


EMBEDDING: dict[str, Any] = {
    "model_type": "text_embedding",
    "embedding_dimension": 3,
    "framework_type": "sentence_transformers",
    "additional_config": {"space_type": "l2"},
}
SCHEMA = {"type": "object", "properties": {"parameters": {"type": "object"}}}
GUARDRAILS: dict[str, Any] = {
    "type": "local_regex",
    "input_guardrail": {"regex": [".*secret.*"]},
    "output_guardrail": {"stop_words": []},
}

REGISTER: Exchanges = {
    "register a model": _registered(MODEL),
    "register and deploy": [
        ("POST /models/_register?deploy=true", MODEL),
        ("GET /tasks/@task", None),
        PREDICT,
        UNDEPLOY,
    ],
    "register: the function in upper case": _with(function_name="REMOTE"),
    "register: no function": _registered(but(MODEL, "function_name")),
    "register: an unknown function": _with(function_name="magic"),
    "register: a local function": _with(function_name="text_embedding"),
    "register: an empty object": [("POST /models/_register", {})],
    "register: no name": _registered(but(MODEL, "name")),
    "register: a null name": _with(name=None),
    "register: a blank name": _with(name=" "),
    "register: an empty name": _with(name=""),
    "register: a number as name": _with(name=5),
    "register: an object as name": _with(name={}),
    "register: a name in Chinese": _with(name="模型"),
    "register: a description": _with(description="d"),
    "register: an empty description": _with(description=""),
    "register: a null description": _with(description=None),
    "register: no connector": [("POST /models/_register", but(MODEL, "connector_id"))],
    "register: an empty connector_id": [("POST /models/_register", but(MODEL, connector_id=""))],
    "register: an unknown connector_id": [("POST /models/_register", but(MODEL, connector_id="nobody"))],
    "register: a number as connector_id": [("POST /models/_register", but(MODEL, connector_id=5))],
    "register: connector and connector_id": _with(connector=CONNECTOR),
    "register: a version": _with(version="7"),
    "register: the path with name and version": _registered(but(MODEL, "name"), "/models/@name/1/_register"),
    "register: the old path": _registered(MODEL, "/models/_upload"),
    "register: an unknown field": _with(color="red"),
    "register: the state": _with(model_state="DEPLOYED"),
    "register: hidden": _with(is_hidden=True),
    "register: disabled": _with(is_enabled=False),
    "register: is_enabled in words": _with(is_enabled="maybe"),
    "register: deploy in words": _registered(MODEL, "/models/_register?deploy=maybe"),
    "register: an unknown group": _with(model_group_id="nobody"),
    "register: a group": [
        ("POST /model_groups/_register", {"name": "@name g"}),
        ("POST /models/_register", but(MODEL, model_group_id="@group")),
        GET_MODEL,
        ("POST /models/_register", but(MODEL, model_group_id="@group")),
        GET_MODEL,
        ("GET /model_groups/@group", None),
        ("DELETE /model_groups/@group", None),
    ],
    "register: two of one name": [
        ("POST /models/_register", MODEL),
        GET_MODEL,
        ("POST /models/_register", MODEL),
        GET_MODEL,
    ],
    "register: no roles in an array": _with(backend_roles=[]),
    "register: roles": _with(backend_roles=["a"]),
    "register: all roles": _with(add_all_backend_roles=True),
    "register: access public": _with(access_mode="public"),
    "register: an unknown access mode": _with(access_mode="secret"),
    "register: provisioned_by": _with(provisioned_by="x"),
    "register: a chosen id": _with(model_id="chosen"),
}

INLINE_CONNECTORS: Exchanges = {
    "inline connector": _inline(),
    **{f"inline connector: no {name}": _inline(name) for name in CONNECTOR},
    "inline connector: an empty credential": _inline(credential={}),
    "inline connector: no name, version, credential": _inline("name", "version", "credential"),
    "inline connector: an empty name": _inline(name=""),
    "inline connector: an unknown protocol": _inline(protocol="grpc"),
    "inline connector: no actions in an array": _inline(actions=[]),
    "inline connector: no predict action": _inline(actions=[but(ACTION, action_type="batch_predict")]),
    "inline connector: a URL that is not trusted": _inline(actions=[but(ACTION, url="https://example.org/")]),
    "inline connector: client_config": _inline(client_config={"read_timeout": 5}),
    "inline connector: client_config with an unknown key": _inline(client_config={"color": "red"}),
    "inline connector: an unknown field": _inline(color="red"),
    "inline connector: roles": _inline(backend_roles=["a"]),
    "inline connector: an empty object": [("POST /models/_register", but(INLINE, connector={}))],
    "inline connector: a string": [("POST /models/_register", but(INLINE, connector="c"))],
    "inline connector: update of the description": _put_inline(description="new"),
    "inline connector: update of a parameter": _put_inline(parameters={"extra": 1}),
    "inline connector: update of the actions": _put_inline(actions=[but(ACTION, url="@provider/other")]),
    "inline connector: update to a URL that is not trusted": _put_inline(
        actions=[but(ACTION, url="https://example.org/")]
    ),
    "inline connector: update with a connector_id": [
        ("POST /models/_register", INLINE),
        ("PUT /models/@model", {"connector_id": "nobody"}),
    ],
}

SETTINGS: Exchanges = {
    "deploy_setting: empty": _with(deploy_setting={}),
    "deploy_setting: no automatic deployment": _with(deploy_setting={"is_auto_deploy_enabled": False}),
    "deploy_setting: a time to live": _with(deploy_setting={"model_ttl_minutes": 5}),
    "deploy_setting: a time to live in a string": _with(deploy_setting={"model_ttl_minutes": "5"}),
    "deploy_setting: a time to live in words": _with(deploy_setting={"model_ttl_minutes": "five"}),
    "deploy_setting: an unknown key": _with(deploy_setting={"color": "red"}),
    "deploy_setting: a string": _with(deploy_setting="a"),
    "deploy_setting: null": _with(deploy_setting=None),
    "rate_limiter": _with(rate_limiter={"limit": 5, "unit": "MINUTES"}),
    "rate_limiter: empty": _with(rate_limiter={}),
    "rate_limiter: the limit in a string": _with(rate_limiter={"limit": "5", "unit": "MINUTES"}),
    "rate_limiter: a limit with a point": _with(rate_limiter={"limit": 0.5, "unit": "MINUTES"}),
    "rate_limiter: a limit in words": _with(rate_limiter={"limit": "five", "unit": "MINUTES"}),
    "rate_limiter: a limit without a unit": _with(rate_limiter={"limit": 5}),
    "rate_limiter: a unit in lower case": _with(rate_limiter={"limit": 5, "unit": "minutes"}),
    "rate_limiter: an unknown unit": _with(rate_limiter={"limit": 5, "unit": "WEEKS"}),
    "rate_limiter: a negative limit": _with(rate_limiter={"limit": -5, "unit": "MINUTES"}),
    "rate_limiter: null": _with(rate_limiter=None),
    "interface": _with(interface={"input": SCHEMA, "output": SCHEMA}),
    "interface: empty": _with(interface={}),
    "interface: a schema in a string": _with(interface={"input": '{"type": "object"}'}),
    "interface: a string that is no schema": _with(interface={"input": "{"}),
    "interface: an unknown key": _with(interface={"color": SCHEMA}),
    "guardrails": _with(guardrails=GUARDRAILS),
    "guardrails: empty": _with(guardrails={}),
    "guardrails: no type": _with(guardrails=but(GUARDRAILS, "type")),
    "guardrails: an unknown type": _with(guardrails=but(GUARDRAILS, type="magic")),
    "guardrails: a wrong regular expression": _with(
        guardrails={"type": "local_regex", "input_guardrail": {"regex": ["("]}}
    ),
    "guardrails: an unknown key": _with(guardrails=but(GUARDRAILS, color="red")),
    "model_config: text embedding": _with(model_config=EMBEDDING),
    **{f"model_config: text embedding without {name}": _with(model_config=but(EMBEDDING, name)) for name in EMBEDDING},
    "model_config: empty": _with(model_config={}),
    "model_config: another type": _with(model_config={"model_type": "gpt"}),
    "model_config: pooling in lower case": _with(model_config=but(EMBEDDING, pooling_mode="mean")),
    "model_config: an unknown framework": _with(model_config=but(EMBEDDING, framework_type="magic")),
    "model_config: an unknown pooling": _with(model_config=but(EMBEDDING, pooling_mode="magic")),
    "model_config: all_config": _with(model_config=but(EMBEDDING, all_config='{"a": 1}')),
    "model_config: an unknown key": _with(model_config=but(EMBEDDING, color="red")),
    "model_config: a dimension in a string": _with(model_config=but(EMBEDDING, embedding_dimension="3")),
    "model_config: more": _with(
        model_config=but(
            EMBEDDING, normalize_result=True, model_max_length=512, query_prefix="q: ", passage_prefix="p: "
        )
    ),
    "model_config: null": _with(model_config=None),
    "model_config: a string": _with(model_config="a"),
}

EXCHANGES: Exchanges = {**REGISTER, **INLINE_CONNECTORS, **SETTINGS}
