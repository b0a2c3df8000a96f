"""A model as its editor shows it, and what is changed there."""

import socket
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest
from opensearch_ml_stream.extensions.playground.service.model_changes import AllowedServers, ModelChange, ModelChanges
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.settings.dynamic import DynamicSettings
from opensearch_ml_stream.plugin.settings.endpoint_permissions import PATTERNS, PRIVATE_ALLOWED, PRIVATE_PATTERNS
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller
from tests.playground.service.playground_setup import ACTION, CHAT, KEY, NEW, Playground, playground_on
from tests.registry.registry_setup import add_model, closing, connector_body, stored

ANN, BOB = Caller("ann"), Caller("bob")


def changes_of(playground: Playground) -> ModelChanges:
    return ModelChanges(playground.store, playground.registry, {"chat": CHAT})


async def made(playground: Playground) -> Mapping[str, str]:
    return await playground.models.create(ANYONE, "chat", NEW)


async def plain_credential(playground: Playground, connector_id: str) -> dict[str, str]:
    document = await stored(playground.store, Index.CONNECTOR, connector_id)
    cipher = Cipher(playground.store)
    return {name: await cipher.decrypt(text) for name, text in document.source["credential"].items()}


async def test_the_editor_shows_values_with_their_help_and_of_credentials_the_names(playground: Playground) -> None:
    model_id = (await made(playground))["model_id"]
    shown = await changes_of(playground).shown(ANYONE, model_id, shows_connector=True)
    assert shown == {
        "id": model_id,
        "name": "Mine",
        "description": "Chats",
        "settings": {},
        "connector": {
            "blueprint": "chat",
            "credential": [{"name": "key", "help": "API key"}],
            "parameters": [
                {"name": "model", "value": "m-1", "help": "Name of the model", "is_explained": True},
                {"name": "region", "value": "eu", "help": "Where it is", "is_explained": True},
            ],
        },
    }
    assert KEY not in str(shown)


async def test_the_connector_is_not_shown_to_who_may_not_see_it() -> None:
    switches = {"connector_access_control_enabled": True}
    async with playground_on(SQLiteStore(":memory:"), **switches) as playground:
        model_id = (await playground.models.create(ANN, "chat", NEW))["model_id"]
        changes = changes_of(playground)
        for caller, may_get, is_shown in ((ANN, True, True), (BOB, True, False), (ANN, False, False)):
            shown = await changes.shown(caller, model_id, shows_connector=may_get)
            assert (shown["connector"] is not None) is is_shown


async def test_a_connector_in_the_model_is_shown_and_changed_there(playground: Playground) -> None:
    body = connector_body(actions=[ACTION], parameters={"model": "m-1", "_made_by": "x"})
    model_id = await add_model(playground.registry, connector=body)
    changes = changes_of(playground)
    await changes.change(ANYONE, model_id, ModelChange(parameters={"model": "m-2"}))
    shown = await changes.shown(ANYONE, model_id, shows_connector=True)
    assert [(one["name"], one["value"]) for one in shown["connector"]["parameters"]] == [("model", "m-2")]


async def test_everything_changes_at_once_and_the_model_stays_deployed(playground: Playground) -> None:
    ids = await made(playground)
    limits = {"limits": {"max_streams": 3}}
    change = ModelChange("New", "Other", {"model": "m-2"}, {"key": "sk-new"}, limits)
    assert await changes_of(playground).change(ANYONE, ids["model_id"], change) == {"model_id": ids["model_id"]}
    model = await playground.registry.models.get(ANYONE, ids["model_id"])
    assert (model["name"], model["description"], model["_sidecar"]) == ("New", "Other", limits)
    assert model["model_state"] == "DEPLOYED"
    connector = await playground.registry.connectors.get(ANYONE, ids["connector_id"])
    assert (connector["parameters"]["model"], connector["parameters"]["region"]) == ("m-2", "eu")
    assert await plain_credential(playground, ids["connector_id"]) == {"key": "sk-new"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"settings": {"limits": {"max_streams": 0}}, "parameters": {"model": "m-2"}, "name": "New"},
        {"settings": {"budgets": [{"cost": 1, "window": "1d"}]}, "credential": {"key": "sk-new"}},
        {"parameters": {"_stream": "no such"}, "credential": {"key": "sk-new"}, "name": "New"},
    ],
)
async def test_a_change_that_is_wrong_changes_nothing(playground: Playground, wrong: dict[str, Any]) -> None:
    ids = await made(playground)
    changes = changes_of(playground)
    before = await changes.shown(ANYONE, ids["model_id"], shows_connector=True)
    with pytest.raises(InvalidRequest):
        await changes.change(ANYONE, ids["model_id"], ModelChange(**wrong))
    assert await changes.shown(ANYONE, ids["model_id"], shows_connector=True) == before
    assert await plain_credential(playground, ids["connector_id"]) == {"key": KEY}
    assert (await playground.registry.models.get(ANYONE, ids["model_id"]))["model_state"] == "DEPLOYED"


