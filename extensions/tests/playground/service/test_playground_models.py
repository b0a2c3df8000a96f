"""Models as the playground lists them, and their forms, for those who may see them."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Forbidden
from opensearch_ml_stream.plugin.security.access_control import owner_of
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller
from tests.playground.service.playground_setup import ACTION, NEW, Playground, playground_on
from tests.registry.registry_setup import add_connector, add_model, connector_body

ANN, BOB = Caller("ann", backend_roles=frozenset({"sales"})), Caller("bob")
EMBEDDING = {**ACTION, "url": "https://api.openai.com/v1/embeddings", "request_body": '{"input": ${parameters.input}}'}


def by_name(form: Any) -> dict[str, Any]:
    return {one["name"]: one for one in form["parameters"]}


async def test_models_are_listed_by_name_with_what_they_can_do(playground: Playground) -> None:
    made = await playground.models.create(ANYONE, "chat", NEW)
    embedding_id = await add_connector(playground.registry, actions=[EMBEDDING])
    embedding = await add_model(playground.registry, name="an embedding", connector_id=embedding_id)
    inline = await add_model(playground.registry, name="Zoe", connector=connector_body(actions=[ACTION]))
    listed = await playground.models.listed(ANYONE, shows_settings=False)
    assert listed == [
        entry(embedding, "an embedding", "REGISTERED", "", gives_vectors=True),
        entry(made["model_id"], "Mine", "DEPLOYED", description="Chats"),
        entry(inline, "Zoe", "REGISTERED"),
    ]


def entry(
    id: str,
    name: str,
    state: str,
    provider: str = "openai/v1/chat/completions",
    description: str = "",
    *,
    gives_vectors: bool = False,
) -> dict[str, object]:
    known = {"id": id, "name": name, "description": description, "provider": provider}
    return {**known, "can_stream": not gives_vectors, "gives_vectors": gives_vectors, "state": state}


async def test_a_model_without_its_connector_or_with_a_broken_one_is_listed_all_the_same(
    playground: Playground,
) -> None:
    for name, connector_id in (("lost", "none"), ("broken", "b")):
        await playground.store.create(
            Index.MODEL, {"name": name, "algorithm": "REMOTE", "connector_id": connector_id}, name
        )
    await playground.store.create(Index.CONNECTOR, {"name": "x", "actions": [{"action_type": "PREDICT"}]}, "b")
    await playground.store.create(Index.MODEL, {"name": "local", "algorithm": "TEXT_EMBEDDING"}, "local")
    listed = await playground.models.listed(ANYONE, shows_settings=False)
    assert [(one["id"], one["provider"], one["can_stream"]) for one in listed] == [
        ("broken", "", False),
        ("lost", "", False),
    ]


async def test_a_form_names_the_turn_and_every_parameter(playground: Playground) -> None:
    made = await playground.models.create(ANYONE, "chat", NEW)
    form = await playground.models.form(ANYONE, made["model_id"], shows_connector=True)
    assert form == {
        "id": made["model_id"],
        "name": "Mine",
        "connector_id": made["connector_id"],
        "kind": "chat",
        "turn": "messages",
        "parameters": [
            {"name": "model", "default": "m-1", "required": False, "is_secret": False},
            {"name": "messages", "default": None, "required": True, "is_secret": False},
        ],
    }


async def test_a_form_has_no_field_that_a_request_may_not_set(playground: Playground) -> None:
    own = {"endpoint": "https://api.openai.com", "model": "m"}
    for url, expected in (
        ("${parameters.endpoint}/v1/chat/completions", ["messages", "model"]),
        ("https://api.openai.com/${parameters.path}", ["messages", "model", "path"]),
    ):
        body = connector_body(actions=[{**ACTION, "url": url}], parameters=own)
        stored = await add_connector(playground.registry, **body)
        for fields in ({"connector_id": stored}, {"connector": body}):
            model_id = await add_model(playground.registry, **fields)
            form = await playground.models.form(ANYONE, model_id, shows_connector=True)
            assert sorted(by_name(form)) == expected


async def test_a_form_asks_for_the_host_only_where_the_connector_has_no_credential(playground: Playground) -> None:
    action = {**ACTION, "url": "https://api.${parameters.host}.com/v1/chat/completions", "headers": {}}
    for credential, asks in (({"key": "k"}, False), ({}, True)):
        document = {"name": "c", "protocol": "http", "actions": [action], "credential": credential}
        await playground.store.put(Index.MODEL, "open", {"name": "open", "algorithm": "REMOTE", "connector": document})
        form = await playground.models.form(ANYONE, "open", shows_connector=True)
        assert ("host" in by_name(form)) is asks


async def test_a_connectors_values_are_not_for_those_who_may_not_see_it(playground: Playground) -> None:
    made = await playground.models.create(ANYONE, "chat", NEW)
    form = await playground.models.form(ANYONE, made["model_id"], shows_connector=False)
    assert by_name(form)["model"] == {"name": "model", "default": None, "required": False, "is_secret": False}


async def test_who_may_not_see_a_model_or_its_connector_is_not_shown_it() -> None:
    switches = {"connector_access_control_enabled": True, "model_access_control_enabled": True}
    async with playground_on(SQLiteStore(":memory:"), **switches) as playground:
        made = await playground.models.create(ANN, "chat", NEW)
        await playground.registry.models.get(ANN, made["model_id"])
        assert [one["id"] for one in await playground.models.listed(ANN, shows_settings=False)] == [made["model_id"]]
        assert await playground.models.listed(BOB, shows_settings=False) == []
        for shows_connector in (True, False):
            with pytest.raises(Forbidden):
                await playground.models.form(BOB, made["model_id"], shows_connector=shows_connector)
        with pytest.raises(Forbidden):
            await playground.models.delete(BOB, made["model_id"], with_connector=True)
        private = {"access": "private", "owner": owner_of(ANN), "name": "p", "parameters": {"model": "hidden"}}
        await playground.store.create(Index.CONNECTOR, {**private, "actions": [ACTION]}, "private")
        model = {"name": "open", "algorithm": "REMOTE", "connector_id": "private"}
        await playground.store.create(Index.MODEL, model, "open")
        shown = [await playground.models.form(caller, "open", shows_connector=True) for caller in (ANN, BOB)]
        assert [by_name(form)["model"]["default"] for form in shown] == ["hidden", None]


SIDECAR = {"limits": {"max_streams": 2}, "budgets": [{"tokens": 10, "window": "1d"}]}


async def overview(playground: Playground, caller: Caller = ANYONE) -> dict[str, Any]:
    (entry,) = await playground.models.listed(caller, shows_settings=True)
    return {name: entry[name] for name in ("access", "settings", "rate_limiter", "is_enabled")}


async def test_limits_and_budgets_are_listed_as_they_were_given(playground: Playground) -> None:
    limiter = {"limit": "5", "unit": "MINUTES"}
    await add_model(playground.registry, _sidecar=SIDECAR, rate_limiter=limiter, is_enabled=False)
    assert await overview(playground) == {
        "access": None, "settings": SIDECAR, "rate_limiter": limiter, "is_enabled": False,
    }  # fmt: skip


async def test_a_model_without_any_says_so(playground: Playground) -> None:
    await add_model(playground.registry)
    assert await overview(playground) == {"access": None, "settings": {}, "rate_limiter": None, "is_enabled": True}


async def test_they_are_not_listed_for_who_may_not_get_a_model(playground: Playground) -> None:
    await add_model(playground.registry, _sidecar=SIDECAR)
    (entry,) = await playground.models.listed(ANYONE, shows_settings=False)
    assert not {"access", "settings", "rate_limiter"} & entry.keys()


async def test_access_is_that_of_the_models_group_while_it_is_controlled() -> None:
    for is_on, access in ((True, {"mode": "restricted", "owner": "ann", "roles": ["sales"]}), (False, None)):
        async with playground_on(SQLiteStore(":memory:"), model_access_control_enabled=is_on) as playground:
            asked = {"access_mode": "restricted", "backend_roles": ["sales"]} if is_on else {}
            await playground.registry.model_groups.register(ANN, {"name": "g", **asked})
            (group,) = (await playground.registry.model_groups.search(ANN, {}))["hits"]["hits"]
            made = await playground.models.create(ANN, "chat", NEW)
            await playground.registry.models.update(ANN, made["model_id"], {"model_group_id": group["_id"]})
            assert (await overview(playground, ANN))["access"] == access
