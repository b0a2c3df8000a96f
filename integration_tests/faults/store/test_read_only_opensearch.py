"""A real cluster that takes no writes, by hand or for want of disk space: predictions go on, changes say why not."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import openai_stream
from integration_tests.support.sidecars import Sidecar, running_sidecar

pytestmark = pytest.mark.opensearch

QUESTION = {"parameters": {"inputs": "x"}}


@pytest.fixture
def cluster(opensearch_url: str) -> Iterator[httpx.Client]:
    """The cluster; while the test runs it does not lift blocks by itself because the disk has space."""
    threshold = "cluster.routing.allocation.disk.threshold_enabled"
    with httpx.Client(base_url=opensearch_url, timeout=30) as client:
        client.put("/_cluster/settings", json={"transient": {threshold: False}}).raise_for_status()
        try:
            yield client
        finally:
            client.put("/_cluster/settings", json={"transient": {threshold: None}}).raise_for_status()


@pytest.fixture
def sidecar(opensearch_url: str, index_prefix: str, tmp_path: Path) -> Iterator[Sidecar]:
    settings = {"opensearch_ml_stream.index_prefix": index_prefix}
    with running_sidecar(tmp_path, opensearch_url, settings) as running:
        yield running


def ask(sidecar: Sidecar, model_id: str) -> int:
    return sidecar.client.post(f"/_plugins/_ml/models/{model_id}/_predict/stream", json=QUESTION).status_code


@pytest.mark.parametrize(
    "block", ["index.blocks.read_only_allow_delete", "index.blocks.write", "index.blocks.read_only"]
)
def test_predictions_go_on_while_the_cluster_takes_no_writes(
    sidecar: Sidecar, cluster: httpx.Client, index_prefix: str, block: str
) -> None:
    with background_provider(openai_stream(["ok"])) as provider:
        known, new = (sidecar.create_model(openai(provider.url)) for _ in range(2))
        assert ask(sidecar, known) == 200
        cluster.put(f"/{index_prefix}*/_settings", json={block: True}).raise_for_status()
        try:
            assert [ask(sidecar, model_id) for model_id in (known, new)] == [200, 200]
            assert sidecar.client.get("/_health/ready").status_code == 200
            refusal = sidecar.client.post("/_plugins/_ml/connectors/_create", json=openai(provider.url))
        finally:
            cluster.put(f"/{index_prefix}*/_settings", json={block: None}).raise_for_status()
        assert refusal.status_code == 503
        reason = refusal.json()["error"]["reason"]
        assert reason.startswith("OpenSearch does not write now: index [") and "blocked by" in reason
        assert ask(sidecar, sidecar.create_model(openai(provider.url))) == 200
