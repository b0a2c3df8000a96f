"""Workers that die or hang are replaced, with one worker too, and clients who come meanwhile wait for the next."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from integration_tests.support.conditions import eventually
from integration_tests.support.sidecars import Sidecar, running_sidecar
from integration_tests.support.worker_processes import runs, worker_pids

HANGING_SERVER = Path(__file__).parent / "hanging_server.py"


def test_the_only_worker_is_replaced_when_it_is_killed_and_ends_with_a_server_that_is_killed(tmp_path: Path) -> None:
    with running_sidecar(tmp_path, settings={"opensearch_ml_stream.shutdown_grace_seconds": "0"}) as sidecar:
        after = replaced(sidecar)
        sidecar.stop(signal.SIGKILL)
        eventually(lambda: not runs(after))


def replaced(sidecar: Sidecar) -> int:
    """The worker in place of the only one, which is killed; no client is refused meanwhile."""
    (before,) = worker_pids(sidecar)
    os.kill(before, signal.SIGKILL)
    eventually(lambda: not runs(before))
    assert httpx.get(f"{sidecar.url}/_health/live", timeout=30).status_code == 200
    (after,) = worker_pids(sidecar)
    assert after != before
    assert (
        f"worker {before} was killed by signal 9 (Killed; has memory run out?); it is replaced"
        in sidecar.log.read_text()
    )
    return after


@pytest.mark.slow  # the same with a clock that the test moves: plugin/tests/server/test_supervisor.py
def test_a_worker_that_is_stopped_is_killed_and_replaced_after_10_s_and_one_that_slept_with_its_server_is_not(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    sleepers = tmp_path_factory.mktemp("sleeper")
    with running_sidecar(tmp_path) as sidecar, running_sidecar(sleepers) as sleeper, ThreadPoolExecutor() as pool:
        (stopped,), (sleeping,) = worker_pids(sidecar), worker_pids(sleeper)
        for pid in (stopped, sleeper.process.pid, sleeping):
            os.kill(pid, signal.SIGSTOP)
        began = time.monotonic()
        response = pool.submit(httpx.get, f"{sidecar.url}/_health/live", timeout=30)
        eventually(lambda: worker_pids(sidecar) not in ([], [stopped]), 30)
        assert time.monotonic() - began > 9
        assert response.result().status_code == 200
        for pid in (sleeper.process.pid, sleeping):
            os.kill(pid, signal.SIGCONT)
        time.sleep(2.5)  # the supervisor looks several times
        assert sleeper.client.get("/_health/live").status_code == 200
        assert worker_pids(sleeper) == [sleeping]
        assert "killed" not in sleeper.log.read_text()
    assert f"worker {stopped} has done nothing for 10 s; it is killed" in sidecar.log.read_text()


def test_a_worker_that_hangs_says_where_before_it_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, str(HANGING_SERVER), str(tmp_path / "marker")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "has done nothing for 1 s; it is killed. It hangs here:" in ended.stderr
    assert "in hang_here" in ended.stderr
    assert "secret" not in ended.stderr
    assert "killed by signal 9 (Killed); it is replaced" in ended.stderr
    assert ended.returncode == 0
