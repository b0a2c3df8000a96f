"""Open streams over the workers of a server; each StreamCounts on one folder is a worker, closed is killed."""

import fcntl
import os
import stat
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.errors import Unavailable
from opensearch_ml_stream.plugin.limits.stream_caps import Cap, StreamCounts
from opensearch_ml_stream.plugin.shared.table import table_key

THREE = [Cap("model_streams", table_key("m"), 3)]


class Workers:
    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack

    def start(self) -> StreamCounts:
        return self._stack.enter_context(closing(StreamCounts(self._folder, 4)))


@pytest.fixture
def workers(tmp_path: Path):  # type: ignore[no-untyped-def]
    with ExitStack() as stack:
        yield Workers(tmp_path, stack)


def acquired(counts: StreamCounts, caps: list[Cap], times: int = 1) -> list[bool]:
    return [counts.acquire(caps) is None for _ in range(times)]


def test_no_more_than_the_cap_are_open_over_all_workers(workers: Workers) -> None:
    one, other = workers.start(), workers.start()
    assert acquired(one, THREE, 2) == [True, True]
    assert acquired(other, THREE, 2) == [True, False]
    assert one.acquire(THREE) == THREE[0]
    one.release(THREE)
    assert acquired(other, THREE, 2) == [True, False]


def test_a_stream_counts_for_all_of_its_caps_or_for_none(workers: Workers) -> None:
    counts = workers.start()
    user, model = Cap("user_streams", table_key("ann"), 1), Cap("model_streams", table_key("m"), 5)
    other_user = Cap("user_streams", table_key("bob"), 1)
    assert counts.acquire([user, model]) is None
    for _ in range(10):
        assert counts.acquire([model, user]) == user
    assert counts.acquire([other_user, model._replace(limit=2)]) is None
    assert counts.acquire([model._replace(limit=2)]) == model._replace(limit=2)


def test_a_killed_worker_gives_its_places_back(workers: Workers) -> None:
    killed, lives = workers.start(), workers.start()
    assert acquired(killed, THREE, 3) == [True] * 3
    assert acquired(lives, THREE) == [False]
    killed.close()
    assert acquired(lives, THREE, 4) == [True, True, True, False]


def test_its_successor_takes_over_its_file_and_counts_for_itself(workers: Workers, tmp_path: Path) -> None:
    killed, lives = workers.start(), workers.start()
    acquired(killed, THREE, 2)
    acquired(lives, THREE)
    killed.close()
    successor = workers.start()
    assert acquired(successor, THREE, 3) == [True, True, False]
    assert acquired(lives, THREE) == [False]
    successor.release(THREE)
    assert acquired(lives, THREE, 2) == [True, False]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["open-streams", "open-streams-0", "open-streams-1"]


def test_a_worker_that_starts_later_is_seen_by_those_before_it(workers: Workers) -> None:
    first = workers.start()
    assert acquired(first, THREE) == [True]
    later = [workers.start() for _ in range(3)]
    assert [acquired(counts, THREE)[0] for counts in later] == [True, True, False]
    assert acquired(first, THREE) == [False]


def test_what_a_killed_worker_counted_is_forgotten_in_all_records_at_once(workers: Workers) -> None:
    killed, lives = workers.start(), workers.start()
    caps = [Cap("user_streams", table_key(str(number)), 1) for number in range(2_000)]  # on several levels
    for cap in caps:
        assert killed.acquire([cap]) is None
    killed.close()
    assert lives.acquire(caps[:1]) is None
    successor = workers.start()
    assert [successor.acquire([cap]) for cap in caps] == [caps[0]] + [None] * 1_999


def test_users_come_and_go_and_their_records_with_them(workers: Workers, tmp_path: Path) -> None:
    counts = workers.start()
    counts.acquire(THREE)
    size = (tmp_path / "open-streams").stat().st_size
    for user in range(1, 5_000):
        cap = Cap("user_streams", table_key(str(user)), 1)
        assert counts.acquire([cap]) is None
        assert counts.acquire([cap]) == cap
        counts.release([cap])
    assert (tmp_path / "open-streams").stat().st_size == size < 100_000


def test_no_more_workers_than_there_should_be_can_count(workers: Workers) -> None:
    for _ in range(4):
        assert workers.start().acquire([THREE[0]._replace(limit=10)]) is None
    with pytest.raises(Unavailable, match="more workers than there should be"):
        workers.start().acquire(THREE)


def test_nothing_is_written_before_a_stream_is_counted(workers: Workers, tmp_path: Path) -> None:
    counts = workers.start()
    assert list(tmp_path.iterdir()) == []
    counts.acquire(THREE)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_a_file_that_was_only_begun_is_used_by_the_next_worker(workers: Workers, tmp_path: Path) -> None:
    (tmp_path / "open-streams").write_bytes(b"x" * 100)
    one, other = workers.start(), workers.start()
    assert acquired(one, THREE, 2) == [True, True]
    assert acquired(other, THREE, 2) == [True, False]


def test_what_cannot_be_counted_does_not_go_on(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        closing(StreamCounts(tmp_path / "file", 2)) as counts,
        pytest.raises(Unavailable, match=r"open streams cannot be counted in .*file \(Not a directory\)"),
    ):
        counts.acquire(THREE)


def test_a_full_disk_is_tried_again(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = workers.start()
    before = len(os.listdir("/dev/fd"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", lambda file, data, offset: len(data) - 1)
        for _ in range(2):
            with pytest.raises(Unavailable, match=r"\(No space left on device\); check that its disk is not full"):
                counts.acquire(THREE)
    assert len(os.listdir("/dev/fd")) == before + 2  # the table, and the worker's number, once
    assert acquired(counts, THREE, 4) == [True, True, True, False]


def test_a_release_does_not_wait_for_a_worker_that_is_stopped(workers: Workers, tmp_path: Path) -> None:
    counts, other = workers.start(), workers.start()
    acquired(counts, THREE, 3)
    with (tmp_path / "open-streams").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        counts.release(THREE)
        with pytest.raises(Unavailable, match="another worker holds a file of it"):
            counts.acquire(THREE)
    assert acquired(other, THREE, 2) == [True, False]
