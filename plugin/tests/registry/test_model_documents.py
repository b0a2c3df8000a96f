import asyncio
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.registry.model_documents import (
    check_function,
    check_guardrails,
    model_view,
    settable_fields,
)

EMBEDDING = {"model_type": "TEXT_EMBEDDING", "embedding_dimension": 8, "framework_type": "sentence_transformers"}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"is_enabled": "yes"}, "is_enabled must be true or false"),
        ({"description": ["x"]}, "description must be a string"),
        ({"guardrails": 1}, "guardrails must be an object"),
        (
            {"guardrails": {"limit": 10**30}},
            "guardrails holds an integer of more than 64 bits, which cannot be stored",
        ),
        (
            {"interface": {"input": "7"}},
            "The model's interface.input is not a JSON Schema: $ must be an object, true or false",
        ),
        ({"rate_limiter": {"limit": "many"}}, "Limit field must be a positive number."),
        ({"deploy_setting": {"model_ttl_minutes": "5m"}}, "deploy_setting.model_ttl_minutes must be an integer"),
        ({"model_config": {}}, "model_config.model_type is null"),
        (
            {"model_config": {"model_type": "x", "framework_type": "torch"}},
            "model_config.framework_type must be one of HUGGINGFACE_TRANSFORMERS, SENTENCE_TRANSFORMERS, "
            "HUGGINGFACE_TRANSFORMERS_NEURON",
        ),
        (
            {"model_config": {"model_type": "x", "pooling_mode": "min"}},
            "model_config.pooling_mode must be one of MEAN, MEAN_SQRT_LEN, MAX, WEIGHTED_MEAN, CLS, LAST_TOKEN",
        ),
        (
            {"model_config": {"model_type": "text_embedding"}},
            "Embedding dimension must be provided for remote text embedding model",
        ),
        (
            {"model_config": {"model_type": "text_embedding", "embedding_dimension": 8}},
            "Framework type must be provided for remote text embedding model",
        ),
        (
            {"model_config": EMBEDDING},
            "Space type must be provided in additional_config for remote text embedding model",
        ),
    ],
)
def test_a_wrong_field_is_named(body: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        settable_fields(body)
    assert raised.value.reason == reason


def test_an_unknown_time_unit_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidRequest, match=r"^rate_limiter.unit must be one of NANOSECONDS, .*DAYS$"):
        settable_fields({"rate_limiter": {"limit": 4, "unit": "FORTNIGHTS"}})


def test_fields_are_stored_in_the_form_of_ml_commons() -> None:
    assert settable_fields({
        "deploy_setting": {"is_auto_deploy_enabled": "false", "model_ttl_minutes": "5", "other": 1},
        "rate_limiter": {"limit": 4, "unit": "minutes"},
        "interface": {"input": {"type": "object"}, "output": '{"type": "object"}'},
        "model_config": {**EMBEDDING, "additional_config": {"space_type": "l2"}},
        "is_enabled": False,
        "description": None,
    }) == {
        "rate_limiter": {"limit": "4", "unit": "MINUTES"},
        "interface": {"input": '{"type":"object"}', "output": '{"type": "object"}'},
        "model_config": {
            **EMBEDDING, "framework_type": "SENTENCE_TRANSFORMERS", "additional_config": {"space_type": "l2"},
        },
        "is_enabled": False,
        "deploy_setting": {"is_auto_deploy_enabled": False, "model_ttl_minutes": 5},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (None, "model format is null"),
        ("zap", "Wrong function name"),
        ("text_embedding", "The function category TEXT_EMBEDDING is not supported here, only remote models are"),
    ],
)
def test_only_remote_models_are_registered(function: str | None, reason: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        check_function({"function_name": function})
    assert raised.value.reason == reason
    check_function({"function_name": "Remote"})


def test_a_model_that_runs_nowhere_is_shown_without_its_nodes() -> None:
    source = {"name": "m", "planning_worker_nodes": [], "deploy_to_all_nodes": False}
    assert model_view(source, dashboards=False) == {"name": "m"}
    source = {"name": "m", "planning_worker_nodes": ["n"], "deploy_to_all_nodes": True}
    assert model_view(source, dashboards=False) == source


def test_a_rate_limiter_may_be_changed_in_part() -> None:
    assert settable_fields({"rate_limiter": {"unit": "days"}}) == {"rate_limiter": {"unit": "DAYS"}}
    assert settable_fields({"rate_limiter": {"limit": "0.5"}}) == {"rate_limiter": {"limit": "0.5"}}


def test_a_model_is_shown_without_its_inline_credential_and_without_nulls() -> None:
    source = {"connector": {"name": "c", "credential": {"k": "cipher"}}, "name": "m", "description": None}
    assert model_view(source, dashboards=False) == {"name": "m", "connector": {"name": "c"}}


def test_a_deploy_setting_is_shown_with_its_default() -> None:
    view = model_view({"deploy_setting": {"is_auto_deploy_enabled": True}}, dashboards=False)
    assert view == {"deploy_setting": {"is_auto_deploy_enabled": True, "model_ttl_minutes": -1}}


async def test_guardrails_are_compiled_while_the_event_loop_turns() -> None:
    check = asyncio.ensure_future(
        check_guardrails({"input_guardrail": {"regex": [f".*bad {n}.*" for n in range(200)]}})
    )
    turns = 0
    while not check.done():
        await asyncio.sleep(0)
        turns += 1
    await check
    assert turns > 2
