"""The fields of ML Commons' indices (3.3 to 3.6) and of our own, and the index bodies made from them.

A field that is not listed is mapped by OpenSearch at its first write: a string becomes `text` with a `.keyword`
sub-field.
"""

from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.plugin.store import Index

_NAME = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
_ROLES = {"type": "text", "fields": {"keyword": {"type": "keyword"}}}
_DATE = {"type": "date", "format": "strict_date_time||epoch_millis"}
_OPAQUE = {"type": "object", "enabled": False}

_SHORT: dict[str, Mapping[str, Any]] = {"name": _NAME, "roles": _ROLES, "date": _DATE, "opaque": _OPAQUE}


def _user(field: str) -> dict[str, str]:
    """Return the fields of one security user."""
    return {
        field: "nested",
        f"{field}.name": "name",
        f"{field}.backend_roles": "roles",
        f"{field}.roles": "roles",
        f"{field}.custom_attribute_names": "roles",
    }


def _guardrail(field: str) -> dict[str, str]:
    return {
        f"{field}.regex": "text",
        f"{field}.stop_words.index_name": "text",
        f"{field}.stop_words.source_fields": "text",
    }


_MODEL = {
    "algorithm": "keyword",
    "name": "name",
    "version": "long",
    "model_version": "keyword",
    "model_group_id": "keyword",
    "model_content": "binary",
    "chunk_number": "long",
    "total_chunks": "long",
    "model_id": "keyword",
    "description": "text",
    "model_format": "keyword",
    "model_state": "keyword",
    "model_content_size_in_bytes": "long",
    "planning_worker_node_count": "integer",
    "current_worker_node_count": "integer",
    "planning_worker_nodes": "keyword",
    "deploy_to_all_nodes": "boolean",
    "is_hidden": "boolean",
    "tenant_id": "keyword",
    "model_config.model_type": "keyword",
    "model_config.embedding_dimension": "integer",
    "model_config.framework_type": "keyword",
    "model_config.pooling_mode": "keyword",
    "model_config.normalize_result": "boolean",
    "model_config.model_max_length": "integer",
    "model_config.all_config": "text",
    "model_config.additional_config": "flat_object",
    "deploy_setting": "flat_object",
    "is_enabled": "boolean",
    "is_controller_enabled": "boolean",
    "rate_limiter": "flat_object",
    "model_content_hash_value": "keyword",
    "auto_redeploy_retry_times": "integer",
    "created_time": "date",
    "last_updated_time": "date",
    "last_registered_time": "date",
    "last_deployed_time": "date",
    "last_undeployed_time": "date",
    "interface": "flat_object",
    **_guardrail("guardrails.input_guardrail"),
    **_guardrail("guardrails.output_guardrail"),
    "connector.name": "name",
    "connector.version": "keyword",
    "connector.description": "text",
    "connector.protocol": "keyword",
    "connector.parameters": "flat_object",
    "connector.credential": "flat_object",
    "connector.client_config": "flat_object",
    "connector.actions": "flat_object",
    **_user("user"),
}

_CONNECTOR = {
    "name": "name",
    "version": "keyword",
    "description": "text",
    "protocol": "keyword",
    "parameters": "flat_object",
    "credential": "flat_object",
    "client_config": "flat_object",
    "tenant_id": "keyword",
    "actions": "flat_object",
    "backend_roles": "name",
    "access": "keyword",
    **_user("owner"),
    "created_time": "date",
    "last_updated_time": "date",
}

_TASK = {
    "model_id": "keyword",
    "task_type": "keyword",
    "function_name": "keyword",
    "state": "keyword",
    "input_type": "keyword",
    "progress": "float",
    "output_index": "keyword",
    "worker_node": "keyword",
    "create_time": "date",
    "last_update_time": "date",
    "error": "text",
    "tenant_id": "keyword",
    "is_async": "boolean",
    "remote_job": "flat_object",
    **_user("user"),
    "response": "flat_object",
}

