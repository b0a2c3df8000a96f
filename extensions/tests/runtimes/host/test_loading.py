"""From a model's folder to the ready process."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.runtimes.host.running_host import ready_host, started_host, text_request, texts_of

PLAIN = """
class Model(MLModel):
    async def predict(self, request):
        return text_response(*texts_of(request))
"""


async def test_a_ready_process_says_what_its_model_is(tmp_path: Path) -> None:
    code = """
    from mlserver.types import MetadataTensor

    class Model(MLModel):
        async def load(self):
            self.inputs = [MetadataTensor(name="text", datatype="BYTES", shape=[-1])]
            return True

        async def predict_stream(self, requests):
            yield text_response("a")
    """
    settings = {
        "platform": "trial-platform",
        "versions": ["trial/3"],
        "parameters": {"version": "3"},
        "outputs": [{"name": "y", "datatype": "FP32", "shape": [2]}],
    }
    async with started_host(tmp_path, code, settings) as host:
        assert await host.event() == {
            "event": "ready",
            "inputs": [{"name": "text", "datatype": "BYTES", "shape": [-1]}],
            "outputs": [{"name": "y", "datatype": "FP32", "shape": [2]}],
            "platform": "trial-platform",
            "versions": ["trial/3"],
            "version": "3",
            "handlers": [],
        }
        assert stat.S_IMODE(host.path.stat().st_mode) == 0o600


async def test_a_model_without_version_and_platform_says_none(tmp_path: Path) -> None:
    async with started_host(tmp_path, PLAIN) as host:
        event = await host.event()
        assert (event["version"], event["platform"]) == (None, None)


async def test_a_model_finds_its_settings_its_neighbours_and_its_files(tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("WORD = 'neighbour'")
    (tmp_path / "lazily.py").write_text("WORD = 'lazily'")
    (tmp_path / "weights.txt").write_text("weights")
    code = """
    from mlserver.utils import get_model_uri
    from neighbour import WORD

    class Model(MLModel):
        async def load(self):
            import lazily
            uri = await get_model_uri(self.settings)
            self.said = [WORD, lazily.WORD, open(uri).read(), self.settings.parameters.extra["a"], self.name]
            return True

        async def predict(self, request):
            return text_response(*self.said)
    """
    settings = {"parameters": {"uri": "./weights.txt", "extra": {"a": "extra"}}}
    async with ready_host(tmp_path, code, settings) as (_, worker):
        data, _ = await worker.predict(text_request("a"))
        assert texts_of(data.payload) == ["neighbour", "lazily", "weights", "extra", "trial"]


async def test_a_model_without_a_uri_has_its_folder(tmp_path: Path) -> None:
    code = """
    class Model(MLModel):
        async def predict(self, request):
            return text_response(self.settings.parameters.uri)
    """
    async with ready_host(tmp_path, code) as (_, worker):
        data, _ = await worker.predict(text_request("a"))
        assert texts_of(data.payload) == [str(tmp_path)]


@pytest.mark.parametrize(
    ("code", "settings", "reason"),
    [
        (PLAIN, {"implementation": "absent.Model"}, "No module named 'absent' (model-settings.json: implementation)"),
        (PLAIN, {"implementation": "model.Absent"}, "has no attribute 'Absent' (model-settings.json: implementation)"),
        (PLAIN, {"implementation": "model"}, "names no module and class"),
        (PLAIN, {"max_batch_size": "many"}, "(model-settings.json)"),
        (
            "import absent_library",
            {},
            "No module named 'absent_library' (imported by 'model.Model'; the interpreter is ",
        ),
        ("1 / 0", {}, "ZeroDivisionError: division by zero (model-settings.json: implementation)"),
        ("sys.exit('no licence')", {}, "SystemExit: no licence (model-settings.json: implementation)"),
        ("def Model(settings): raise KeyError('uri')", {}, "KeyError: 'uri' (model.Model(settings);"),
        (
            "class Model(MLModel):\n    async def load(self): raise OSError('no weights')",
            {},
            "OSError: no weights (load() of model.Model; model-settings.json: parameters)",
        ),
        (
            "class Model(MLModel):\n    async def load(self): return False",
            {},
            "RuntimeError: load() returned False (load() of model.Model; model-settings.json: parameters)",
        ),
        (
            "class Model(MLModel):\n    async def metadata(self): raise OSError('no labels')",
            {},
            "OSError: no labels (metadata() of model.Model)",
        ),
        (PLAIN, {"implementation": "mlserver_llm_local.LLM", "parameters": {"extra": {"backend": "x"}}}, "[x] is not"),
    ],
)
async def test_what_cannot_be_loaded_says_why_and_where_to_look(
    tmp_path: Path, code: str, settings: dict[str, Any], reason: str
) -> None:
    async with started_host(tmp_path, code, settings) as host:
        event = await host.event()
        assert event["event"] == "failed"
        assert reason in event["reason"]
        assert await host.process.wait() == 1
        assert "runtime trial: loading it raised" in host.stderr()


async def test_a_socket_that_cannot_be_made_is_a_failure(tmp_path: Path) -> None:
    start = {
        "folder": str(tmp_path),
        "settings": {"implementation": "model.Model"},
        "socket": str(tmp_path / "no/socket"),
    }
    async with started_host(tmp_path, PLAIN, first_line=json.dumps(start).encode() + b"\n") as host:
        event = await host.event()
        assert event["event"] == "failed"
        assert event["reason"].endswith(f"(the socket {tmp_path}/no/socket)")
        assert await host.process.wait() == 1


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
async def test_children_of_the_model_do_not_hold_the_keepers_socket(tmp_path: Path) -> None:
    code = """
    import subprocess

    class Model(MLModel):
        async def load(self):
            listing = "import os; print(sorted(os.listdir('/proc/self/fd')))"
            self.listed = subprocess.check_output([sys.executable, "-c", listing], close_fds=False, text=True)
            return True

        async def predict(self, request):
            return text_response(self.listed.strip())
    """
    async with ready_host(tmp_path, code) as (_, worker):
        data, _ = await worker.predict(text_request("a"))
        assert texts_of(data.payload) == ["['0', '1', '2', '3']"]  # 3 is the listing's own


async def test_the_models_logger_writes_with_its_name(tmp_path: Path) -> None:
    code = """
    from mlserver.logging import logger

    class Model(MLModel):
        async def predict(self, request):
            logger.info("thinking")
            return text_response("a")
    """
    async with ready_host(tmp_path, code) as (host, worker):
        await worker.predict(text_request("a"))
        assert "[mlserver][trial] INFO - thinking\n" in host.stderr()


async def test_a_name_that_another_process_of_the_model_spawns_is_importable(tmp_path: Path) -> None:
    code = """
    import multiprocessing

    def answer(pipe):
        pipe.send(text_response("from a child"))

    class Model(MLModel):
        async def predict(self, request):
            spawn = multiprocessing.get_context("spawn")
            ours, theirs = spawn.Pipe()
            child = spawn.Process(target=answer, args=(theirs,))
            child.start()
            response = await asyncio.to_thread(ours.recv)
            child.join()
            return response
    """
    async with ready_host(tmp_path, code) as (_, worker):
        data, _ = await worker.predict(text_request("a"))
        assert texts_of(data.payload) == ["from a child"]
