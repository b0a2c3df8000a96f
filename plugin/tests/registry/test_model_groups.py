"""Model groups over SQLite."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Conflict, InvalidRequest, NotFound
from opensearch_ml_stream.plugin.registry import Registry
from opensearch_ml_stream.plugin.security.access_control import GROUP_WORDING
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.registry.registry_setup import FIRST_TICK, add_connector, add_model, closing, registry_on, stored


async def test_a_group_is_registered_and_shown(store: Store, registry: Registry) -> None:
    response = await registry.model_groups.register(ANYONE, {"name": "g", "description": "all of ours"})
    assert response["status"] == "CREATED"
    assert await registry.model_groups.get(ANYONE, response["model_group_id"]) == {
        "name": "g",
        "latest_version": 0,
        "description": "all of ours",
        "access": "public",
        "created_time": FIRST_TICK,
        "last_updated_time": FIRST_TICK,
    }
    plain = await registry.model_groups.register(ANYONE, {"name": "without description"})
    assert "description" not in (await stored(store, Index.MODEL_GROUP, plain["model_group_id"])).source


async def test_a_group_needs_a_name_of_its_own(registry: Registry) -> None:
    with pytest.raises(InvalidRequest, match=r"^model group name is null$"):
        await registry.model_groups.register(ANYONE, {"description": "x"})
    first = (await registry.model_groups.register(ANYONE, {"name": "g"}))["model_group_id"]
    taken = f"^The name you provided is already being used by a(nother)? model( group)? with ID: {first}\\."
    with pytest.raises(InvalidRequest, match=taken):
        await registry.model_groups.register(ANYONE, {"name": "g"})
    other = (await registry.model_groups.register(ANYONE, {"name": "other"}))["model_group_id"]
    with pytest.raises(InvalidRequest, match=taken):
        await registry.model_groups.update(ANYONE, other, {"name": "g"})


class SlowSearch(SQLiteStore):
    """A store whose searches respond late: whoever asks at the same time finds nothing."""

    async def search(self, index: Index, body: Mapping[str, Any]) -> dict[str, Any]:
        response = await super().search(index, body)
        if index is Index.MODEL_GROUP:
            await asyncio.sleep(0.05)
        return response


async def test_models_that_are_registered_at_once_share_the_group_of_their_name() -> None:
    async with closing(SlowSearch(":memory:")) as store:
        registry = registry_on(store)
        connector_id = await add_connector(registry)
        ids = await asyncio.gather(*[add_model(registry, name="new", connector_id=connector_id) for _ in range(5)])
        models = [await registry.models.get(ANYONE, id) for id in ids]
        assert len({model["model_group_id"] for model in models}) == 1
        assert sorted(model["model_version"] for model in models) == ["1", "2", "3", "4", "5"]
        assert (await registry.model_groups.search(ANYONE, {}))["hits"]["total"]["value"] == 1


async def test_of_groups_of_one_name_that_are_registered_at_once_one_is_created() -> None:
    async with closing(SlowSearch(":memory:")) as store:
        groups = registry_on(store).model_groups
        outcomes = await asyncio.gather(
            *[groups.register(ANYONE, {"name": "g"}) for _ in range(5)], return_exceptions=True
        )
        [created] = [outcome for outcome in outcomes if isinstance(outcome, dict)]
        taken = {outcome.reason for outcome in outcomes if isinstance(outcome, InvalidRequest)}
        assert taken == {
            f"The name you provided is already being used by a model group with ID: {created['model_group_id']}."
        }


async def test_a_name_that_a_rename_has_freed_can_be_taken_again(registry: Registry) -> None:
    groups = registry.model_groups
    first = (await groups.register(ANYONE, {"name": "g"}))["model_group_id"]
    assert re.fullmatch(r"[A-Za-z0-9_-]{20}", first)
    await groups.update(ANYONE, first, {"name": "moved"})
    second = (await groups.register(ANYONE, {"name": "g"}))["model_group_id"]
    assert first != second
    assert [(await groups.get(ANYONE, id))["name"] for id in (first, second)] == ["moved", "g"]
    await groups.delete(ANYONE, first)
    with pytest.raises(InvalidRequest, match=f"with ID: {second}"):
        await groups.register(ANYONE, {"name": "g"})
    assert (await groups.register(ANYONE, {"name": "moved"}))["status"] == "CREATED"


async def test_an_update_changes_what_it_names(registry: Registry) -> None:
    group_id = (await registry.model_groups.register(ANYONE, {"name": "g", "description": "d"}))["model_group_id"]
    assert await registry.model_groups.update(ANYONE, group_id, {"name": "g"}) == {"status": "Updated"}
    await registry.model_groups.update(ANYONE, group_id, {"description": "changed"})
    shown = await registry.model_groups.get(ANYONE, group_id)
    assert (shown["name"], shown["description"]) == ("g", "changed")
    assert (shown["created_time"], shown["last_updated_time"]) == (FIRST_TICK, FIRST_TICK + 2)


async def test_access_control_is_refused(registry: Registry) -> None:
    for call in (
        registry.model_groups.register(ANYONE, {"name": "g", "access_mode": "private"}),
        registry.model_groups.update(ANYONE, "g", {"backend_roles": ["r"]}),
    ):
        with pytest.raises(InvalidRequest) as raised:
            await call
        assert raised.value.reason == GROUP_WORDING.switched_off


async def test_a_group_that_is_not_there_is_not_found(registry: Registry) -> None:
    groups = registry.model_groups
    for call in (groups.get(ANYONE, "x"), groups.update(ANYONE, "x", {"name": "y"})):
        with pytest.raises(NotFound, match=r"^Failed to find model group with the provided model group id: x$"):
            await call


async def test_deleting_a_group_that_is_not_there_says_so(registry: Registry) -> None:
    assert (await registry.model_groups.delete(ANYONE, "x"))["result"] == "not_found"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (None, "model group name is null"),
        (" ", "Validation Failed: 1: Model group name is required and cannot be null or blank;"),
    ],
)
async def test_a_group_has_a_name(registry: Registry, name: str | None, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=f"^{reason}$"):
        await registry.model_groups.register(ANYONE, {"name": name})


async def test_a_group_with_models_cannot_be_deleted(registry: Registry) -> None:
    group_id = (await registry.model_groups.register(ANYONE, {"name": "g"}))["model_group_id"]
    model_id = await add_model(registry, model_group_id=group_id)
    with pytest.raises(Conflict, match=r"^Cannot delete the model group when it has associated model versions$"):
        await registry.model_groups.delete(ANYONE, group_id)
    await registry.models.delete(ANYONE, model_id)
    assert (await registry.model_groups.delete(ANYONE, group_id))["result"] == "deleted"


async def test_groups_are_searched(registry: Registry) -> None:
    for name in ("one", "two"):
        await registry.model_groups.register(ANYONE, {"name": name})
    response = await registry.model_groups.search(ANYONE, {"query": {"match": {"name": "two"}}, "_source": ["name"]})
    assert [hit["_source"] for hit in response["hits"]["hits"]] == [{"name": "two"}]


async def test_models_are_numbered_without_gaps_even_when_registered_at_once(registry: Registry) -> None:
    group_id = (await registry.model_groups.register(ANYONE, {"name": "g"}))["model_group_id"]
    missing = NotFound("no such group")
    versions = await asyncio.gather(*[registry.model_groups.next_version(group_id, missing) for _ in range(5)])
    assert sorted(versions) == [1, 2, 3, 4, 5]
    assert (await registry.model_groups.get(ANYONE, group_id))["latest_version"] == 5
    with pytest.raises(NotFound, match=r"^no such group$"):
        await registry.model_groups.next_version("gone", missing)


async def test_a_model_without_a_group_joins_the_one_of_its_name(registry: Registry) -> None:
    first = await registry.models.get(ANYONE, await add_model(registry, name="m"))
    second = await registry.models.get(ANYONE, await add_model(registry, name="m"))
    other = await registry.models.get(ANYONE, await add_model(registry, name="other", description="new group"))
    assert first["model_group_id"] == second["model_group_id"] != other["model_group_id"]
    assert [model["model_version"] for model in (first, second, other)] == ["1", "2", "1"]
    assert (await registry.model_groups.get(ANYONE, other["model_group_id"]))["description"] == "new group"
