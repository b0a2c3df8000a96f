"""Convert models between their three forms: a caller's body, the stored document, the response."""

import asyncio
import re
from typing import Any

import orjson

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.guardrails.configuration import read_guardrails
from opensearch_ml_stream.connectors.predict.model_interface import InterfaceSchema
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.plugin.registry.connector_documents import without_secrets
from opensearch_ml_stream.plugin.registry.stored_documents import (
    Json,
    flag_of,
    in_order,
    object_of,
    string_of,
    strings_of,
)

_FIELDS = (
    "name", "model_group_id", "algorithm", "model_version", "user", "description", "model_format", "model_state",
    "model_config", "deploy_setting", "is_enabled", "rate_limiter", "is_controller_enabled", "created_time",
    "last_updated_time", "last_registered_time", "last_deployed_time", "last_undeployed_time", "model_id",
    "auto_redeploy_retry_times", "planning_worker_node_count", "current_worker_node_count", "planning_worker_nodes",
    "deploy_to_all_nodes", "is_hidden", "connector", "connector_id", "guardrails", "interface", "tenant_id",
    "provisioned_by",
)  # fmt: skip
_FORMATS = ("TORCH_SCRIPT", "ONNX")
_TIME_UNITS = ("NANOSECONDS", "MICROSECONDS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS")
_FRAMEWORK_TYPES = ("HUGGINGFACE_TRANSFORMERS", "SENTENCE_TRANSFORMERS", "HUGGINGFACE_TRANSFORMERS_NEURON")
_POOLING_MODES = ("MEAN", "MEAN_SQRT_LEN", "MAX", "WEIGHTED_MEAN", "CLS", "LAST_TOKEN")
_NEVER = -1  # the `model_ttl_minutes` of a model that is not undeployed by time
MAX_CHUNKS = 10_000  # of 10 MB each, in ML Commons
_INTEGER = re.compile(r"-?[0-9]{1,9}")
FUNCTIONS = frozenset({
    "LINEAR_REGRESSION", "KMEANS", "AD_LIBSVM", "SAMPLE_ALGO", "LOCAL_SAMPLE_CALCULATOR", "FIT_RCF", "BATCH_RCF",
    "ANOMALY_LOCALIZATION", "RCF_SUMMARIZE", "LOGISTIC_REGRESSION", "TEXT_EMBEDDING", "METRICS_CORRELATION",
    "SPARSE_ENCODING", "SPARSE_TOKENIZE", "TEXT_SIMILARITY", "QUESTION_ANSWERING", "AGENT", "CONNECTOR",
})  # fmt: skip


def check_function(body: Json) -> None:
    """Raise InvalidRequest unless the body's `function_name` is remote: only remote models are registered here."""
    name = string_of(body, "function_name")
    if name is None:
        raise InvalidRequest("model format is null")  # ML Commons takes a missing function for a local model
    if name.upper() in FUNCTIONS:
        raise InvalidRequest(f"The function category {name.upper()} is not supported here, only remote models are")
    if name.upper() != "REMOTE":
        raise InvalidRequest("Wrong function name")


def chunk_count(source: Json) -> int:
    """Return how many chunks ML Commons stored of a local model, as documents `{model id}_{number}`; else 0."""
    count = source.get("total_chunks")
    return min(count, MAX_CHUNKS) if isinstance(count, int) else 0


def local_model_fields(body: Json) -> dict[str, Any]:
    """Return what ML Commons stores of the fields that only local models need; InvalidRequest for what it refuses."""
    flag_of(body, "is_hidden")
    strings_of(body, "model_node_ids")
    if string_of(body, "url") is not None:
        raise InvalidRequest(
            "url is for models that ML Commons downloads and runs; only remote models are supported here"
        )
    model_format = string_of(body, "model_format")
    if model_format is None:
        return {}
    if model_format.upper() not in _FORMATS:
        raise InvalidRequest("Wrong model format")
    return {"model_format": model_format.upper()}


def settable_fields(body: Json) -> dict[str, Any]:
    """Return the fields that register and update share, in their stored form, without absent ones.

    InvalidRequest names the field that is wrong. `guardrails` are checked by `check_guardrails`.
    """
    fields: dict[str, Any] = {
        "description": string_of(body, "description"),
        "model_config": _model_config(object_of(body, "model_config")),
        "deploy_setting": _deploy_setting(object_of(body, "deploy_setting")),
        "is_enabled": flag_of(body, "is_enabled"),
        "rate_limiter": rate_limiter_document(object_of(body, "rate_limiter"), "rate_limiter"),
        "guardrails": object_of(body, "guardrails"),
        "interface": _interface(object_of(body, "interface")),
    }
    for name, value in fields.items():
        _check_storable(name, value)
    return {name: value for name, value in fields.items() if value is not None}


