"""Tables of records; two SharedTables of one file are two workers of a server."""

import errno
import fcntl
import mmap
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from struct import Struct

import pytest

from opensearch_ml_stream.plugin.shared.table import SharedTable, table_key

NUMBER = Struct("qq")
HEADER = 8  # bytes


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table"


@pytest.fixture
def table(path: Path) -> Iterator[SharedTable]:
    with closing(SharedTable(path, NUMBER)) as table:
        yield table


def key(number: int) -> bytes:
    return table_key(str(number))


def is_zero(record: tuple[int, ...]) -> bool:
    return not record[0]


def write(table: SharedTable, *numbers: int) -> None:
    with table:
        for number, place in zip(numbers, table.places([key(each) for each in numbers], is_zero), strict=True):
            table.write(place, number, -number)


def read(table: SharedTable, number: int) -> tuple[int, ...]:
    with table:
        return table.read(table.places([key(number)], is_zero)[0])


def test_nothing_is_written_before_it_is_used_and_then_for_its_owner_alone(table: SharedTable, path: Path) -> None:
    assert table.find(key(1)) == 0
    assert not path.exists()
    write(table, 1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read(table, 1) == (1, -1)
    assert read(table, 2) == (0, 0)


def test_the_key_of_a_name_is_the_same_in_every_process_and_any_name_has_one() -> None:
    assert table_key("ann").hex() == "d8963d899008cf8c05369be7b9042715"
    assert len({table_key(name) for name in ("", "ann", "ann\0", "a" * 10_000, "\ud800", "\udcff")}) == 6


def test_workers_read_what_others_write(table: SharedTable, path: Path) -> None:
    with closing(SharedTable(path, NUMBER)) as other:
        write(table, 1, 2)
        assert read(other, 2) == (2, -2)
        write(other, *range(3, 5000))  # which makes it grow
        assert [read(table, number)[0] for number in range(1, 5000)] == list(range(1, 5000))


@pytest.mark.usefixtures("patient_locks")
def test_nothing_is_lost_between_workers(path: Path) -> None:
    def add(_: int) -> None:
        with closing(SharedTable(path, NUMBER)) as table, table:
            [place] = table.places([key(1)], is_zero)
            count, _ = table.read(place)
            table.write(place, count + 1, 0)

    with ThreadPoolExecutor(8) as workers:
        list(workers.map(add, range(400)))
    with closing(SharedTable(path, NUMBER)) as table:
        assert read(table, 1) == (400, 0)


def test_it_grows_as_it_must_and_only_so_far(path: Path) -> None:
    with closing(SharedTable(path, NUMBER, max_levels=3)) as table:
        write(table, 1)
        first = path.stat().st_size
        kept = 0
        with pytest.raises(OSError, match="its table is full") as raised:
            for number in range(1, 40_000):
                write(table, number)
                kept = number
        assert raised.value.errno == errno.ENOSPC
        assert path.stat().st_size == HEADER + 7 * (first - HEADER)
        assert kept > 10_000
        assert all(read(table, number) == (number, -number) for number in range(1, kept + 1))


def test_a_table_that_cannot_be_mapped_now_is_as_it_was_and_can_be_used_again(
    table: SharedTable, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A map takes a descriptor."""
    write(table, 1)

    def no_map(*_: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with closing(SharedTable(path, NUMBER)) as other:
        write(other, *range(2, 2000))
    with monkeypatch.context() as patch:
        patch.setattr(mmap, "mmap", no_map)
        with pytest.raises(OSError, match="Too many open files"), table:
            table.refresh()
        assert read(table, 1) == (1, -1)
    with table:
        table.refresh()
    assert read(table, 1999) == (1999, -1999)


def test_a_record_that_says_nothing_makes_way_before_the_table_grows(table: SharedTable, path: Path) -> None:
    write(table, *range(1, 1000))
    size = path.stat().st_size
    for number in range(1, 30_000):
        with table:
            table.write(table.places([key(number)], is_zero)[0], 0, 5)
    assert path.stat().st_size == size
    assert sum(read(table, number) == (0, 0) for number in range(1, 30_000)) > 20_000  # none has what another had


def test_records_of_one_call_do_not_make_way_for_each_other(table: SharedTable) -> None:
    numbers = range(1, 20_000)
    with table:
        places = table.places([key(number) for number in numbers], is_zero)
    assert len(set(places)) == len(numbers)


def test_it_is_empty_for_all_who_have_prepared_it_while_no_record_is_in_it(path: Path) -> None:
    with ExitStack() as stack:
        one, other = (stack.enter_context(closing(SharedTable(path, NUMBER))) for _ in range(2))
        for table in (one, other):
            with table:
                table.prepare()
            assert table.is_empty
        write(one, 1, 2)
        write(other, 2)
        for number in (1, 2):
            assert not one.is_empty and not other.is_empty
            with other:
                other.remove(other.find(key(number)))
        assert one.is_empty and other.is_empty


def test_one_that_made_way_for_another_is_counted_no_more(path: Path) -> None:
    with closing(SharedTable(path, NUMBER, 1, 9)) as table:  # one place for all
        for number in range(1, 9):
            write(table, number)
        with table:
            [place] = table.places([key(1)])
            table.write(place, 0, 0)
        write(table, 9)
        with table:
            for number in range(2, 10):
                table.remove(table.find(key(number)))
        assert table.is_empty


def test_all_records_are_found_and_a_cell_of_them_cleared_at_once(table: SharedTable, path: Path) -> None:
    write(table, *range(1, 10_000))  # on two levels
    with closing(SharedTable(path, NUMBER)) as other:
        with other:
            other.clear_cell(1)
        assert sorted(other.read(place) for place in other.records()) == [(number, 0) for number in range(1, 10_000)]
    assert read(table, 9_999) == (9_999, 0)


def test_a_record_that_holds_another_key_is_not_taken_for_that_keys_own(path: Path) -> None:
    numbers = [int.from_bytes(key(2)[start : start + 8], "little", signed=True) for start in (0, 8)]
    with closing(SharedTable(path, NUMBER, 1, 9)) as table, table:
        [place] = table.places([key(1)])
        table.write(place, *numbers)
        assert table.find(key(2)) == 0


def test_keys_that_begin_alike_have_records_of_their_own(table: SharedTable) -> None:
    keys = [b"the same" + number.to_bytes(8, "little") for number in range(20)]
    with table:
        places = table.places(keys)
        table.remove(places[0])
    with closing(SharedTable(table._path, NUMBER)) as other:
        other.refresh()
        assert [other.find(key) for key in keys] == [0, *places[1:]]
    assert len(set(places)) == 20


def test_a_slot_that_was_freed_is_used_again(path: Path) -> None:
    with closing(SharedTable(path, NUMBER, max_levels=1)) as table:
        for number in range(1, 30_000):
            write(table, number)
            with table:
                table.remove(table.find(key(number)))
        assert table.find(key(1)) == 0


def test_workers_that_have_prepared_it_see_each_others_records_without_the_lock(path: Path) -> None:
    with ExitStack() as stack:
        one, other = (stack.enter_context(closing(SharedTable(path, NUMBER, 1))) for _ in range(2))
        for table in (one, other):
            with table:
                table.prepare()
        write(one, 1)
        assert other.read(other.find(key(1))) == (1, -1)


def test_a_disk_without_room_is_an_error_and_leaves_nothing_half_made(table: SharedTable, path: Path) -> None:
    write(table, 1)
    size = path.stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 4096, before[1]))
    try:
        with pytest.raises(OSError, match="No space left on device"):
            write(table, *range(2, 5000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.stat().st_size == size
    write(table, *range(2, 5000))
    assert read(table, 1) == (1, -1)


def test_what_a_worker_that_was_killed_left_of_a_level_is_written_anew(table: SharedTable, path: Path) -> None:
    write(table, 1)
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b"\xff" * 1000)
    write(table, *range(2, 5000))
    assert path.stat().st_size == HEADER + 3 * (size - HEADER)
    assert [read(table, number)[0] for number in range(1, 5000)] == list(range(1, 5000))


def test_a_worker_that_is_stopped_with_the_lock_holds_others_for_a_moment_and_one_that_is_killed_not_at_all(
    table: SharedTable, path: Path
) -> None:
    write(table, 1)
    holds = "import fcntl, os, signal, sys; fcntl.flock(file := open(sys.argv[1]), 2); print(flush=True); "
    stops = "os.kill(os.getpid(), signal.SIGSTOP)"
    with subprocess.Popen([sys.executable, "-c", holds + stops, path], stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        worker.stdout.readline()
        with pytest.raises(TimeoutError, match="another worker holds a file of it"):
            write(table, 1)
        worker.kill()
    write(table, 2)
    assert read(table, 1) == (1, -1)


def test_no_file_stays_open(path: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    with closing(SharedTable(path, NUMBER)) as table:
        write(table, *range(1, 5000))
        assert len(os.listdir("/dev/fd")) == before + 2  # the file, and its memory
    assert len(os.listdir("/dev/fd")) == before


def test_the_one_worker_of_a_server_takes_no_lock(path: Path) -> None:
    with closing(SharedTable(path, NUMBER, is_shared=False)) as table:
        write(table, 1)
        with path.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            write(table, 2)
        assert [read(table, number) for number in (1, 2)] == [(1, -1), (2, -2)]
