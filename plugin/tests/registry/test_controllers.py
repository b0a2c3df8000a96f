"""Controllers over SQLite: created, shown, changed, deleted."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Conflict, Forbidden, InvalidRequest, NotFound
from opensearch_ml_stream.plugin.registry import Registry
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.registry.registry_setup import add_model, stored

LIMIT = {"limit": "4", "unit": "MINUTES"}


async def limits(registry: Registry, model_id: str) -> Any:
    return (await registry.controllers.get(ANYONE, model_id))["user_rate_limiter"]


async def test_a_controller_is_stored_as_ml_commons_has_it_and_noted_in_its_model(
    store: Store, registry: Registry
) -> None:
    model_id = await add_model(registry)
    body = {"user_rate_limiter": {"u": {"limit": 4, "unit": "minutes", "zap": 1}}, "zap": 2, "model_id": "other"}
    assert await registry.controllers.create(ANYONE, model_id, body) == {"model_id": model_id, "status": "CREATED"}
    expected = {"model_id": model_id, "user_rate_limiter": {"u": LIMIT}}
    assert (await stored(store, Index.CONTROLLER, model_id)).source == expected
    assert await registry.controllers.get(ANYONE, model_id) == expected
    assert (await registry.models.get(ANYONE, model_id))["is_controller_enabled"] is True


async def test_a_second_create_replaces_the_first(registry: Registry) -> None:
    model_id = await add_model(registry)
    await registry.controllers.create(ANYONE, model_id, {"user_rate_limiter": {"u": LIMIT}})
    response = await registry.controllers.create(ANYONE, model_id, {"user_rate_limiter": {"v": LIMIT}})
    assert (response["status"], await limits(registry, model_id)) == ("UPDATED", {"v": LIMIT})


@pytest.mark.parametrize("body", [{}, {"user_rate_limiter": {}}, {"user_rate_limiter": None}])
async def test_a_controller_may_limit_nobody(registry: Registry, body: dict[str, Any]) -> None:
    model_id = await add_model(registry)
    await registry.controllers.create(ANYONE, model_id, body)
    assert await limits(registry, model_id) == {}


async def test_an_update_merges_and_keeps_other_users(registry: Registry) -> None:
    model_id = await add_model(registry)
    await registry.controllers.create(ANYONE, model_id, {"user_rate_limiter": {"u": LIMIT, "v": LIMIT}})
    changes = {"user_rate_limiter": {"u": {"limit": "2.5"}, "w": {"unit": "DAYS"}, "x": {}}}
    response = await registry.controllers.update(ANYONE, model_id, changes)
    assert (response["_id"], response["result"]) == (model_id, "updated")
    assert await limits(registry, model_id) == {
        "u": {"limit": "2.5", "unit": "MINUTES"},
        "v": LIMIT,
        "w": {"unit": "DAYS"},
    }


async def test_a_deleted_controller_is_noted_in_its_model(registry: Registry) -> None:
    model_id = await add_model(registry)
    await registry.controllers.create(ANYONE, model_id, {"user_rate_limiter": {"u": LIMIT}})
    assert (await registry.controllers.delete(ANYONE, model_id))["result"] == "deleted"
    assert (await registry.models.get(ANYONE, model_id))["is_controller_enabled"] is False
    for call in (registry.controllers.get, registry.controllers.delete):
        with pytest.raises(NotFound, match=r"^Failed to find model controller"):
            await call(ANYONE, model_id)


async def test_a_model_takes_its_controller_with_it(store: Store, registry: Registry) -> None:
    model_id = await add_model(registry)
    await registry.controllers.create(ANYONE, model_id, {"user_rate_limiter": {"u": LIMIT}})
    await registry.models.delete(ANYONE, model_id)
    assert await store.get(Index.CONTROLLER, model_id) is None


async def test_a_controller_whose_model_is_no_more_can_be_deleted(store: Store, registry: Registry) -> None:
    await store.create(Index.CONTROLLER, {"model_id": "gone"}, "gone")
    assert await limits(registry, "gone") == {}
    assert (await registry.controllers.delete(ANYONE, "gone"))["result"] == "deleted"


async def test_only_a_remote_model_that_is_there_and_not_deploying_gets_one(store: Store, registry: Registry) -> None:
    await store.create(Index.MODEL, {"algorithm": "KMEANS"}, "local")
    await store.create(Index.MODEL, {"algorithm": "REMOTE", "model_state": "DEPLOYING"}, "deploying")
    for call in (registry.controllers.create, registry.controllers.update):
        with pytest.raises(NotFound, match=r"^Failed to find model to create the corresponding model controller"):
            await call(ANYONE, "nope", {})
        with pytest.raises(Forbidden, match="function category KMEANS is not supported"):
            await call(ANYONE, "local", {})
        with pytest.raises(Conflict, match=r"in DEPLOYING state is not allowed.*Model ID: deploying"):
            await call(ANYONE, "deploying", {})


async def test_an_update_needs_a_controller(registry: Registry) -> None:
    model_id = await add_model(registry)
    with pytest.raises(Conflict, match=f"Consider calling create model controller api instead. Model ID: {model_id}"):
        await registry.controllers.update(ANYONE, model_id, {"user_rate_limiter": {"u": LIMIT}})


@pytest.mark.parametrize(
    ("limiter", "reason"),
    [
        ("x", "user_rate_limiter must be an object"),
        ({"u": "x"}, "u must be an object"),
        ({"u": None}, "user_rate_limiter.u must be an object with limit and unit"),
        ({"u": {"limit": "x", "unit": "DAYS"}}, "Limit field must be a positive number."),
        ({"u": {"limit": "-1", "unit": "DAYS"}}, "Limit field must be a positive number."),
        ({"u": {"limit": "NaN", "unit": "DAYS"}}, "Limit field must be a positive number."),
        ({"u": {"limit": "1", "unit": "weeks"}}, "user_rate_limiter.u.unit must be one of NANOSECONDS, "),
        ({str(user): LIMIT for user in range(10_001)}, "user_rate_limiter has more than 10000 users"),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_a_limit_that_is_none_is_refused(registry: Registry, limiter: object, reason: str) -> None:
    model_id = await add_model(registry)
    with pytest.raises(InvalidRequest) as raised:
        await registry.controllers.create(ANYONE, model_id, {"user_rate_limiter": limiter})
    assert raised.value.reason.startswith(reason)
    with pytest.raises(NotFound):
        await registry.controllers.get(ANYONE, model_id)


async def test_updates_cannot_add_users_without_end(registry: Registry) -> None:
    model_id = await add_model(registry)
    await registry.controllers.create(
        ANYONE, model_id, {"user_rate_limiter": {str(user): LIMIT for user in range(10_000)}}
    )
    with pytest.raises(InvalidRequest, match="more than 10000 users"):
        await registry.controllers.update(ANYONE, model_id, {"user_rate_limiter": {"one more": LIMIT}})
