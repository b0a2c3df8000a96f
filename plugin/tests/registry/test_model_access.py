"""Models of groups with an owner and an access mode: every use case refuses a caller whom the group keeps out."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest, MLStreamError, NotFound
from opensearch_ml_stream.plugin.registry import Registry
from opensearch_ml_stream.plugin.registry.stored_documents import Json
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller
from tests.registry.callers import ADMIN, ANN, BOB, CAT, NO_PRIVILEGE, controlled_registry
from tests.registry.registry_setup import connector_body

LIMITS = {"user_rate_limiter": {"bob": {"limit": "1", "unit": "SECONDS"}}}


class Jobs:
    """A provider of batch jobs that notes who asked for which."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def refresh(self, caller: Caller, task_id: str, source: Json) -> Json:
        self.asked.append(("refresh", caller.name))
        return source

    async def cancel(self, caller: Caller, task_id: str, source: Json) -> None:
        self.asked.append(("cancel", caller.name))


@pytest.fixture
def jobs() -> Jobs:
    return Jobs()


@pytest.fixture
def registry(store: Store, jobs: Jobs) -> Registry:
    return controlled_registry(store, jobs)


async def register(registry: Registry, caller: Caller = ANN, **fields: Any) -> str:
    body = {"name": "m", "function_name": "remote", "connector": connector_body(), **fields}
    return str((await registry.models.register(caller, body))["model_id"])


Call = Callable[[Registry, Caller, str], Awaitable[Any]]

