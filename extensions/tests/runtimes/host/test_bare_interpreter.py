"""The model's interpreter needs nothing but its standard library."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.runtimes.host.running_host import ready_host, text_request, texts_of

MODEL = """
import importlib.util

class Model(MLModel):
    async def predict(self, request):
        found = [name for name in ("orjson", "uvloop", "pip", "aiohttp") if importlib.util.find_spec(name)]
        return text_response(MLModel.__module__, str(sys.flags.isolated), *found)

    async def predict_stream(self, requests):
        async for request in requests:
            for text in texts_of(request):
                yield text_response(text)
"""


@pytest.mark.parametrize("flags", [(), ("-I",), ("-I", "-S"), ("-W", "error")], ids=" ".join)
async def test_an_environment_without_packages_runs_a_model(tmp_path: Path, flags: tuple[str, ...]) -> None:
    environment = tmp_path / "environment"
    creation = await asyncio.create_subprocess_exec(sys.executable, "-m", "venv", "--without-pip", str(environment))
    assert await creation.wait() == 0
    async with ready_host(tmp_path, MODEL, {"max_batch_size": 2, "max_batch_time": 0.001},
                          (str(environment / "bin" / "python"), *flags)) as (host, worker):  # fmt: skip
        data, _ = await worker.predict(text_request("a"))
        assert texts_of(data.payload) == ["opensearch_ml_stream.runtimes.interface.model", str(int("-I" in flags))]
        assert await worker.texts(text_request("a", "b")) == [["a"], ["b"]]
        host.keeper.close()
        assert await host.process.wait() == 0
        assert host.stderr() == ""
