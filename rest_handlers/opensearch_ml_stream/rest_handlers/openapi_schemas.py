"""Schemas of request bodies, made from the values that they are read into where there are such.

They say what a good request has. What is read is more: unknown fields are skipped, numbers are taken for strings.
"""

from collections.abc import Mapping
from dataclasses import fields
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from opensearch_ml_stream.connectors.client_config import RETRY_POLICIES, ClientConfig
from opensearch_ml_stream.connectors.documents import ACTION_TYPES, PROTOCOLS, Action, Connector
from opensearch_ml_stream.connectors.model_options import (
    BUDGET_ENFORCEMENTS,
    BUDGET_SUBJECTS,
    OWN_MEMBERS,
    BatchingSettings,
    Budget,
    CallLimits,
    Prices,
    SidecarSettings,
)
from opensearch_ml_stream.connectors.predict.inputs import (
    QuestionAnsweringInput,
    RemoteInput,
    TextDocsInput,
    TextSimilarityInput,
)
from opensearch_ml_stream.rest_handlers.operation_description import FLAG, Schema

STRING: Schema = {"type": "string"}
OBJECT: Schema = {"type": "object"}
_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean"}


def value_schema(kind: type, required: tuple[str, ...] = (), **known: Schema) -> Schema:
    """Return the schema of a dataclass; `known` are those of fields of which more is known than their type."""
    hints = get_type_hints(kind)
    properties = {entry.name: known.get(entry.name) or _type_schema(hints[entry.name]) for entry in fields(kind)}
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def _type_schema(hint: Any) -> Schema:
    if isinstance(hint, UnionType):
        return _type_schema(next(part for part in get_args(hint) if part is not type(None)))
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if get_origin(hint) is tuple:
        return {"type": "array", "items": _type_schema(get_args(hint)[0])}
    return OBJECT


_CLIENT_CONFIG = value_schema(
    ClientConfig,
    retry_backoff_policy={"enum": list(RETRY_POLICIES)},
    keystore_type={"enum": ["PEM", "PKCS12"]},
)
_ACTION = value_schema(
    Action,
    required=("action_type", "method", "url"),
    action_type={"enum": [name.lower() for name in ACTION_TYPES]},
    headers={"type": "object", "additionalProperties": STRING},
)


def _connector(required: tuple[str, ...]) -> Schema:
    return value_schema(
        Connector,
        required,
        version={"type": ["string", "integer"]},
        protocol={"enum": list(PROTOCOLS)},
        credential={"type": "object", "additionalProperties": STRING},
        actions={"type": "array", "items": _ACTION},
        client_config=_CLIENT_CONFIG,
    )


CONNECTOR = _connector(("name", "version", "protocol", "credential", "actions"))
CONNECTOR_CHANGES = _connector(())

_OWN_SIDECAR = value_schema(
    SidecarSettings,
    limits=value_schema(CallLimits),
    budgets={
        "type": "array",
        "items": value_schema(
            Budget, ("window",), per={"enum": list(BUDGET_SUBJECTS)}, enforcement={"enum": list(BUDGET_ENFORCEMENTS)}
        ),
    },
    prices=value_schema(Prices, ("input", "output")),
    batching=value_schema(BatchingSettings, ("max_docs", "max_wait_ms")),
)
_MODEL_FIELDS: dict[str, Schema] = {
    "name": STRING,
    "description": STRING,
    "model_group_id": STRING,
    "connector_id": STRING,
    "connector": CONNECTOR_CHANGES,
    "is_enabled": FLAG,
    "model_config": OBJECT,
    "deploy_setting": {"type": "object", "properties": {"is_auto_deploy_enabled": FLAG}},
    "rate_limiter": {"type": "object", "properties": {"limit": STRING, "unit": STRING}},
    "guardrails": {"type": "object", "properties": {"type": {"enum": ["local_regex", "model"]}}},
    "interface": {"type": "object", "properties": {"input": OBJECT, "output": OBJECT}},
}
MODEL_IDS: Schema = {"type": "object", "properties": {"model_ids": {"type": "array", "items": STRING}}}
MODEL_GROUP: Schema = {
    "type": "object",
    "properties": {"name": STRING, "description": STRING},
    "required": ["name"],
}
MODEL_GROUP_CHANGES: Schema = {"type": "object", "properties": MODEL_GROUP["properties"]}


def model(options: Mapping[str, type]) -> Schema:
    """Return the schema of a new model; `options` are the members of `_sidecar` that extensions add."""
    properties = {**_MODEL_FIELDS, "_sidecar": _sidecar(options), "function_name": {"enum": ["remote"]}}
    return {"type": "object", "properties": properties, "required": ["name", "function_name"]}


def model_changes(options: Mapping[str, type]) -> Schema:
    """Return the schema of a model's changes."""
    return {"type": "object", "properties": {**_MODEL_FIELDS, "_sidecar": _sidecar(options)}}


def _sidecar(options: Mapping[str, type]) -> Schema:
    own = {name: _OWN_SIDECAR["properties"][name] for name in OWN_MEMBERS}
    return {"type": "object", "properties": own | {name: value_schema(kind) for name, kind in options.items()}}


SEARCH: Schema = {
    "type": "object",
    "properties": {
        "query": OBJECT,
        "from": {"type": "integer", "minimum": 0},
        "size": {"type": "integer", "minimum": 0},
        "sort": {"type": "array"},
        "_source": {"type": ["array", "string", "boolean", "object"]},
    },
}
SETTINGS: Schema = {
    "type": "object",
    "properties": {"persistent": {"type": "object", "description": "Settings by full name; null resets one."}},
    "required": ["persistent"],
}
CONTROLLER: Schema = {
    "type": "object",
    "properties": {
        "user_rate_limiter": {
            "type": "object",
            "additionalProperties": {"type": "object", "properties": {"limit": STRING, "unit": STRING}},
        }
    },
}
_STRINGS: Schema = {"type": "array", "items": STRING}
PROFILE: Schema = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("node_ids", "model_ids", "task_ids"), _STRINGS),
        **dict.fromkeys(("return_all_models", "return_all_tasks"), FLAG),
    },
}
_STATS_FIELDS = (
    "target_stat_levels", "cluster_level_stats", "node_level_stats", "action_level_stats", "node_ids", "algorithms",
    "actions", "models",
)  # fmt: skip
STATS: Schema = {"type": "object", "properties": dict.fromkeys(_STATS_FIELDS, _STRINGS)}
PREDICT: Schema = {
    "anyOf": [
        value_schema(RemoteInput, ("parameters",)),
        value_schema(TextDocsInput, ("text_docs",)),
        value_schema(TextSimilarityInput, ("query_text", "text_docs")),
        value_schema(QuestionAnsweringInput, ("question", "context")),
    ],
    "examples": [{"parameters": {"inputs": "Why is the sky blue?"}}],
}
ERROR: Schema = {
    "type": "object",
    "properties": {
        "error": {
            "anyOf": [
                STRING,
                {
                    "type": "object",
                    "properties": {
                        "root_cause": {"type": "array"},
                        "type": STRING,
                        "reason": STRING,
                        "provider_status": {"type": "integer"},
                        "provider_code": STRING,
                        "provider_type": STRING,
                        "provider_param": STRING,
                    },
                    "required": ["root_cause", "type", "reason"],
                },
                {  # at paths of other APIs
                    "type": "object",
                    "properties": {"type": STRING, "message": STRING},
                    "required": ["type", "message"],
                },
            ]
        },
        "status": {"type": "integer"},
    },
    "required": ["error"],
}
