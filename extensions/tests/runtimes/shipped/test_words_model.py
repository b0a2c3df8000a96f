"""The model that `models init --runtime python` writes, run."""

from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.cli.init_command import Runtime, init
from tests.runtimes.shipped.engines import read_settings
from tests.runtimes.shipped.requests import payloads, request, text, texts_of


async def test_the_model_to_start_from_streams_words(
    tmp_path: Path, engine_packages: None, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "words"
    init(folder, Runtime.PYTHON)
    assert str(folder / "model.py") in capsys.readouterr().out
    settings = read_settings(folder)
    model = settings.implementation(settings)
    assert await model.load()
    one = request(text("prompt", "to be or"))
    streamed = [texts_of(response)["output"] async for response in model.predict_stream(payloads(one))]
    assert streamed == ["to", " be", " or"]
    assert texts_of(await model.predict(one)) == {"output": "to be or"}
    assert model.name == "words"
