"""Models made from blueprints and deleted again: all of a model, or nothing."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, NotFound, Unavailable
from opensearch_ml_stream.extensions.playground.service.blueprint_models import (
    BlueprintModels,
    NewModel,
    installed_blueprints,
)
from opensearch_ml_stream.plugin.store import Index, Written
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.playground.service.playground_setup import KEY, NEW, Playground, playground_on
from tests.registry.registry_setup import add_model, stored


class FailingStore(SQLiteStore):
    """Fails at every write from one to a certain index on, until it is told that this is over."""

    failing: Index | None = None
    error: BaseException = Unavailable("The store does not respond")

    async def create(self, index: Index, source: Mapping[str, Any], id: str | None = None) -> Written:
        self._check(index)
        return await super().create(index, source, id)

    async def put(self, index: Index, *arguments: Any, **options: Any) -> Written:
        self._check(index)
        return await super().put(index, *arguments, **options)

    def _check(self, index: Index) -> None:
        if index is self.failing:
            self.failing = None
            raise self.error


def test_the_installed_blueprints_are_shown_by_name() -> None:
    names = list(installed_blueprints())
    assert names == sorted(names)
    assert {"openai-chat", "ollama-chat", "anthropic-messages"} <= set(names)


def test_a_blueprint_is_a_form_of_its_credential_and_its_parameters(playground: Playground) -> None:
    assert playground.models.blueprints() == [
        {
            "name": "chat",
            "title": "Chat",
            "description": "A chat",
            "credential": [{"name": "key", "required": True, "help": "API key"}],
            "parameters": [
                {"name": "model", "default": "m-1", "required": False, "help": "Name of the model"},
                {"name": "region", "default": None, "required": True, "help": "Where it is"},
                {"name": "temperature", "default": None, "required": False, "help": "Variety"},
            ],
        }
    ]


def test_a_host_that_a_blueprint_only_shows_the_form_of_is_no_default(playground: Playground) -> None:
    forms = {form["name"]: form for form in BlueprintModels(playground.store, playground.registry).views()}
    defaults = {field["name"]: field["default"] for field in forms["azure-openai-chat"]["parameters"]}
    assert defaults == {"endpoint": None, "deploy-name": None, "api-version": "2024-10-21"}


async def test_a_model_is_made_with_its_connector_and_deployed(playground: Playground) -> None:
    made = await playground.models.create(ANYONE, "chat", NEW)
    model = await playground.registry.models.get(ANYONE, made["model_id"])
    assert (model["name"], model["description"], model["model_state"]) == ("Mine", "Chats", "DEPLOYED")
    assert model["connector_id"] == made["connector_id"]
    connector = await stored(playground.store, Index.CONNECTOR, made["connector_id"])
    assert connector.source["name"] == "Mine"
    assert connector.source["parameters"] == {"model": "m-1", "region": "eu", "_made_by": "playground"}
    assert KEY not in str(connector.source)


async def test_without_a_name_a_model_has_its_blueprints(playground: Playground) -> None:
    made = await playground.models.create(ANYONE, "chat", NewModel(None, NEW.credential, NEW.parameters))
    assert (await playground.registry.models.get(ANYONE, made["model_id"]))["name"] == "Chat"


@pytest.mark.parametrize(
    ("name", "new", "error"),
    [
        ("none", NEW, NotFound("No blueprint is named [none]")),
        ("/etc/passwd", NEW, NotFound("No blueprint is named [/etc/passwd]")),
        ("chat", NewModel("x", {}, {"region": "eu"}), InvalidRequest("chat needs the credential [key] (API key)")),
        ("chat", NewModel("x", {"key": KEY}), InvalidRequest("chat needs the parameter [region] (Where it is)")),
        (
            "chat",
            NewModel("x", {"key": KEY, "other": "y"}),
            InvalidRequest("chat has no credential [other]; it takes key"),
        ),
    ],
)
async def test_what_a_blueprint_does_not_take_makes_nothing(
    playground: Playground, name: str, new: NewModel, error: NotFound | InvalidRequest
) -> None:
    with pytest.raises(type(error)) as refusal:
        await playground.models.create(ANYONE, name, new)
    assert refusal.value.reason == error.reason
    assert await playground.counts() == (0, 0, 0)


@pytest.mark.parametrize("error", [Unavailable("The store does not respond"), asyncio.CancelledError()])
@pytest.mark.parametrize("failing", [Index.CONNECTOR, Index.MODEL_GROUP, Index.MODEL, Index.TASK])
async def test_a_failure_in_between_leaves_nothing_behind(failing: Index, error: BaseException) -> None:
    store = FailingStore(":memory:")
    async with playground_on(store) as playground:
        store.failing, store.error = failing, error
        with pytest.raises(type(error)):
            await playground.models.create(ANYONE, "chat", NEW)
        assert await playground.counts() == (0, 0, 0)


async def test_a_failure_leaves_a_group_that_was_there_alone() -> None:
    store = FailingStore(":memory:")
    async with playground_on(store) as playground:
        await playground.registry.model_groups.register(ANYONE, {"name": "Mine"})
        store.failing = Index.MODEL
        with pytest.raises(Unavailable):
            await playground.models.create(ANYONE, "chat", NEW)
        assert await playground.counts() == (0, 0, 1)


async def test_a_model_is_deleted_with_the_connector_that_was_made_for_it(playground: Playground) -> None:
    made = await playground.models.create(ANYONE, "chat", NEW)
    deleted = await playground.models.delete(ANYONE, made["model_id"], with_connector=True)
    assert deleted == {"model_id": made["model_id"], "deleted_connector_id": made["connector_id"]}
    assert (await playground.counts())[:2] == (0, 0)
    with pytest.raises(NotFound):
        await playground.models.delete(ANYONE, made["model_id"], with_connector=True)


async def test_a_connector_stays_without_the_right_to_delete_it(playground: Playground) -> None:
    made = await playground.models.create(ANYONE, "chat", NEW)
    deleted = await playground.models.delete(ANYONE, made["model_id"], with_connector=False)
    assert deleted["deleted_connector_id"] is None
    assert (await playground.counts())[:2] == (1, 0)


async def test_a_connector_stays_while_another_model_uses_it(playground: Playground) -> None:
    made = await playground.models.create(ANYONE, "chat", NEW)
    await add_model(playground.registry, connector_id=made["connector_id"])
    deleted = await playground.models.delete(ANYONE, made["model_id"], with_connector=True)
    assert deleted["deleted_connector_id"] is None
    assert (await playground.counts())[:2] == (1, 1)


async def test_a_connector_that_was_made_elsewhere_stays(playground: Playground) -> None:
    model_id = await add_model(playground.registry)
    deleted = await playground.models.delete(ANYONE, model_id, with_connector=True)
    assert deleted["deleted_connector_id"] is None
    assert (await playground.counts())[:2] == (1, 0)