async def check_guardrails(guardrails: Json | None) -> None:
    """Raise InvalidRequest, which names the field, for guardrails that cannot be compiled."""
    if guardrails:
        await asyncio.to_thread(read_guardrails, guardrails)


def model_view(source: Json, *, dashboards: bool) -> dict[str, Any]:
    """Return what GET responds for a stored model: no credentials, ML Commons' order of fields."""
    view = in_order(without_secrets(source, dashboards=dashboards), _FIELDS)
    if not view.get("planning_worker_nodes"):
        view.pop("planning_worker_nodes", None)
    if view.get("deploy_to_all_nodes") is False:
        del view["deploy_to_all_nodes"]
    if (setting := view.get("deploy_setting")) is not None:
        view["deploy_setting"] = {"model_ttl_minutes": _NEVER, **setting}
    return view


def _check_storable(name: str, value: Any) -> None:
    try:
        orjson.dumps(value, default=float)  # a WrittenNumber
    except orjson.JSONEncodeError:
        raise InvalidRequest(f"{name} holds an integer of more than 64 bits, which cannot be stored") from None


def _model_config(config: Json | None) -> Json | None:
    """Return `model_config` as ML Commons stores and can read it: its enumerations in upper case."""
    if config is None:
        return None
    if not string_of(config, "model_type"):
        raise InvalidRequest("model_config.model_type is null")
    stored = dict(config)
    for name, values in (("framework_type", _FRAMEWORK_TYPES), ("pooling_mode", _POOLING_MODES)):
        if (value := string_of(config, name)) is not None:
            stored[name] = value.upper()
            if stored[name] not in values:
                raise InvalidRequest(f"model_config.{name} must be one of {', '.join(values)}")
    if str(config["model_type"]).lower() == "text_embedding":
        _check_text_embedding(config)
    return stored


def _check_text_embedding(config: Json) -> None:
    if config.get("embedding_dimension") is None:
        raise InvalidRequest("Embedding dimension must be provided for remote text embedding model")
    if config.get("framework_type") is None:
        raise InvalidRequest("Framework type must be provided for remote text embedding model")
    additional = object_of(config, "additional_config") or {}
    if additional.get("space_type") is None:
        raise InvalidRequest("Space type must be provided in additional_config for remote text embedding model")


def _deploy_setting(setting: Json | None) -> Json | None:
    if setting is None:
        return None
    stored: dict[str, Any] = {}
    if (enabled := flag_of(setting, "is_auto_deploy_enabled")) is not None:
        stored["is_auto_deploy_enabled"] = enabled
    if (minutes := string_of(setting, "model_ttl_minutes")) is not None:
        if not _INTEGER.fullmatch(minutes):
            raise InvalidRequest("deploy_setting.model_ttl_minutes must be an integer")
        stored["model_ttl_minutes"] = int(minutes)
    return stored


def rate_limiter_document(limiter: Json | None, name: str) -> Json | None:
    """Return a rate limiter as it is stored, its limit a string; InvalidRequest names what is wrong with it."""
    if limiter is None:
        return None
    stored: dict[str, Any] = {}
    if (limit := string_of(limiter, "limit")) is not None:
        if not limit.replace(".", "", 1).isdecimal():
            raise InvalidRequest("Limit field must be a positive number.", type="parse_exception")
        stored["limit"] = limit
    if (unit := string_of(limiter, "unit")) is not None:
        if unit.upper() not in _TIME_UNITS:
            raise InvalidRequest(f"{name}.unit must be one of {', '.join(_TIME_UNITS)}")
        stored["unit"] = unit.upper()
    return stored


def _interface(interface: Json | None) -> Json | None:
    """Return each schema as it is stored: a string of JSON."""
    if interface is None:
        return None
    stored: dict[str, str] = {}
    for name in ("input", "output"):
        schema = interface.get(name)
        if schema is None:
            continue
        text = schema if isinstance(schema, str) else jsontext.dumps(schema)
        InterfaceSchema.compile(text, name)
        stored[name] = text
    return stored
