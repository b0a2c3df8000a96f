"""What the list of models says of limits, budgets and access."""

from typing import Any

from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller
from tests.playground.service.playground_setup import NEW, Playground, playground_on
from tests.registry.registry_setup import add_model

ANN = Caller("ann", backend_roles=frozenset({"sales"}))
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
