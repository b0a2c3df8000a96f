"""Exchanges about models with a connector of their own, and requests that ML Commons refuses before it looks."""

from typing import Any

from integration_tests.interop.parity.connectors import but
from integration_tests.interop.parity.exchanges import Exchanges, Step

_ACTION: dict[str, Any] = {
    "action_type": "predict",
    "method": "POST",
    "url": "@provider/data",
    "headers": {},
    "request_body": '{"m":"${parameters.m:-none}"}',
}
_CONNECTOR: dict[str, Any] = {
    "name": "@name",
    "description": "d",
    "version": "1",
    "protocol": "http",
    "parameters": {},
    "credential": {"key": "k"},
    "actions": [_ACTION],
}
MODEL: dict[str, Any] = {"name": "@name", "function_name": "remote", "connector": _CONNECTOR}
REGISTER: Step = ("POST /models/_register", MODEL)
_GET: Step = ("GET /models/@model", None)
_DESCRIBE: Step = ("PUT /models/@model", {"description": "new"})


def _registered(**fields: Any) -> Step:
    return ("POST /models/_register", but(MODEL, **fields))


def _put(**fields: Any) -> list[Step]:
    return [REGISTER, ("PUT /models/@model", fields), _GET]


def _undeployed(body: Any) -> list[Step]:
    return [REGISTER, ("POST /models/@model/_undeploy", body)]


def _guarded(regex: str) -> Step:
    return _registered(guardrails={"type": "local_regex", "input_guardrail": {"regex": [regex]}})


def _predict(**parameters: Any) -> Step:
    return ("POST /models/@model/_predict", {"parameters": parameters})


EXCHANGES: Exchanges = {
    "deploy_setting: auto deploy off": _put(deploy_setting={"is_auto_deploy_enabled": False}),
    "deploy_setting: ttl": _put(deploy_setting={"model_ttl_minutes": 5}),
    "register: model_format ONNX": [_registered(model_format="ONNX"), _GET],
    "register: model_format zz": [_registered(model_format="zz")],
    "register: url": [_registered(url="https://x/y.zip")],
    "register: is_hidden text": [_registered(is_hidden="maybe"), _GET],
    "register: model_node_ids text": [_registered(model_node_ids="a")],
    "register: load": [("POST /models/_register?load=true", MODEL)],
    "undeploy: body with node_ids": _undeployed({"node_ids": ["x"]}),
    "undeploy: body with unknown models": _undeployed({"model_ids": ["nope"]}),
    "put: empty connector": _put(connector_id=""),
    "put: empty group": _put(model_group_id=""),
    **{
        f"search without a body: {name}": [(f"POST /{path}/_search", None)]
        for name, path in {
            "models": "models",
            "connectors": "connectors",
            "tasks": "tasks",
            "groups": "model_groups",
        }.items()
    },
    "no route: models/meta": [("POST /models/meta", {})],
    "no route: _register_meta": [("POST /models/_register_meta", {})],
    "no route: GET models/meta": [("GET /models/meta", None)],
    "guardrail with look-around": [
        _guarded("(?=.*bad).*"),
        _predict(m="good"),
        _predict(m="bad"),
        _DESCRIBE,
        _GET,
    ],
    "guardrail with a back-reference": [_guarded(r"(a)\\1"), _predict(m="aa"), _DESCRIBE],
    "url with spaces in a placeholder": [
        (
            "POST /connectors/_create",
            but(
                _CONNECTOR,
                parameters={"endpoint": "YOUR RESOURCE NAME"},
                actions=[but(_ACTION, url="https://${parameters.endpoint}/x")],
            ),
        )
    ],
    "caller sets another path": [
        _registered(
            connector=but(
                _CONNECTOR, parameters={"path": "data"}, actions=[but(_ACTION, url="@provider/${parameters.path}")]
            )
        ),
        _predict(m="x", path="other"),
    ],
}