async def test_a_member_of_the_settings_that_is_null_goes_and_the_others_stay(playground: Playground) -> None:
    model_id = (await made(playground))["model_id"]
    changes = changes_of(playground)
    for settings, left in (
        ({"prices": {"input": 1, "output": 2}, "budgets": [{"cost": 1, "window": "1d"}]}, {"budgets", "prices"}),
        ({"budgets": None}, {"prices"}),
    ):
        await changes.change(ANYONE, model_id, ModelChange(settings=settings))
        shown = await changes.shown(ANYONE, model_id, shows_connector=True)
        assert shown["settings"].keys() == left


async def test_a_connector_that_other_deployed_models_use_is_not_changed_under_them(playground: Playground) -> None:
    ids = await made(playground)
    other = await add_model(playground.registry, connector_id=ids["connector_id"])
    await playground.registry.models.deploy(ANYONE, other, {})
    with pytest.raises(InvalidRequest, match=f"still using this connector.*{other}"):
        await changes_of(playground).change(ANYONE, ids["model_id"], ModelChange(parameters={"model": "m-2"}))
    assert (await playground.registry.models.get(ANYONE, ids["model_id"]))["model_state"] == "DEPLOYED"


async def test_a_model_that_a_caller_may_not_see_is_neither_shown_nor_changed() -> None:
    async with playground_on(SQLiteStore(":memory:"), model_access_control_enabled=True) as playground:
        model_id = (await playground.models.create(ANN, "chat", NEW))["model_id"]
        await playground.registry.model_groups.search(ANN, {})
        changes = changes_of(playground)
        with pytest.raises(Forbidden):
            await changes.shown(BOB, model_id, shows_connector=True)
        with pytest.raises(Forbidden):
            await changes.change(BOB, model_id, ModelChange(name="Theirs"))


OPENAI = r"^https://api\.openai\.com/.*$"
OWN = r"^http://10\.0\.0\.5:8000/.*$"


@pytest.fixture
async def settings() -> AsyncIterator[DynamicSettings]:
    async with closing(SQLiteStore(":memory:")) as store:
        at_start = Settings(trusted_connector_endpoints_regex=(OPENAI,))
        yield DynamicSettings(store, LiveSettings(at_start), lambda: 0)


async def test_a_private_server_is_allowed_with_its_address_alone(settings: DynamicSettings) -> None:
    servers = AllowedServers(settings)
    allowed = await servers.allow("http://10.0.0.5:8000/v1/chat")
    assert allowed == {"origin": "http://10.0.0.5:8000", "is_private": True, "is_new": True}
    kept = await settings.persistent()
    assert (kept[PATTERNS], kept[PRIVATE_PATTERNS], kept[PRIVATE_ALLOWED]) == ([OPENAI, OWN], [OWN], True)
    assert (await servers.allow("http://10.0.0.5:8000"))["is_new"] is False


async def test_a_public_server_needs_no_private_address(
    settings: DynamicSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, port: public)
    allowed = await AllowedServers(settings).allow("https://ml.example.com/v1")
    assert (allowed["is_private"], allowed["is_new"]) == (False, True)
    assert (await settings.persistent())[PRIVATE_ALLOWED] is False


async def test_what_is_allowed_already_is_not_stored(settings: DynamicSettings) -> None:
    allowed = await AllowedServers(settings).allow("http://10.0.0.5:8000")
    before = await settings.persistent()
    assert allowed["is_new"] and (await AllowedServers(settings).allow("http://10.0.0.5:8000/x"))["is_new"] is False
    assert await settings.persistent() == before


@pytest.mark.parametrize("url", ["ftp://10.0.0.5", "http://", "http://a b/"])
async def test_what_is_no_url_of_a_server_is_refused(settings: DynamicSettings, url: str) -> None:
    with pytest.raises(InvalidRequest):
        await AllowedServers(settings).allow(url)
    assert await settings.persistent() == {}
