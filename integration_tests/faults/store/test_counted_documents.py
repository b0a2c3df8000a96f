"""Every document that a client was told of is there after processes were killed in the middle of their writes."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from integration_tests.support.conditions import eventually
from integration_tests.support.predict_calls import SECRET, connector
from integration_tests.support.sidecars import Sidecar, running_sidecar
from integration_tests.support.worker_processes import worker_pids

from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.open_store import open_store

WRITERS = 4
WRITES_BEFORE_A_KILL = 20


def created_until_killed(sidecar: Sidecar) -> list[str]:
    writers = Writers(sidecar.url)
    try:
        writers.wait_for_more()
        os.kill(worker_pids(sidecar)[0], signal.SIGKILL)
        writers.wait_for_more()
        for pid in (sidecar.process.pid, *worker_pids(sidecar)):
            os.kill(pid, signal.SIGKILL)
    finally:
        writers.stop()
    return writers.acknowledged


class Writers:
    """Threads that create connectors until they are told to stop; `acknowledged` are the ids they were given."""

    def __init__(self, url: str) -> None:
        self.acknowledged: list[str] = []
        self._url = f"{url}/_plugins/_ml/connectors/_create"
        self._body = connector("http://127.0.0.1:9")
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(WRITERS)
        for _ in range(WRITERS):
            self._pool.submit(self._write)

    def wait_for_more(self) -> None:
        enough = len(self.acknowledged) + WRITES_BEFORE_A_KILL
        eventually(lambda: len(self.acknowledged) >= enough, 60)

    def stop(self) -> None:
        self._stop.set()
        self._pool.shutdown()

    def _write(self) -> None:
        while not self._stop.is_set():
            try:
                response = httpx.post(self._url, json=self._body, timeout=10, verify=False)
            except httpx.TransportError:  # of a worker that was killed
                continue
            if response.status_code == 200:
                self.acknowledged.append(response.json()["connector_id"])


@pytest.mark.timeout(180)  # two workers start, write and die, on a busy machine too
async def test_no_acknowledged_document_is_lost_when_workers_and_supervisor_are_killed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with running_sidecar(tmp_path, url, arguments=("--workers", "2")) as sidecar:
        acknowledged = created_until_killed(sidecar)
    async with open_store(url) as store:
        hits = (await store.search(Index.CONNECTOR, {"size": 10_000}))["hits"]["hits"]
        cipher = Cipher(store)
        assert {await cipher.decrypt(hit["_source"]["credential"]["key"]) for hit in hits} == {SECRET}
    stored = {hit["_id"] for hit in hits}
    assert len(set(acknowledged)) == len(acknowledged) >= 2 * WRITES_BEFORE_A_KILL
    assert set(acknowledged) <= stored
    assert len(stored) <= len(acknowledged) + 2 * WRITERS  # written, but not told of
