"""Model groups with an owner and an access mode: who may see, change and delete one."""

import pytest

from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest
from opensearch_ml_stream.plugin.registry import Registry
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller
from tests.registry.callers import ADMIN, ANN, BOB, CAT, OWNED_BY_ANN, controlled_registry
from tests.registry.registry_setup import stored


@pytest.fixture
def registry(store: Store) -> Registry:
    return controlled_registry(store)


async def add(registry: Registry, caller: Caller = ANN, **fields: object) -> str:
    return str((await registry.model_groups.register(caller, {"name": "g", **fields}))["model_group_id"])


async def test_a_new_group_has_its_callers_access_in_ml_commons_shape(store: Store, registry: Registry) -> None:
    private = (await stored(store, Index.MODEL_GROUP, await add(registry))).source
    assert (private["access"], private["owner"], "backend_roles" in private) == ("private", OWNED_BY_ANN, False)
    group_id = await add(registry, name="team", backend_roles=["team-a"])
    shown = await registry.model_groups.get(CAT, group_id)
    assert (shown["access"], shown["backend_roles"], shown["owner"]) == ("restricted", ["team-a"], OWNED_BY_ANN)


async def test_a_group_of_nobody_who_logged_in_is_public_and_has_no_owner(store: Store, registry: Registry) -> None:
    source = (await stored(store, Index.MODEL_GROUP, await add(registry, ANYONE))).source
    assert (source["access"], "owner" in source) == ("public", False)


async def test_a_private_group_is_its_owners_and_the_admins(registry: Registry) -> None:
    group_id = await add(registry)
    groups = registry.model_groups
    with pytest.raises(Forbidden, match=r"^User doesn't have privilege to perform this operation on this model group$"):
        await groups.get(BOB, group_id)
    refusal = r"^You don't have permissions to perform this operation on this model group\.$"
    with pytest.raises(InvalidRequest, match=refusal):
        await groups.update(BOB, group_id, {"description": "mine"})
    with pytest.raises(Forbidden, match=r"^User doesn't have privilege to delete this model group$"):
        await groups.delete(BOB, group_id)
    for caller in (ADMIN, ANN):
        await groups.update(caller, group_id, {"description": caller.name})
    assert (await groups.get(ANN, group_id))["description"] == "ann"
    assert (await groups.delete(ANN, group_id))["result"] == "deleted"


async def test_only_owner_and_admin_change_who_may_access(registry: Registry) -> None:
    group_id = await add(registry, access_mode="public")
    groups = registry.model_groups
    await groups.update(BOB, group_id, {"description": "of all"})
    with pytest.raises(InvalidRequest, match=r"^Only owner or admin can update access control data\.$"):
        await groups.update(BOB, group_id, {"access_mode": "private"})
    await groups.update(ANN, group_id, {"add_all_backend_roles": True})
    await groups.get(CAT, group_id)
    await groups.update(ADMIN, group_id, {"access_mode": "private"})
    with pytest.raises(Forbidden):
        await groups.get(CAT, group_id)
    shown = await groups.get(ANN, group_id)
    assert (shown["access"], shown["backend_roles"], shown["owner"]) == ("private", [], OWNED_BY_ANN)


async def test_an_owner_who_has_lost_the_role_is_kept_out_like_others(registry: Registry) -> None:
    group_id = await add(registry, backend_roles=["team-a"])
    moved = Caller("ann", frozenset({"team-b"}))
    with pytest.raises(Forbidden):
        await registry.model_groups.get(moved, group_id)
    with pytest.raises(InvalidRequest, match=r"^You don't have permissions"):
        await registry.model_groups.update(moved, group_id, {"access_mode": "public"})
