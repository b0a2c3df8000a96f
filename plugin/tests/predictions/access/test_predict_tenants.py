"""Predictions of tenants: only their own models, over their own connectors, with their own keys."""

from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.errors import Forbidden, Internal
from opensearch_ml_stream.plugin.predictions.model_cache import Deploy, ModelCache
from opensearch_ml_stream.plugin.store import Document, Index
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller
from tests.predictions.prediction_setup import SECRET, connector_body, prediction_setup

A, B = Caller("ann", tenant_id="a"), Caller("root", is_admin=True, tenant_id="b")
NOT_YOURS = r"^You don't have permission to access this resource$"


async def test_a_model_is_neither_called_nor_deployed_by_another_tenant(tmp_path: Path) -> None:
    deployed: list[str] = []

    async def plan(model_id: str, document: Document) -> Deploy:
        async def deploy() -> None:
            deployed.append(model_id)

        return deploy

    async with prediction_setup(tmp_path) as setup:
        connector = {**connector_body(), "credential": {"key": await setup.cipher.of("a").encrypt(SECRET)}}
        await setup.store.create(Index.MODEL, {"connector": connector, "tenant_id": "a"}, "m")
        await setup.store.create(Index.MODEL, {"connector": connector_body()}, "nobodys")
        models = ModelCache(setup.store, setup.cipher, setup.live, plan)
        with pytest.raises(Forbidden, match=NOT_YOURS):
            await models.get(B, "m")
        assert deployed == []
        assert (await models.get(A, "m")).credential == {"key": SECRET}
        with pytest.raises(Forbidden, match=NOT_YOURS):  # also while it is cached
            await models.get(B, "m")
        assert await models.get(ANYONE, "m") is await models.get(A, "m")
        with pytest.raises(Forbidden, match=NOT_YOURS):
            await models.get(A, "nobodys")
        assert deployed == ["m"]


async def test_a_model_over_another_tenants_connector_is_not_called(tmp_path: Path) -> None:
    async with prediction_setup(tmp_path) as setup:
        connector = await setup.stored_connector(connector_body())
        await setup.store.create(Index.CONNECTOR, {**connector, "tenant_id": "b"}, "c")
        await setup.store.create(Index.MODEL, {"connector_id": "c", "tenant_id": "a"}, "m")
        with pytest.raises(Forbidden, match=NOT_YOURS):
            await setup.models.get(A, "m")


async def test_credentials_of_another_tenant_cannot_be_decrypted(tmp_path: Path) -> None:
    async with prediction_setup(tmp_path) as setup:
        connector = {**connector_body(), "credential": {"key": await setup.cipher.of("b").encrypt(SECRET)}}
        await setup.store.create(Index.MODEL, {"connector": connector, "tenant_id": "a"}, "m")
        with pytest.raises(Internal, match="another master key"):
            await setup.models.get(A, "m")
