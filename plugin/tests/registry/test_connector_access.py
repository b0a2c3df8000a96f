"""Connectors with an owner and an access mode: who may see, change, delete and use one."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest, MLStreamError
from opensearch_ml_stream.plugin.registry import Registry
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller
from tests.registry.callers import ADMIN, ANN, BOB, CAT, OWNED_BY_ANN, controlled_registry
from tests.registry.registry_setup import connector_body, registry_on, stored

MODES: dict[str, tuple[dict[str, Any], list[Caller]]] = {
    "private": ({}, [ANN, ADMIN]),
    "public": ({"access_mode": "public"}, [ANN, BOB, CAT, ADMIN]),
    "restricted": ({"backend_roles": ["team-a"]}, [ANN, CAT, ADMIN]),
}


@pytest.fixture
def registry(store: Store) -> Registry:
    return controlled_registry(store)


async def add(registry: Registry, caller: Caller = ANN, **fields: Any) -> str:
    return str((await registry.connectors.create(caller, connector_body(**fields)))["connector_id"])


async def allowed(call: Callable[[Caller], Awaitable[Any]], reason: str, error: type[MLStreamError]) -> list[Caller]:
    """Of all callers those for whom the call is made; the others get this error."""
    callers = []
    for caller in (ANN, BOB, CAT, ADMIN):
        try:
            await call(caller)
        except error as refused:
            assert refused.reason == reason
        else:
            callers.append(caller)
    return callers


async def test_a_new_connector_has_its_callers_access_in_ml_commons_shape(store: Store, registry: Registry) -> None:
    private = (await stored(store, Index.CONNECTOR, await add(registry))).source
    assert (private["access"], private["owner"], "backend_roles" in private) == ("private", OWNED_BY_ANN, False)
    team = (await stored(store, Index.CONNECTOR, await add(registry, add_all_backend_roles=True))).source
    assert (team["access"], team["backend_roles"]) == ("restricted", ["all-teams", "team-a"])
    assert not {"access_mode", "add_all_backend_roles"} & team.keys()


async def test_access_fields_that_cannot_be_are_refused_also_in_a_dry_run(store: Store, registry: Registry) -> None:
    for dry_run in (False, True):
        with pytest.raises(InvalidRequest, match=r"^You don't have the backend roles specified\.$"):
            await registry.connectors.create(BOB, connector_body(backend_roles=["team-a"], dry_run=dry_run))
    with pytest.raises(InvalidRequest, match=r"^access_mode must be one of public, restricted, private$"):
        await add(registry, access_mode="secret")
    assert (await store.search(Index.CONNECTOR, {}))["hits"]["total"]["value"] == 0


@pytest.mark.parametrize("mode", MODES)
async def test_a_connector_is_shown_to_those_whom_its_mode_lets_in(registry: Registry, mode: str) -> None:
    fields, callers = MODES[mode]
    id = await add(registry, **fields)
    refusal = "You don't have permission to access this connector"
    assert await allowed(lambda caller: registry.connectors.get(caller, id), refusal, Forbidden) == callers


@pytest.mark.parametrize("mode", MODES)
async def test_a_connector_is_changed_by_those_whom_its_mode_lets_in(registry: Registry, mode: str) -> None:
    fields, callers = MODES[mode]
    id = await add(registry, **fields)
    refusal = f"You don't have permission to update the connector, connector id: {id}"
    change = {"description": "changed"}
    assert await allowed(lambda who: registry.connectors.update(who, id, change), refusal, InvalidRequest) == callers


@pytest.mark.parametrize("mode", MODES)
async def test_a_connector_is_deleted_by_those_whom_its_mode_lets_in(registry: Registry, mode: str) -> None:
    fields, callers = MODES[mode]
    for caller in (ANN, BOB, CAT, ADMIN):
        id = await add(registry, **fields)
        if caller in callers:
            assert (await registry.connectors.delete(caller, id))["result"] == "deleted"
        else:
            with pytest.raises(Forbidden, match=r"^You are not allowed to delete this connector$"):
                await registry.connectors.delete(caller, id)
    assert (await registry.connectors.delete(BOB, "no such"))["result"] == "not_found"


@pytest.mark.parametrize("mode", MODES)
async def test_a_connector_is_used_in_models_of_those_whom_its_mode_lets_in(registry: Registry, mode: str) -> None:
    fields, callers = MODES[mode]
    id = await add(registry, **fields)

    async def register(caller: Caller) -> None:
        body = {"name": f"of {caller.name}", "function_name": "remote", "connector_id": id}
        await registry.models.register(caller, body)

    refusal = f"You don't have permission to use the connector provided, connector id: {id}"
    assert await allowed(register, refusal, InvalidRequest) == callers


async def test_a_model_does_not_change_to_a_connector_that_its_caller_may_not_use(registry: Registry) -> None:
    body = {"name": "m", "function_name": "remote", "connector_id": await add(registry, BOB)}
    model_id = (await registry.models.register(BOB, body))["model_id"]
    id = await add(registry)
    with pytest.raises(Forbidden, match=f"^You don't have permission to update the connector, connector id: {id}$"):
        await registry.models.update(BOB, model_id, {"connector_id": id})
    await registry.models.update(ADMIN, model_id, {"connector_id": id})


async def test_only_owner_and_admin_change_who_may_access(store: Store, registry: Registry) -> None:
    id = await add(registry, access_mode="public")
    for changes in ({"access_mode": "private"}, {"backend_roles": ["team-b"]}, {"add_all_backend_roles": True}):
        with pytest.raises(InvalidRequest, match=r"^Only owner or admin can update access control data\.$"):
            await registry.connectors.update(BOB, id, {"name": "mine", **changes})
    await registry.connectors.update(ANN, id, {"add_all_backend_roles": True})
    source = (await stored(store, Index.CONNECTOR, id)).source
    assert (source["name"], source["access"], source["backend_roles"]) == ("c", "restricted", ["all-teams", "team-a"])
    await registry.connectors.update(ADMIN, id, {"access_mode": "PRIVATE"})
    source = (await stored(store, Index.CONNECTOR, id)).source
    assert (source["access"], source["backend_roles"], source["owner"]) == ("private", [], OWNED_BY_ANN)


async def test_a_connector_from_before_is_everyones_until_an_admin_says_otherwise(
    store: Store, registry: Registry
) -> None:
    id = await add(registry_on(store), ANN)
    assert "owner" not in (await stored(store, Index.CONNECTOR, id)).source
    await registry.connectors.get(BOB, id)
    await registry.connectors.update(ADMIN, id, {"backend_roles": ["team-a"]})
    await registry.connectors.get(CAT, id)
    with pytest.raises(Forbidden):
        await registry.connectors.get(BOB, id)


async def test_switched_off_or_without_a_login_a_mode_keeps_nobody_out(store: Store, registry: Registry) -> None:
    id = await add(registry)
    off = controlled_registry(store, connector_access_control_enabled=False)
    await off.connectors.get(BOB, id)
    await registry.connectors.get(ANYONE, id)
    unowned = (await registry.connectors.create(ANYONE, connector_body()))["connector_id"]
    assert not {"owner", "access"} & (await stored(store, Index.CONNECTOR, unowned)).source.keys()
