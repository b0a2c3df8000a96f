"""The keeper writes a model's state before it says that the model is loaded or unloaded, or never."""

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.errors import Unavailable
from opensearch_ml_stream.extensions.runtimes.extension import RuntimesSettings
from opensearch_ml_stream.extensions.runtimes.keeper.keeper import Keeper
from opensearch_ml_stream.extensions.runtimes.keeper.model_folders import ModelFolder
from opensearch_ml_stream.extensions.runtimes.keeper.runtime_documents import DocumentState, RuntimeDocuments
from opensearch_ml_stream.extensions.runtimes.service.control import Operation
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.store import Document, Index
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.base_path import Paths
from tests.registry.registry_setup import closing

MODEL: dict[str, object] = {"name": "m", "implementation": "openai", "parameters": {"extra": {"model_id": "gpt"}}}


class SlowStore(SQLiteStore):
    """A store in which the next read of a model can be held: `asked` is set when it waits for `open`."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.asked = asyncio.Event()
        self.open = asyncio.Event()
        self.holds = self.is_down = False

    async def get(self, index: Index, id: str) -> Document | None:
        if self.is_down:
            raise Unavailable("down")
        if self.holds and index is Index.MODEL:
            self.holds = False
            self.asked.set()
            await self.open.wait()
        return await super().get(index, id)


@pytest.fixture
async def store() -> AsyncIterator[SlowStore]:
    async with closing(SlowStore(":memory:")) as opened:
        yield opened


@pytest.fixture
def documents(store: SlowStore) -> RuntimeDocuments:
    ticks = count(1)
    return RuntimeDocuments(store, LiveSettings(Settings()), lambda: next(ticks), Cipher(store))


@pytest.fixture
async def keeper(tmp_path: Path, documents: RuntimeDocuments, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Keeper]:
    """A keeper of a provider's model, which has no processes; its document is there."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    (folder := tmp_path / "models" / "m").mkdir(parents=True)
    (folder / "model-settings.json").write_text(json.dumps(MODEL))
    (tmp_path / "runtimes").mkdir()
    settings = Settings().with_section(RuntimesSettings(models=str(folder.parent)))
    keeper = Keeper(LiveSettings(settings), tmp_path / "runtimes", documents, Paths(), BackgroundTasks())
    await keeper.begin()
    put(keeper, "DEPLOYED")
    await keeper.documents.flush()
    yield keeper
    await keeper.close()


async def state(store: SlowStore, id: str = "runtime-m") -> str:
    document = await store.get(Index.MODEL, id)
    assert document is not None
    return str(document.source["model_state"])


def put(keeper: Keeper, state: DocumentState) -> None:
    """Have a state written, as the keeper does when a model's changes."""
    keeper.documents.put("m", ModelFolder(Path("/m"), MODEL), state)


@pytest.mark.parametrize("operation", ["load", "ensure", "unload"])
async def test_a_state_that_is_being_written_is_written_before_the_response(
    keeper: Keeper, store: SlowStore, operation: Operation
) -> None:
    store.holds = True
    ended: list[asyncio.Task[None]] = []
    put(keeper, "DEPLOYED")
    writing = asyncio.create_task(keeper.documents.flush())
    await store.asked.wait()
    working = asyncio.create_task(keeper.obey(operation, "m"))
    for task in (writing, working):
        task.add_done_callback(ended.append)
    for _ in range(100):  # turns of the loop: it ends within a few if it does not wait
        await asyncio.sleep(0)
    store.open.set()
    await asyncio.gather(writing, working)
    assert ended == [writing, working]


async def test_a_state_that_waits_for_the_store_is_not_written_after_the_model_is_unloaded(
    keeper: Keeper, documents: RuntimeDocuments, store: SlowStore
) -> None:
    put(keeper, "DEPLOYED")
    store.is_down = True
    with pytest.raises(Unavailable):
        await keeper.documents.flush()
    await keeper.obey("unload", "m")
    store.is_down = False
    await documents.put("m", ModelFolder(Path("/m"), MODEL), "UNDEPLOYED")  # as a worker does that has undeployed it
    await keeper.documents.flush()
    assert await state(store) == "UNDEPLOYED"
