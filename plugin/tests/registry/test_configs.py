"""Configs over SQLite: what is shown of them, and what never is."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest, NotFound
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.registry import Registry
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller


@pytest.mark.parametrize(
    ("source", "view"),
    [
        (
            {"type": "os_chat_root_agent", "configuration": {"agent_id": "a", "more": "b"}, "create_time": 1},
            {"type": "os_chat_root_agent", "create_time": 1, "configuration": {"agent_id": "a"}},
        ),
        (
            {"config_type": "x", "ml_configuration": {"agent_id": "a"}, "last_updated_time": 2, "last_update_time": 3},
            {"config_type": "x", "last_update_time": 3, "last_updated_time": 2, "ml_configuration": {"agent_id": "a"}},
        ),
        ({"master_key": "secret", "config_type": {"a": "secret"}, "configuration": "secret"}, {}),
        (
            {"config_type": "x", "ml_configuration": {"agent_id": ["secret"]}},
            {"config_type": "x", "ml_configuration": {}},
        ),
    ],
)
async def test_a_config_is_shown_by_the_names_that_ml_commons_knows(
    store: Store, registry: Registry, source: dict[str, Any], view: dict[str, Any]
) -> None:
    await store.create(Index.CONFIG, source, "c")
    shown = await registry.configs.get(ANYONE, "c")
    assert (shown, list(shown)) == (view, list(view))


@pytest.mark.parametrize("config_id", ["master_key", "master_key_c2hhMjU2"])
async def test_the_master_key_is_never_shown(store: Store, registry: Registry, config_id: str) -> None:
    await Cipher(store).encrypt("x")
    assert await store.get(Index.CONFIG, "master_key") is not None
    with pytest.raises(InvalidRequest, match=r"^You are not allowed to access this config doc$"):
        await registry.configs.get(ANYONE, config_id)


async def test_an_unknown_config_is_not_found(registry: Registry) -> None:
    with pytest.raises(NotFound, match=r"^Failed to find config with the provided config id: nope$"):
        await registry.configs.get(ANYONE, "nope")


async def test_a_config_is_its_tenants(store: Store, registry: Registry) -> None:
    await store.create(Index.CONFIG, {"config_type": "x", "tenant_id": "a"}, "of-a")
    await store.create(Index.CONFIG, {"config_type": "x"}, "of-nobody")
    assert (await registry.configs.get(Caller("ann", tenant_id="a"), "of-a"))["config_type"] == "x"
    for config_id in ("of-a", "of-nobody"):
        with pytest.raises(Forbidden, match=r"^You don't have permission to access this resource$"):
            await registry.configs.get(Caller("bob", is_admin=True, tenant_id="b"), config_id)
