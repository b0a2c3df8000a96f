"""The `_sidecar` object of a model."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.model_options import (
    BatchingSettings,
    Budget,
    CallLimits,
    InputOptions,
    ModelOption,
    Prices,
    SidecarSettings,
    members_of,
    read_sidecar_settings,
)

BATCHING = {"max_docs": 8, "max_wait_ms": 5}
DAILY = {"tokens": 1000, "window": "1d"}


def read_input_options(value: object) -> InputOptions:
    return InputOptions(**members_of(value, "_sidecar.inputs", InputOptions))


def test_every_member_is_read() -> None:
    read = read_sidecar_settings(
        {
            "limits": {"max_streams": 10, "max_streams_per_user": 2, "first_byte_timeout_seconds": 2.5},
            "budgets": [DAILY, {"cost": 2, "window": "90m", "per": "user", "enforcement": "soft"}],
            "prices": {"input": 2.5, "output": 10, "cached_input": 0, "cache_write": 3},
            "fallback_model_ids": ["a", "b"],
            "inputs": {"prompt": "my_param"},
            "batching": {"max_docs": 64, "max_wait_ms": 10},
            "drop_params": ["top_k", "messages.name"],
        },
        {"inputs": ModelOption(InputOptions, read_input_options)},
    )
    assert read == SidecarSettings(
        CallLimits(10, 2, first_byte_timeout_seconds=2.5),
        (Budget("1d", tokens=1000), Budget("90m", cost=2, per="user", enforcement="soft")),
        Prices(2.5, 10, 0, 3),
        ("a", "b"),
        BatchingSettings(64, 10),
        ("top_k", "messages.name"),
        (InputOptions("my_param"),),
    )
    assert read.of(InputOptions).prompt == "my_param"
    assert SidecarSettings().of(InputOptions) == InputOptions()
    assert [budget.window_seconds for budget in read.budgets] == [86400, 5400]


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"limits": None, "budgets": None, "prices": None, "fallback_model_ids": None},
        {"batching": None, "drop_params": None},
        {"drop_params": []},
    ],
)
def test_what_is_absent_or_null_limits_nothing(value: dict[str, Any]) -> None:
    assert read_sidecar_settings(value) == SidecarSettings()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([], "_sidecar must be an object"),
        ({"limit": {}}, "_sidecar has no member [limit]; it knows limits, budgets, prices, fallback_model_ids"),
        ({"limits": 1}, "_sidecar.limits must be an object"),
        ({"limits": {"max_streams": 0}}, "_sidecar.limits.max_streams must be a number from 1 to 1e+06"),
        ({"limits": {"max_streams": 1.5}}, "_sidecar.limits.max_streams must be an integer"),
        ({"limits": {"max_streams": True}}, "_sidecar.limits.max_streams must be a number from 1 to 1e+06"),
        (
            {"limits": {"total_timeout_seconds": "5"}},
            "_sidecar.limits.total_timeout_seconds must be a number from 0.001 to 604800",
        ),
        (
            {"limits": {"total_timeout_seconds": float("nan")}},
            "_sidecar.limits.total_timeout_seconds must be a number from 0.001 to 604800",
        ),
        ({"budgets": {}}, "_sidecar.budgets must be an array of at most 16 budgets"),
        ({"budgets": [DAILY] * 17}, "_sidecar.budgets must be an array of at most 16 budgets"),
        ({"budgets": [DAILY, {"window": "1d"}]}, "_sidecar.budgets[1] needs either tokens or cost"),
        ({"budgets": [{**DAILY, "cost": 1}]}, "_sidecar.budgets[0] needs either tokens or cost"),
        ({"budgets": [{**DAILY, "tokens": -1}]}, "_sidecar.budgets[0].tokens must be a number from 0 to 1e+15"),
        ({"budgets": [{**DAILY, "per": "team"}]}, "_sidecar.budgets[0].per must be model or user"),
        ({"budgets": [{**DAILY, "enforcement": "no"}]}, "_sidecar.budgets[0].enforcement must be hard or soft"),
        ({"budgets": [{"cost": 1, "window": "1d"}]}, "A budget of cost needs the prices of tokens"),
        ({"prices": {"input": 1}}, "_sidecar.prices needs input and output"),
        ({"prices": {"input": 1, "output": 10**400}}, "_sidecar.prices.output must be a number from 0 to 1e+15"),
        ({"fallback_model_ids": "a"}, "_sidecar.fallback_model_ids must be an array of ids of models"),
        ({"fallback_model_ids": ["a", ""]}, "_sidecar.fallback_model_ids must be an array of ids of models"),
        ({"fallback_model_ids": ["a", "a"]}, "_sidecar.fallback_model_ids must be at most 8 different ids"),
        ({"drop_params": "top_k"}, "_sidecar.drop_params must be an array of names of members"),
        ({"drop_params": ["a", ""]}, "_sidecar.drop_params must be an array of names of members"),
        ({"drop_params": ["a", 1]}, "_sidecar.drop_params must be an array of names of members"),
        ({"drop_params": ["a"] * 65}, "_sidecar.drop_params must be at most 64 names of at most 256 characters"),
        ({"drop_params": ["a" * 257]}, "_sidecar.drop_params must be at most 64 names of at most 256 characters"),
        ({"batching": True}, "_sidecar.batching must be an object"),
        ({"batching": {}}, "_sidecar.batching needs max_docs and max_wait_ms"),
        ({"batching": {"max_docs": 8}}, "_sidecar.batching needs max_docs and max_wait_ms"),
        ({"batching": {"max_docs": 8, "max_wait_ms": None}}, "_sidecar.batching needs max_docs and max_wait_ms"),
        ({"batching": {"max_docs": 8, "wait": 5}}, "_sidecar.batching has no member [wait]"),
        ({"batching": BATCHING | {"max_docs": 1}}, "_sidecar.batching.max_docs must be a number from 2 to 2048"),
        ({"batching": BATCHING | {"max_docs": 2049}}, "_sidecar.batching.max_docs must be a number from 2 to 2048"),
        ({"batching": BATCHING | {"max_docs": 2.5}}, "_sidecar.batching.max_docs must be an integer"),
        ({"batching": BATCHING | {"max_docs": "8"}}, "_sidecar.batching.max_docs must be a number from 2 to 2048"),
        ({"batching": BATCHING | {"max_docs": True}}, "_sidecar.batching.max_docs must be a number from 2 to 2048"),
        ({"batching": BATCHING | {"max_wait_ms": 0}}, "_sidecar.batching.max_wait_ms must be a number from 1 to 1000"),
        (
            {"batching": BATCHING | {"max_wait_ms": 1001}},
            "_sidecar.batching.max_wait_ms must be a number from 1 to 1000",
        ),
        ({"batching": BATCHING | {"max_wait_ms": 1.5}}, "_sidecar.batching.max_wait_ms must be an integer"),
        ({"fallback_model_ids": list("abcdefghi")}, "_sidecar.fallback_model_ids must be at most 8 different ids"),
    ],
)
def test_what_is_wrong_is_named(value: object, reason: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_sidecar_settings(value)
    assert refused.value.reason.startswith(reason)


@pytest.mark.parametrize("window", ["1", "d", "0d", "-1d", "1.5h", "367d", "1D", "1 d", "99999999999s", 60, None])
def test_a_window_is_a_number_and_a_unit(window: object) -> None:
    with pytest.raises(InvalidRequest, match=r"_sidecar\.budgets\[0\]\.window must be a number and s, m, h or d"):
        read_sidecar_settings({"budgets": [{"tokens": 1, "window": window}]})