_CONFIG = {
    "master_key": "keyword",
    "config_type": "keyword",
    "tenant_id": "keyword",
    "ml_configuration": "flat_object",
    "create_time": "date",
    "last_updated_time": "date",
}

_MODEL_GROUP = {
    "name": "name",
    "description": "text",
    "latest_version": "integer",
    "model_group_id": "keyword",
    "tenant_id": "keyword",
    "backend_roles": "name",
    "access": "keyword",
    **_user("owner"),
    "created_time": "date",
    "last_updated_time": "date",
    "all_shared_principals": "keyword",
}

_DEPLOYMENT = {
    "model_id": "keyword",
    "model_state": "keyword",
    "planning_worker_node_count": "integer",
    "current_worker_node_count": "integer",
    "planning_worker_nodes": "keyword",
    "deploy_to_all_nodes": "boolean",
    "auto_redeploy_retry_times": "integer",
    "last_updated_time": "date",
    "last_deployed_time": "date",
    "last_undeployed_time": "date",
}

_CONTROLLER = {
    "user_rate_limiter": "flat_object",
}

_ACCOUNT = {
    "kind": "keyword",
    "name": "keyword",
    "roles": "keyword",
    "secret": "keyword",
    "created_time": "date",
    "expires_time": "date",
}

_MODEL_SETTINGS = {
    "settings": "opaque",
    "last_updated_time": "date",
}

_LEASE = {
    "host": "keyword",
    "renewed_time": "date",
}

_SPENDING = {
    "model_id": "keyword",
    "user": "keyword",
    "window_seconds": "long",
    "window_start": "date",
    "window_end": "date",
    "delete_after": "date",
    "tokens": "double",
    "cost": "double",
    "servers": "opaque",
}

FIELDS: Mapping[Index, Mapping[str, str]] = {
    Index.MODEL: _MODEL,
    Index.CONNECTOR: _CONNECTOR,
    Index.TASK: _TASK,
    Index.CONFIG: _CONFIG,
    Index.CONTROLLER: _CONTROLLER,
    Index.MODEL_GROUP: _MODEL_GROUP,
    Index.DEPLOYMENT: _DEPLOYMENT,
    Index.ACCOUNT: _ACCOUNT,
    Index.MODEL_SETTINGS: _MODEL_SETTINGS,
    Index.LEASE: _LEASE,
    Index.SPENDING: _SPENDING,
}
"""For each index, a field's dotted path and its type; `name` and `roles` are `text` with a `.keyword` sub-field, and
`opaque` is an object that is stored and not searched."""

_SCHEMA_VERSIONS = {
    Index.MODEL: 13,
    Index.CONNECTOR: 4,
    Index.TASK: 5,
    Index.CONFIG: 5,
    Index.CONTROLLER: 1,
    Index.MODEL_GROUP: 4,
    Index.DEPLOYMENT: 1,
    Index.ACCOUNT: 1,
    Index.MODEL_SETTINGS: 1,
    Index.LEASE: 1,
    Index.SPENDING: 1,
}


def index_body(index: Index, name: str | None = None) -> dict[str, Any]:
    """Return the body to create the index with, `{"settings", "mappings"}`; `name` is that with a prefix, if any.

    A name with a leading dot is for hidden indices: OpenSearch warns of others, and a later version refuses them.
    """
    hidden = {"hidden": True} if (name or index).startswith(".") else {}
    replicas = "0-all" if index is Index.CONFIG else "0-1"
    properties: dict[str, Any] = {}
    for path, kind in FIELDS[index].items():
        _add_property(properties, path.split("."), dict(_SHORT.get(kind, {"type": kind})))
    return {
        "settings": {"index": {"number_of_shards": 1, "auto_expand_replicas": replicas, **hidden}},
        "mappings": {"_meta": {"schema_version": _SCHEMA_VERSIONS[index]}, "properties": properties},
    }


def _add_property(properties: dict[str, Any], path: list[str], definition: dict[str, Any]) -> None:
    for name in path[:-1]:
        properties = properties.setdefault(name, {}).setdefault("properties", {})
    properties[path[-1]] = definition