CALLS: dict[str, tuple[Call, type[MLStreamError], str]] = {
    "get": (lambda r, who, id: r.models.get(who, id), Forbidden, NO_PRIVILEGE),
    "update": (lambda r, who, id: r.models.update(who, id, {"name": "n"}), Forbidden, NO_PRIVILEGE + ", model ID {}"),
    "delete": (lambda r, who, id: r.models.delete(who, id), Forbidden, NO_PRIVILEGE),
    "deploy": (lambda r, who, id: r.models.deploy(who, id, {}), Forbidden, NO_PRIVILEGE),
    "undeploy": (
        lambda r, who, id: r.models.undeploy(who, id, {}),
        InvalidRequest,
        "No permission to undeploy model {}",
    ),
    "undeploy many": (
        lambda r, who, id: r.models.undeploy_many(who, {"model_ids": ["of nobody", id]}),
        InvalidRequest,
        "No permission to undeploy model {}",
    ),
    "create a controller": (
        lambda r, who, id: r.controllers.create(who, id, LIMITS),
        Forbidden,
        NO_PRIVILEGE + " controller, model ID: {}",
    ),
    "update the controller": (
        lambda r, who, id: r.controllers.update(who, id, LIMITS),
        Forbidden,
        NO_PRIVILEGE + " controller, model ID: {}",
    ),
    "get the controller": (
        lambda r, who, id: r.controllers.get(who, id),
        Forbidden,
        NO_PRIVILEGE + " controller, model ID: {}",
    ),
    "delete the controller": (
        lambda r, who, id: r.controllers.delete(who, id),
        Forbidden,
        NO_PRIVILEGE + " controller, model ID: {}",
    ),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_private_models_use_cases_are_its_owners_and_the_admins(
    store: Store, registry: Registry, name: str
) -> None:
    call, error, reason = CALLS[name]
    for caller in (ANN, BOB, CAT, ADMIN):
        model_id = await register(registry, name=f"of {caller.name}")
        await registry.controllers.create(ANN, model_id, LIMITS)
        before = await store.get(Index.MODEL, model_id)
        if caller in (ANN, ADMIN):
            await call(registry, caller, model_id)
        else:
            with pytest.raises(error) as refused:
                await call(registry, caller, model_id)
            assert refused.value.reason == reason.format(model_id)
            assert await store.get(Index.MODEL, model_id) == before


@pytest.mark.parametrize("name", CALLS)
async def test_a_public_models_use_cases_are_everyones(registry: Registry, name: str) -> None:
    model_id = await register(registry, access_mode="public")
    await registry.controllers.create(BOB, model_id, LIMITS)
    await CALLS[name][0](registry, BOB, model_id)


async def test_an_unknown_model_is_not_found_by_those_who_are_restricted_too(registry: Registry) -> None:
    for call in (registry.models.get(BOB, "x"), registry.models.deploy(BOB, "x", {}), registry.models.delete(BOB, "x")):
        with pytest.raises(NotFound):
            await call


async def test_a_models_access_is_that_of_its_group_at_any_time(registry: Registry) -> None:
    model_id = await register(registry, backend_roles=["team-a"])
    group_id = (await registry.models.get(CAT, model_id))["model_group_id"]
    with pytest.raises(Forbidden):
        await registry.models.get(BOB, model_id)
    await registry.model_groups.update(ANN, group_id, {"access_mode": "public"})
    await registry.models.get(BOB, model_id)
    await registry.model_groups.update(ANN, group_id, {"access_mode": "private"})
    with pytest.raises(Forbidden):
        await registry.models.get(CAT, model_id)


async def test_a_model_joins_only_a_group_that_its_caller_may_access(registry: Registry) -> None:
    group_id = (await registry.model_groups.register(ANN, {"name": "g"}))["model_group_id"]
    with pytest.raises(InvalidRequest, match=r"^You don't have permissions to perform this operation on this model\.$"):
        await register(registry, BOB, model_group_id=group_id)
    with pytest.raises(InvalidRequest) as refused:
        await register(registry, BOB, name="g")
    assert refused.value.reason == (
        f"The name {{g}} you provided is unavailable because it is used by another model group with id {{{group_id}}} "
        "to which you do not have access. Please provide a different name."
    )
    await register(registry, ANN, name="g")
    await register(registry, ADMIN, model_group_id=group_id)
    assert (await registry.model_groups.get(ANN, group_id))["latest_version"] == 2


async def test_a_model_asks_for_access_only_when_its_group_is_made(registry: Registry) -> None:
    model_id = await register(registry, access_mode="public", name="new")
    group_id = (await registry.models.get(BOB, model_id))["model_group_id"]
    for fields in ({"name": "new"}, {"model_group_id": group_id}):
        with pytest.raises(InvalidRequest, match=f"^The model joins the group {group_id}, which has its own access"):
            await register(registry, ANN, access_mode="private", **fields)


async def test_a_model_moves_only_to_a_group_that_its_caller_may_access(registry: Registry) -> None:
    model_id = await register(registry, BOB)
    group_id = (await registry.model_groups.register(ANN, {"name": "g"}))["model_group_id"]
    with pytest.raises(Forbidden, match=f"^User Doesn't have privilege to re-link .* model group ID {group_id}$"):
        await registry.models.update(BOB, model_id, {"model_group_id": group_id})
    await registry.models.update(ADMIN, model_id, {"model_group_id": group_id})
    with pytest.raises(Forbidden):
        await registry.models.get(BOB, model_id)


async def test_a_model_without_a_group_is_everyones_and_one_whose_group_is_missing_the_admins(
    store: Store, registry: Registry
) -> None:
    await store.create(Index.MODEL, {"name": "alone", "algorithm": "REMOTE"}, "alone")
    await store.create(Index.MODEL, {"name": "x", "algorithm": "REMOTE", "model_group_id": "gone"}, "orphan")
    await registry.models.get(BOB, "alone")
    await registry.models.get(ADMIN, "orphan")
    with pytest.raises(Forbidden, match=f"^{NO_PRIVILEGE}$"):
        await registry.models.get(BOB, "orphan")


async def test_tasks_are_as_accessible_as_their_models(store: Store, registry: Registry, jobs: Jobs) -> None:
    source = {"model_id": await register(registry), "task_type": "BATCH_PREDICTION", "state": "CREATED"}
    await store.create(Index.TASK, source, "job")
    await store.create(Index.TASK, {**source, "model_id": "gone"}, "old")
    tasks = registry.tasks
    for caller, task_id in ((BOB, "job"), (CAT, "job"), (BOB, "old"), (ANN, "old")):
        for call in (tasks.get(caller, task_id), tasks.cancel(caller, task_id), tasks.delete(caller, task_id)):
            with pytest.raises(Forbidden, match=f"^{NO_PRIVILEGE}$"):
                await call
    assert jobs.asked == []
    await tasks.get(ANN, "job")
    await tasks.cancel(ANN, "job")
    await tasks.get(ADMIN, "old")
    assert jobs.asked == [("refresh", "ann"), ("cancel", "ann"), ("refresh", "admin")]
    await store.put(Index.TASK, "job", {**source, "state": "COMPLETED"})
    assert (await tasks.delete(ANN, "job"))["result"] == "deleted"


async def test_switched_off_or_without_a_login_a_group_keeps_nobody_out(store: Store, registry: Registry) -> None:
    model_id = await register(registry)
    await controlled_registry(store, model_access_control_enabled=False).models.get(BOB, model_id)
    await registry.models.get(ANYONE, model_id)
