"""Counts in a mapped file: always those of a dictionary, and seen by every process that maps it."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from opensearch_ml_stream.plugin.limits.count_table import CountTable, clear, write_empty

ENTRIES = 16


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table"


@pytest.fixture
def table(path: Path) -> Iterator[CountTable]:
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    write_empty(file, ENTRIES)
    with closing(CountTable(file, writes=True)) as table:
        yield table


def mapped(path: Path) -> CountTable:
    return CountTable(os.open(path, os.O_RDWR), writes=False)


@pytest.mark.parametrize("seed", range(20))
def test_its_counts_are_those_of_a_dictionary_whatever_comes_and_goes(path: Path, table: CountTable, seed: int) -> None:
    """With few homes, so that keys make way for each other, past the end of the table too."""
    random = Random(seed)
    homes = [random.randrange(ENTRIES) for _ in range(3)]
    keys = [ENTRIES * (number + 1) + home for number in range(3) for home in homes]
    keys = list(dict.fromkeys(keys))
    expected: Counter[int] = Counter()
    with closing(mapped(path)) as other:
        for _ in range(400):
            key = random.choice(keys)
            if random.random() < 0.5 and table.has_room(1):
                table.increase(key)
                expected[key] += 1
            elif expected[key]:
                expected[key] -= 1
                assert table.decrease(key) == expected[key]
                table.remove_if_zero(key)
            assert [table.count(key) for key in keys] == [expected[key] for key in keys]
            assert [other.count(key) for key in keys] == [expected[key] for key in keys]


def test_an_entry_of_zero_stays_until_it_is_removed_and_can_be_counted_up_again(table: CountTable) -> None:
    table.increase(7)
    assert table.decrease(7) == 0
    table.increase(7)
    table.remove_if_zero(7)
    assert table.count(7) == 1
    table.remove_if_zero(8)
    assert table.count(8) == 0


def test_half_of_the_entries_can_be_used_and_a_removed_one_again(table: CountTable) -> None:
    for key in range(1, ENTRIES // 2):
        table.increase(key)
    assert (table.has_room(1), table.has_room(2)) == (True, False)
    table.decrease(1)
    table.remove_if_zero(1)
    assert table.has_room(2)


def test_a_cleared_table_counts_nothing(path: Path, table: CountTable) -> None:
    table.increase(7)
    with closing(mapped(path)) as other:
        assert other.count(7) == 1
        clear(other)
        assert other.count(7) == table.count(7) == 0


def test_a_disk_that_does_not_take_the_whole_table_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "pwrite", lambda file, data, offset: len(data) - 1)
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    with pytest.raises(OSError, match="No space left on device"):
        write_empty(file, ENTRIES)
    os.close(file)
