"""What callers are told while a model loads, is unloaded and once it is: the same on each way in, by each worker."""

import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from integration_tests.interop.v2_clients.v2_stub import v2_stub
from integration_tests.server.grpc_port.grpc_clients import GRPC, grpc_address, infer_request
from integration_tests.server.runtimes.runtime_server import RuntimeServer, serving_models
from integration_tests.support.conditions import eventually
from integration_tests.support.worker_processes import runs

pytestmark = pytest.mark.timeout(180)
V2, ML = "/v2/models/slow", "/_plugins/_ml/models/runtime-slow"
TENSORS = {"inputs": [{"name": "prompt", "shape": [1], "datatype": "BYTES", "data": ["wait"]}]}
WAYS = {
    f"{V2}/infer": TENSORS,
    f"{V2}/infer_stream": TENSORS,
    f"{V2}/generate": {"text_input": "hi"},
    f"{ML}/_predict": {"parameters": {"inputs": "hi"}},
    f"{ML}/_predict/stream": {"parameters": {"inputs": "hi"}},
}
CODE = '''
import asyncio
from pathlib import Path

from mlserver import MLModel
from mlserver.errors import MLServerError
from mlserver.handlers import custom_handler
from mlserver.types import InferenceResponse, ResponseOutput


class Teapot(MLServerError):
    """An error with a status of its own."""

    def __init__(self):
        super().__init__("I am a teapot", status_code=418)


class Slow(MLModel):
    async def load(self):
        await self.reached("load")
        return True

    async def unload(self):
        await self.reached("unload")
        return True

    async def predict(self, payload):
        text = payload.inputs[0].data[0]
        if text == "teapot":
            raise Teapot
        if text == "wait":
            await self.reached("predict")
        output = ResponseOutput(name="output", shape=[1], datatype="BYTES", data=["done"])
        return InferenceResponse(model_name=self.name, outputs=[output])

    @custom_handler(rest_path="/tea")
    async def tea(self, payload: dict) -> str:
        raise Teapot

    async def reached(self, gate):
        print("waits to", gate)
        while not (Path(self.settings.parameters.extra["gates"]) / gate).exists():
            await asyncio.sleep(0.01)
'''


@pytest.fixture
def gates(tmp_path: Path) -> Path:
    """A folder in which a file lets the model go on."""
    (folder := tmp_path / "gates").mkdir()
    return folder


@pytest.fixture
def server(tmp_path: Path, gates: Path) -> Iterator[RuntimeServer]:
    (model := tmp_path / "models" / "slow").mkdir(parents=True)
    (model / "slow.py").write_text(CODE)
    settings = {"implementation": "slow.Slow", "parameters": {"extra": {"gates": str(gates)}}}
    (model / "model-settings.json").write_text(json.dumps(settings))
    try:
        with serving_models(tmp_path, tmp_path / "models", "--workers", "2", *GRPC) as running:
            yield running
    finally:
        for gate in ("load", "unload", "predict"):
            (gates / gate).touch()


def call(server: RuntimeServer, path: str, body: Any) -> tuple[int, str]:
    """Status and sentence of one call, over a connection of its own, so that any worker may get it."""
    response = httpx.post(f"{server.sidecar.url}{path}", json=body, timeout=60)
    if response.status_code == 200:
        return 200, ""
    error = response.json()["error"]
    return response.status_code, error if isinstance(error, str) else error["reason"]


def called(server: RuntimeServer, *paths: str) -> Counter[tuple[int, str]]:
    """What each of these ways in responds, several times."""
    return Counter(call(server, path, WAYS[path]) for path in paths for _ in range(6))


def grpc_code(server: RuntimeServer) -> grpc.StatusCode:
    with grpc.insecure_channel(grpc_address(server.sidecar)) as channel:
        try:
            v2_stub(channel).ModelInfer(infer_request(model="slow"))
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code
    return grpc.StatusCode.OK


def unload(server: RuntimeServer) -> threading.Thread:
    path = f"{server.sidecar.url}/v2/repository/models/slow/unload"
    unloading = threading.Thread(target=lambda: httpx.post(path, timeout=60).raise_for_status())
    unloading.start()
    return unloading


def test_from_the_first_load_to_the_end_of_an_unload(server: RuntimeServer, gates: Path) -> None:
    eventually(lambda: server.log.count("waits to load") == 1, 40)
    loading = "The runtime of model slow is loading; send the request again later"
    assert set(called(server, *WAYS)) == {(503, loading)}
    assert grpc_code(server) is grpc.StatusCode.UNAVAILABLE
    (gates / "load").touch()
    server.wait_for("slow")

    in_flight: list[tuple[int, str]] = []
    path = f"{V2}/infer"
    waiting = threading.Thread(target=lambda: in_flight.append(call(server, path, WAYS[path])))
    waiting.start()
    eventually(lambda: "waits to predict" in server.log)
    unloading = unload(server)
    eventually(lambda: "waits to unload" in server.log)
    v2 = [path for path in WAYS if path.startswith(V2)]
    not_found = {(404, "Model slow not found")}
    assert set(called(server, *v2)) == not_found
    assert grpc_code(server) is grpc.StatusCode.NOT_FOUND
    (gates / "unload").touch()
    unloading.join()
    waiting.join()
    assert set(in_flight) == not_found
    assert set(called(server, *v2)) == not_found
    (gates / "predict").touch()

    # A keeper that is killed knows it, too, when it comes again.
    keeper = server.keeper()
    os.kill(keeper, signal.SIGKILL)
    eventually(lambda: server.keeper() != keeper and not runs(keeper), 40)
    assert set(called(server, *v2)) == not_found
    # A prediction of ML Commons' API loads what it needs, and V2 finds it again.
    assert call(server, f"{ML}/_predict", WAYS[f"{ML}/_predict"]) == (200, "")
    eventually(lambda: set(called(server, *v2)) == {(200, "")})


def test_a_status_that_the_model_says_itself_is_told_by_v2_and_by_its_own_routes(
    server: RuntimeServer, gates: Path
) -> None:
    for gate in ("load", "predict", "unload"):
        (gates / gate).touch()
    server.wait_for("slow")
    asked = {"inputs": [{**TENSORS["inputs"][0], "data": ["teapot"]}]}
    words = "I am a teapot"
    for way in ("infer", "infer_stream"):
        assert call(server, f"{V2}/{way}", asked) == (418, words)
    assert call(server, "/tea", {}) == (418, words)
    said = f"The runtime of model slow raised Teapot: {words}"
    for way in ("_predict", "_predict/stream"):
        assert call(server, f"{ML}/{way}", {"parameters": {"inputs": "teapot"}}) == (424, said)
