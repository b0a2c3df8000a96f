"""The id of a server: one for all of its workers."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.limits.replica_leases import server_id


@pytest.mark.usefixtures("patient_locks")
def test_workers_that_start_at_the_same_time_have_one_id(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as workers:
        ids = set(workers.map(server_id, [tmp_path] * 32))
    assert len(ids) == 1
    assert ids == {server_id(tmp_path)}  # one that starts later


def test_another_server_has_another_id(tmp_path: Path) -> None:
    ids = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        ids.append(server_id(tmp_path / name))
    assert [len(id) for id in ids] == [32, 32]
    assert ids[0] != ids[1]


def test_an_id_of_which_a_part_was_written_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "server-id").write_text("abc")
    made = server_id(tmp_path)
    assert len(made) == 32 and made == server_id(tmp_path)
