"""The cache of models keeps no more than so many documents, and no long names."""

from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.predictions import compiled_models
from opensearch_ml_stream.plugin.predictions.compiled_models import FRESH_SECONDS, MAX_INTERFACE_CHARS
from tests.predictions.prediction_setup import connector_body, prediction_setup


async def test_the_models_used_longest_ago_make_room_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000.0
    monkeypatch.setattr(compiled_models, "monotonic", lambda: now)
    monkeypatch.setattr(compiled_models, "MAX_CACHED_CHARACTERS", 6_000)
    async with prediction_setup(tmp_path) as setup:
        for name in ("a", "b", "c", "d"):
            await setup.add_model(connector_body(description="x" * 1_500), name)
            await setup.models.get(name)
            now += FRESH_SECONDS
            await setup.models.get("a")  # is in use all the time
        assert "a" in setup.models._entries
        assert "b" not in setup.models._entries
        await setup.add_model(connector_body(description="x" * 9_000), "large")
        await setup.models.get("large")
        assert list(setup.models._locks) == list(setup.models._entries) == ["large"]


async def test_a_long_name_of_an_interface_is_not_kept(tmp_path: Path) -> None:
    async with prediction_setup(tmp_path) as setup:
        await setup.add_model(connector_body())
        model = await setup.models.get("m")
        for length in (MAX_INTERFACE_CHARS, MAX_INTERFACE_CHARS + 1):
            model.spec({"_llm_interface": "x" * length})
        assert list(map(len, model._specs)) == [MAX_INTERFACE_CHARS]
