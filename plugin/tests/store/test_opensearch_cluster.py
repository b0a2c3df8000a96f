"""What the cluster of a store says of its settings, pipelines and agents, and what ML Commons there is told."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest, Unavailable
from tests.store.canned_cluster import Canned, CannedCluster, refusal

NO_ROUTE = Canned({"error": "no handler found for uri [/_plugins/_ml/models/m/_deploy] and method [POST]"}, 400)


async def test_what_was_changed_for_ml_commons_is_read_transient_over_persistent() -> None:
    persistent = {"plugins.ml_commons.stream_enabled": "false", "plugins.ml_commons.max_batch_inference_tasks": "7"}
    response = {
        "persistent": {**persistent, "search.max_buckets": "5"},
        "transient": {"plugins.ml_commons.stream_enabled": "true"},
    }
    cluster = CannedCluster([Canned(response)])
    assert await cluster.store().cluster.settings() == {**persistent, "plugins.ml_commons.stream_enabled": "true"}
    assert cluster.paths() == ["GET /_cluster/settings?flat_settings=true"]


async def test_a_cluster_whose_settings_nobody_changed_has_none() -> None:
    response: dict[str, Any] = {"persistent": {}, "transient": {}}
    assert await CannedCluster([Canned(response)]).store().cluster.settings() == {}


@pytest.mark.parametrize("status", [401, 403])
async def test_a_user_who_may_not_is_told_which_permission_is_needed(status: int) -> None:
    no = refusal(status, "security_exception", "no permissions")
    with pytest.raises(Forbidden, match="GET /_cluster/settings; it needs the permission cluster:monitor/state"):
        await CannedCluster([no]).store().cluster.settings()
    with pytest.raises(Forbidden, match="it needs the permission cluster:admin/opensearch/ml/undeploy_models"):
        await CannedCluster([no]).store().cluster.undeploy("m")


@pytest.mark.parametrize("kind", ["ingest", "search"])
async def test_pipelines_are_read_by_name(kind: str) -> None:
    pipelines: dict[str, Any] = {"p": {"processors": []}}
    cluster = CannedCluster([Canned(pipelines)])
    assert await cluster.store().cluster.pipelines(kind) == pipelines
    assert cluster.paths() == [f"GET /_{kind}/pipeline"]


async def test_a_cluster_without_search_pipelines_has_none() -> None:
    assert await CannedCluster([NO_ROUTE]).store().cluster.pipelines("search") == {}


async def test_agents_are_found_by_the_models_of_their_tools() -> None:
    cluster = CannedCluster([Canned({"hits": {"hits": [{"_id": "a1"}]}})])
    assert await cluster.store().cluster.agents_using("m") == ["a1"]
    [sent] = cluster.sent
    assert (sent.path, sent.params) == ("/.plugins-ml-agent/_search", {"ignore_unavailable": "true"})
    assert {"term": {"tools.parameters.model_id": "m"}} in sent.body["query"]["bool"]["should"]


async def test_ml_commons_is_told_by_its_own_routes() -> None:
    cluster = CannedCluster([Canned({"node": {}}), Canned({"task_id": "t"})])
    store = cluster.store()
    assert await store.cluster.undeploy("m") and await store.cluster.deploy("m")
    assert cluster.paths() == ["POST /_plugins/_ml/models/m/_undeploy", "POST /_plugins/_ml/models/m/_deploy"]


@pytest.mark.parametrize("nothing", [NO_ROUTE, refusal(404, "status_exception", "Failed to find model")])
async def test_without_ml_commons_or_without_the_model_there_nothing_is_told(nothing: Canned) -> None:
    assert not await CannedCluster([nothing]).store().cluster.deploy("m")


async def test_under_a_prefix_of_its_own_a_store_shares_nothing_with_ml_commons() -> None:
    cluster = CannedCluster()
    assert not await cluster.store("mine-").cluster.undeploy("m")
    assert cluster.sent == []


@pytest.mark.parametrize(
    ("status", "error", "reason"),
    [(400, InvalidRequest, "Model is deploying"), (500, Unavailable, "500"), (503, Unavailable, "503")],
)
async def test_what_ml_commons_refuses_is_an_error(status: int, error: type[Exception], reason: str) -> None:
    refused = refusal(status, "status_exception", "Model is deploying")
    with pytest.raises(error, match=reason):
        await CannedCluster([refused]).store().cluster.undeploy("m")


async def test_a_search_that_ml_commons_refuses_the_stores_user_has_a_reason() -> None:
    reason = "no permissions for [indices:data/read/search] and User [name=admin]"
    cluster = CannedCluster([refusal(403, "security_exception", reason)])
    assert await cluster.store().cluster.ml_commons_refusal() == reason
    assert cluster.paths() == ["POST /_plugins/_ml/models/_search"]


@pytest.mark.parametrize("response", [NO_ROUTE, Canned({"hits": {}}), refusal(404, "index_not_found_exception", "no")])
async def test_without_ml_commons_or_where_it_searches_nothing_is_refused(response: Canned) -> None:
    assert await CannedCluster([response]).store().cluster.ml_commons_refusal() is None


async def test_ml_commons_is_not_asked_about_documents_that_are_not_its_own() -> None:
    cluster = CannedCluster()
    assert await cluster.store("mine-").cluster.ml_commons_refusal() is None
    assert cluster.sent == []
