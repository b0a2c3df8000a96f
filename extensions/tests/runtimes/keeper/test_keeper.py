"""A folder of models that changes while nobody watches it. Its models are a provider's, so none has a process."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import MLStreamError, NotFound, UpstreamError
from opensearch_ml_stream.extensions.runtimes.extension import RuntimesSettings
from opensearch_ml_stream.extensions.runtimes.keeper.keeper import Keeper, open_keeper
from opensearch_ml_stream.extensions.runtimes.service.status import STATUS_FILE
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.clock import now_millis
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.settings.dynamic import DynamicSettings
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.base_path import Paths
from tests.registry.registry_setup import closing


class Repository:
    """A folder of models as its operator changes it, and what the store has of it."""

    def __init__(self, folder: Path) -> None:
        self.models = folder / "models"
        self.runtimes = folder / "runtimes"
        self.database = folder / "store.db"
        self.runtimes.mkdir()
        self.write("first")

    def write(self, folder: str, model: str = "gpt-a", *, version: str | None = None, **settings: Any) -> None:
        extra = {"provider_id": "openai", "config": {"model_id": model, "model_type": "chat.completions"}}
        parameters = {"extra": extra, **({} if version is None else {"version": version})}
        self.write_text(folder, json.dumps({"implementation": "openai", "parameters": parameters, **settings}))

    def write_text(self, folder: str, text: str) -> None:
        (self.models / folder).mkdir(parents=True, exist_ok=True)
        (self.models / folder / "model-settings.json").write_text(text)

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[Keeper]:
        settings = Settings(store=f"sqlite:///{self.database}").with_section(RuntimesSettings(models=str(self.models)))
        async with open_keeper(settings, self.runtimes, Paths(), BackgroundTasks()) as keeper:
            yield keeper

    async def stored(self, id: str) -> dict[str, Any]:
        """The source of a model's document; empty without it."""
        async with closing(SQLiteStore(str(self.database))) as store:
            document = await store.get(Index.MODEL, id)
        return {} if document is None else dict(document.source)

    async def stored_some_time(self, id: str) -> None:
        """Returns once the model has a document."""
        async with asyncio.timeout(30):
            while await self.stored(id) == {}:  # noqa: ASYNC110 - another connection writes it
                await asyncio.sleep(0.05)

    async def allow(self, pattern: str) -> None:
        """Trust the endpoints of a pattern, and no others, as another process of the server does."""
        async with closing(SQLiteStore(str(self.database))) as store:
            settings = DynamicSettings(store, LiveSettings(Settings()), now_millis)
            await settings.change({"plugins.ml_commons.trusted_connector_endpoints_regex": [pattern]})

    async def called(self, id: str) -> tuple[str, str]:
        """The state of a model's document, and the provider's model that it calls."""
        source = await self.stored(id)
        return source["model_state"], source["connector"]["parameters"]["model"]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    return Repository(tmp_path)


async def test_a_new_folder_is_found_by_its_name_and_no_other_one_is(repository: Repository) -> None:
    async with repository.kept() as keeper:
        repository.write("other")
        repository.write("anything", name="second")
        with pytest.raises(NotFound):
            await keeper.obey("load", "second")
        await asyncio.gather(*(keeper.obey("find", "second") for _ in range(3)))
        assert await repository.called("runtime-second") == ("DEPLOYED", "gpt-a")
        assert await repository.stored("runtime-other") == {}
        await keeper.obey("find", "none-such")


async def test_load_reads_the_settings_again(repository: Repository) -> None:
    async with repository.kept() as keeper:
        await keeper.obey("load", "first")
        repository.write("first", "gpt-b")
        await keeper.obey("ensure", "first")
        assert await repository.called("runtime-first") == ("DEPLOYED", "gpt-a")
        await keeper.obey("load", "first")
        assert await repository.called("runtime-first") == ("DEPLOYED", "gpt-b")


async def test_a_file_that_could_not_be_read_is_told_until_it_was_repaired(repository: Repository) -> None:
    repository.write_text("broken", '{"implementation": ')
    async with repository.kept() as keeper:
        for operation in ("find", "load"):
            with pytest.raises(UpstreamError, match="is not JSON at line 1"):
                await keeper.obey(operation, "broken")
        repository.write("broken")
        await keeper.obey("find", "broken")
        assert await repository.called("runtime-broken") == ("DEPLOYED", "gpt-a")


async def test_what_the_store_refuses_is_an_error_of_the_load(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with repository.kept() as keeper:
        monkeypatch.delenv("OPENAI_API_KEY")
        repository.write("first", "gpt-b")
        with pytest.raises(UpstreamError, match="names an environment variable that is not set"):
            await keeper.obey("load", "first")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-again")
        await keeper.obey("load", "first")
        assert await repository.called("runtime-first") == ("DEPLOYED", "gpt-b")


async def test_an_endpoint_that_is_allowed_while_the_server_runs_lets_its_model_be_called(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the next load, and by itself; what is refused says so to whoever loads it."""
    monkeypatch.setenv("OPENAI_BASE_URL", "https://models.example.org/v1")
    async with repository.kept() as keeper:
        for operation in ("find", "load"):
            with pytest.raises(UpstreamError, match="not matching the trusted connector endpoint regex"):
                await keeper.obey(operation, "first")
        assert await repository.stored("runtime-first") == {}
        await repository.allow(r"^https://models\.example\.org/.*$")
        await keeper.obey("find", "first")
        assert await repository.called("runtime-first") == ("DEPLOYED", "gpt-a")
        monkeypatch.setenv("OPENAI_BASE_URL", "https://more.example.org/v1")
        repository.write("second")
        with pytest.raises(UpstreamError):
            await keeper.obey("find", "second")
        await repository.allow(r"^https://more\.example\.org/.*$")
        await repository.stored_some_time("runtime-second")


async def test_another_version_in_the_same_folder_takes_the_place_of_the_one_before(repository: Repository) -> None:
    async with repository.kept() as keeper:
        await keeper.obey("load", "first")
        repository.write("first", "gpt-b", version="v2")
        await keeper.obey("find", "first")
        assert await repository.called("runtime-first-v2") == ("DEPLOYED", "gpt-b")
        assert (await repository.stored("runtime-first"))["model_state"] == "UNDEPLOYED"


async def test_what_was_unloaded_stays_so_when_the_keeper_is_started_again(repository: Repository) -> None:
    repository.write("second")
    async with repository.kept() as keeper:
        await keeper.obey("load", "second")
        await keeper.obey("unload", "first")
    async with repository.kept() as keeper:
        await keeper.obey("load", "second")
        assert await repository.called("runtime-first") == ("UNDEPLOYED", "gpt-a")
        await keeper.obey("load", "first")
        assert await repository.called("runtime-first") == ("DEPLOYED", "gpt-a")


async def test_a_folder_that_has_gone_cannot_be_loaded(repository: Repository) -> None:
    repository.write("second")
    async with repository.kept() as keeper:
        (repository.models / "second" / "model-settings.json").unlink()
        with pytest.raises(MLStreamError, match="no runtime of a model second") as refused:
            await keeper.obey("load", "second")
    assert refused.value.status == 404
    assert (repository.runtimes / STATUS_FILE).exists()
