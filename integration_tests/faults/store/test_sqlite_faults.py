"""The embedded store under a running sidecar: a full disk, a damaged, read-only or replaced file."""

import os
import resource
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import FakeProvider, openai_stream
from integration_tests.support.sidecars import Sidecar, running_sidecar
from integration_tests.support.worker_processes import worker_pids

from opensearch_ml_stream.connectors.errors import Unavailable
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.open_store import open_store

QUESTION = {"parameters": {"inputs": "x"}}
NOBODY = 65534


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with background_provider(openai_stream(["ok"])) as running:
        yield running


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store") / "store.db"


@pytest.fixture(scope="module")
def sidecar(path: Path) -> Iterator[Sidecar]:
    with running_sidecar(path.parent, f"sqlite:///{path}") as running:
        yield running


def ask(sidecar: Sidecar, model_id: str) -> int:
    return sidecar.client.post(f"/_plugins/_ml/models/{model_id}/_predict/stream", json=QUESTION).status_code


def reason_of(response: httpx.Response) -> str:
    assert response.status_code == 503, response.text
    return str(response.json()["error"]["reason"])


@contextmanager
def full_disk(sidecar: Sidecar) -> Iterator[None]:
    """The sidecar's worker can make no file any longer."""
    [worker] = worker_pids(sidecar)
    limits = resource.prlimit(worker, resource.RLIMIT_FSIZE)
    resource.prlimit(worker, resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        yield
    finally:
        resource.prlimit(worker, resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_takes_no_writes_and_predictions_go_on(sidecar: Sidecar, provider: FakeProvider) -> None:
    connector = openai(provider.url)
    known, new = (sidecar.create_model(connector) for _ in range(2))
    assert ask(sidecar, known) == 200
    with full_disk(sidecar):
        for _ in range(3):
            refusal = reason_of(sidecar.client.post("/_plugins/_ml/connectors/_create", json=connector))
            assert "disk is not full" in refusal and "transaction" not in refusal
        assert [ask(sidecar, model_id) for model_id in (known, new)] == [200, 200]
        assert sidecar.client.get("/_health/ready").status_code == 200
    assert [ask(sidecar, model_id) for model_id in (known, new, sidecar.create_model(connector))] == [200, 200, 200]


@pytest.mark.parametrize("becomes", ["removed", "replaced"])
def test_a_file_that_is_taken_away_takes_no_writes_and_predictions_go_on(
    sidecar: Sidecar, provider: FakeProvider, path: Path, becomes: str
) -> None:
    connector = openai(provider.url)
    known = sidecar.create_model(connector)
    assert ask(sidecar, known) == 200
    aside = path.rename(path.with_suffix(".aside"))
    if becomes == "replaced":
        shutil.copyfile(aside, path)
    assert "was removed or replaced while it was open" in reason_of(sidecar.client.get("/_health/ready"))
    refusal = reason_of(sidecar.client.post("/_plugins/_ml/connectors/_create", json=connector))
    assert f"Stop the sidecar, put the file in its place, delete {path}-wal" in refusal
    assert ask(sidecar, known) == 200
    aside.replace(path)
    assert sidecar.client.get("/_health/ready").status_code == 200
    assert ask(sidecar, sidecar.create_model(connector)) == 200


@pytest.mark.parametrize(
    ("start", "words"), [(0, "file is not a database"), (4096, "database disk image is malformed")]
)
async def test_a_damaged_file_is_named_and_never_overwritten(tmp_path: Path, start: int, words: str) -> None:
    path = tmp_path / "store.db"
    async with open_store(f"sqlite:///{path}") as store:
        await store.create(Index.MODEL, {"name": "n"}, "m")
    good = path.read_bytes()
    damaged = good[:start] + bytes(range(256)) * ((len(good) - start) // 256)
    path.write_bytes(damaged)
    async with open_store(f"sqlite:///{path}") as store:
        for call in (store.ping(), store.get(Index.MODEL, "m"), store.create(Index.MODEL, {}), store.ping()):
            with pytest.raises(Unavailable, match=words):
                await call
    assert path.read_bytes() == damaged
    path.write_bytes(good)
    async with open_store(f"sqlite:///{path}") as store:
        assert await store.get(Index.MODEL, "m") is not None


def test_a_sidecar_that_starts_on_a_damaged_file_is_live_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("this is no database, " * 100)
    with running_sidecar(tmp_path) as sidecar:
        assert sidecar.client.get("/_health/live").status_code == 200
        assert "file is not a database" in reason_of(sidecar.client.get("/_health/ready"))
        assert "file is not a database" in reason_of(sidecar.client.get("/_plugins/_ml/models/m"))
        assert "Settings cannot be read, the last ones stay in force" in sidecar.log.read_text()


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Who may not write what is read-only, as root may."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


async def test_a_read_only_file_says_what_to_check_and_is_used_once_it_can_be_written() -> None:
    with tempfile.TemporaryDirectory() as folder:  # not below pytest's own, where only its user may look
        os.chmod(folder, 0o777)
        path = Path(folder) / "store.db"
        with ordinary_user():
            async with open_store(f"sqlite:///{path}") as store:
                await store.create(Index.MODEL, {"name": "n"}, "m")
            path.chmod(0o444)
            async with open_store(f"sqlite:///{path}") as store:
                for call in (store.ping(), store.get(Index.MODEL, "m"), store.create(Index.MODEL, {})):
                    with pytest.raises(Unavailable, match=r"Permission denied.*can be read and written"):
                        await call
                path.chmod(0o600)
                document = await store.get(Index.MODEL, "m")
                assert document is not None and document.source == {"name": "n"}
