"""Processes of models are started with the server, restarted when they end, and end with it."""

import os
import signal
import threading
from pathlib import Path

from integration_tests.server.runtimes.model_folder import write_model
from integration_tests.server.runtimes.runtime_server import READY_SECONDS, RuntimeServer, serving_models
from integration_tests.support.conditions import eventually
from integration_tests.support.worker_processes import runs


def test_a_model_of_the_folder_is_found_and_called_as_any_other(server: RuntimeServer) -> None:
    assert server.said() == "hello"
    found = server.post("/models/_search", query={"term": {"name.keyword": "echo"}}).json()["hits"]["hits"]
    assert [hit["_id"] for hit in found] == ["runtime-echo"]
    model = server.model("echo")
    assert (model["algorithm"], model["model_version"]) == ("REMOTE", "1")
    eventually(lambda: server.processes()[0]["calls"])
    [process] = server.processes()
    assert process["memory_bytes"] > 1_000_000
    metrics = server.sidecar.client.get("/metrics").text
    assert 'mlstream_runtime_ready{model_id="runtime-echo"} 1.0' in metrics


def test_a_process_that_is_killed_is_started_again(server: RuntimeServer) -> None:
    first, restarts = server.pid(), server.processes()[0]["restarts"]
    os.kill(first, signal.SIGKILL)
    eventually(lambda: server.pid() not in (0, first))
    assert server.said() == "hello"
    assert server.processes()[0]["restarts"] == restarts + 1
    assert "was killed by signal 9" in server.log


def test_a_keeper_that_is_killed_comes_again_with_its_processes_and_goes_with_its_server(
    tmp_path: Path, models: Path
) -> None:
    with serving_models(tmp_path, models) as server:
        server.wait_for("echo")
        keeper, process = server.keeper(), server.pid()
        os.kill(keeper, signal.SIGKILL)
        eventually(lambda: not runs(process))
        eventually(lambda: server.pid() not in (0, process), 40)
        eventually(lambda: server.said() == "hello")
        eventually(lambda: server.keeper() != keeper)
        keeper, process = server.keeper(), server.pid()
        server.sidecar.process.kill()
        eventually(lambda: not runs(process) and not runs(keeper))


def test_at_ctrl_c_a_call_in_flight_ends_then_the_model_is_unloaded_then_all_ends(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    write_model(tmp_path / "models", "gated", parameters={"extra": {"gate": str(gate)}})
    with serving_models(tmp_path, tmp_path / "models") as server:
        server.wait_for("gated")
        process = server.pid("gated")
        said: list[str] = []
        call = threading.Thread(target=lambda: said.append(server.said("gated")))
        call.start()
        eventually(lambda: "predicting in" in server.log)
        server.sidecar.process.send_signal(signal.SIGINT)
        gate.touch()
        call.join()
        assert said == ["hello"]
        assert server.sidecar.process.wait(READY_SECONDS) == 0
        assert not runs(process)
        assert f"unloaded in {process}" in server.log


def test_a_model_may_have_several_processes_and_a_server_several_workers(server: RuntimeServer) -> None:
    assert [process["ready"] for process in server.processes("double")] == [True, True]

    def calls() -> int:
        return sum(process["calls"] for process in server.processes("double"))

    before = calls()
    assert {server.said("double") for _ in range(8)} == {"hello"}
    eventually(lambda: calls() == before + 8)
    # What the model counts itself is that of both of them, whichever worker is asked.
    counted = f'model_folder_predictions_count{{model_name="double",model_version=""}} {before + 8}.0'
    eventually(lambda: all(counted in server.sidecar.client.get("/metrics").text for _ in range(4)))
