"""The store's files are for their user alone, also those that were not."""

import logging
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.store.sqlite_connection import make_private
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


async def test_a_new_store_is_for_its_user_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = SQLiteStore(str(tmp_path / "opensearch-ml-stream" / "store.db"))
    await store.ping()
    files = sorted((tmp_path / "opensearch-ml-stream").iterdir())
    assert [file.name for file in files] == ["store.db", "store.db-shm", "store.db-wal"]
    assert {mode(file) for file in files} == {0o600}
    assert mode(tmp_path / "opensearch-ml-stream") == 0o700
    assert caplog.records == []
    await store.close()


async def test_an_existing_store_that_others_can_read_is_mended(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "opensearch-ml-stream"
    folder.mkdir()
    names = ("store.db", "store.db-wal", "store.db-shm")
    for name in names:
        (folder / name).touch()
        (folder / name).chmod(0o644)
    folder.chmod(0o755)
    with caplog.at_level(logging.WARNING):
        make_private(folder / "store.db")
    assert [mode(folder / name) for name in names] == [0o600] * 3
    assert mode(folder) == 0o700
    assert [record.getMessage().partition(" (")[0] for record in caplog.records] == [
        *(f"Others could read {folder / name}" for name in names),
        f"Others could read {folder}",
    ]
    caplog.clear()
    make_private(folder / "store.db")
    assert caplog.records == []


def test_a_folder_that_is_not_only_the_stores_is_left_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_private(tmp_path / "store.db")
    assert (mode(tmp_path), mode(tmp_path / "store.db")) == (0o755, 0o600)


def test_a_mode_that_cannot_be_changed_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "store.db").touch()
    (tmp_path / "store.db").chmod(0o644)

    def refused(path: Path, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refused)
    make_private(tmp_path / "store.db")
    assert caplog.messages == [
        f"Others may read {tmp_path / 'store.db'}, and its mode cannot be changed: Operation not permitted"
    ]
