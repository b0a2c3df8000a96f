"""What only the embedded store can promise: one file, many processes, nobody else may read it."""

import asyncio
import sqlite3
import stat
import sys
from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, Unavailable
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.open_store import open_store

COUNT_UP = """
import asyncio, sys
from opensearch_ml_stream.connectors.errors import Conflict
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.open_store import open_store

async def main() -> None:
    async with open_store(sys.argv[1]) as store:
        done = 0
        while done < 20:
            read = await store.get(Index.MODEL, "m")
            source = {"count": read.source["count"] + 1}
            try:
                await store.put(
                    Index.MODEL, "m", source, if_seq_no=read.seq_no, if_primary_term=read.primary_term
                )
                done += 1
            except Conflict:
                pass

asyncio.run(main())
"""

OPEN_MANY = """
import asyncio, os, sys
from pathlib import Path
from opensearch_ml_stream.plugin.store.open_store import open_store

async def main() -> None:
    for number in range(30):
        async with open_store(f"sqlite:///{sys.argv[1]}/{number}") as store:
            Path(sys.argv[1], f"{number}.{os.getpid()}").touch()
            while len(list(Path(sys.argv[1]).glob(f"{number}.*"))) < 3:
                os.sched_yield()  # until the others are here
            await store.ping()

asyncio.run(main())
"""


ADD_AND_COUNT = """
import asyncio, sys
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.open_store import open_store

async def main():
    async with open_store(sys.argv[1]) as store:
        await store.create(Index.TASK, {})
        print((await store.search(Index.TASK, {}))["hits"]["total"]["value"])

asyncio.run(main())
"""


async def test_processes_that_share_a_file_lose_no_update(embedded_store_url: str) -> None:
    async with open_store(embedded_store_url) as store:
        await store.create(Index.MODEL, {"count": 0}, id="m")
        processes = [
            await asyncio.create_subprocess_exec(sys.executable, "-c", COUNT_UP, embedded_store_url) for _ in range(3)
        ]
        assert [await process.wait() for process in processes] == [0, 0, 0]
        document = await store.get(Index.MODEL, "m")
    assert document is not None and document.source == {"count": 60}


async def test_a_process_that_comes_and_goes_takes_nothing_from_those_that_stay(embedded_store_url: str) -> None:
    """Writes and searches have a connection each; the locks of the first must outlast the opening of the second."""
    command = (sys.executable, "-c", ADD_AND_COUNT, embedded_store_url)
    async with open_store(embedded_store_url) as store:
        for number in range(1, 6, 2):
            await store.create(Index.TASK, {})
            assert (await store.search(Index.TASK, {}))["hits"]["total"]["value"] == number
            process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
            assert (await process.communicate())[0] == f"{number + 1}\n".encode()


async def test_processes_that_open_a_new_file_at_once_all_open(tmp_path: Path) -> None:
    """Many files, as the race for a new one's journal is lost only now and then."""
    processes = [await asyncio.create_subprocess_exec(sys.executable, "-c", OPEN_MANY, str(tmp_path)) for _ in range(3)]
    assert [await process.wait() for process in processes] == [0, 0, 0]


async def test_the_file_and_its_folder_are_for_their_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "store.db"
    async with open_store(f"sqlite:///{path}") as store:
        await store.create(Index.CONFIG, {"master_key": "k"})
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in (path.parent, *path.parent.iterdir())}
    assert modes.pop("new") == 0o700
    assert set(modes) >= {"store.db"} and set(modes.values()) == {0o600}


async def test_memory_is_a_store_too_and_empty_once_it_was_closed() -> None:
    async with open_store("sqlite:///:memory:") as store:
        await store.create(Index.MODEL, {"name": "x"}, id="m")
        assert await store.get(Index.MODEL, "m") is not None
    async with open_store("sqlite:///:memory:") as store:
        assert await store.get(Index.MODEL, "m") is None


async def test_a_lock_of_another_process_does_not_hold_up_the_event_loop(embedded_store_url: str) -> None:
    async with open_store(embedded_store_url) as store:
        await store.create(Index.MODEL, {"name": "x"}, id="m")
        other = sqlite3.connect(embedded_store_url.removeprefix("sqlite:///"), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        writing = asyncio.create_task(store.put(Index.MODEL, "m", {"name": "y"}))
        await asyncio.sleep(0.05)  # a loop that is held up goes on when the write has given up
        assert not writing.done()
        other.execute("COMMIT")
        other.close()
        await writing


async def test_a_path_that_cannot_be_written_says_what_to_check(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    async with open_store(f"sqlite:///{tmp_path / 'file' / 'store.db'}") as store:
        with pytest.raises(Unavailable, match="folder can be read and written"):
            await store.ping()


async def test_a_file_that_is_not_a_store_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("this is no database, " * 100)
    async with open_store(f"sqlite:///{tmp_path / 'store.db'}") as store:
        with pytest.raises(Unavailable, match="not a database"):
            await store.ping()


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("", "sqlite:///PATH"),
        ("sqlite:///", "sqlite:///PATH"),
        ("store.db", "sqlite:///PATH"),
        ("ftp://ann:secret@host", "sqlite:///PATH"),
        ("https://", "no host"),
        ("http://ann:secret@host:99999", "port"),
        ("https://ann:secret@host:9200?verify=false", "check verify"),
        ("https://ann:secret@host:9200?verify_certs=maybe", "verify_certs must be true or false"),
    ],
)
async def test_a_url_that_names_no_store_is_refused_without_repeating_it(url: str, named: str) -> None:
    with pytest.raises(InvalidRequest, match=named) as caught:
        async with open_store(url):
            pass
    assert "secret" not in caught.value.reason
