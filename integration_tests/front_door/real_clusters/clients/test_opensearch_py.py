"""opensearch-py's own calls: each has the same result at the cluster and through the front door."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from integration_tests.front_door.real_clusters.clients import python_client_calls
from integration_tests.front_door.real_clusters.compared_responses import first_difference, masked
from integration_tests.front_door.real_clusters.front_doors import CLUSTER_SECONDS, FrontDoor, at_newest_opensearch
from opensearchpy import AsyncOpenSearch, OpenSearch

pytestmark = at_newest_opensearch

_OPTIONS: dict[str, Any] = {"timeout": CLUSTER_SECONDS, "max_retries": 0}


@pytest.mark.parametrize("part", python_client_calls.PARTS, ids=lambda part: part.__name__)
def test_opensearch_pys_calls_have_the_same_results_through_the_front_door(
    front_door: FrontDoor, index: str, part: Callable[[OpenSearch, str], Iterator[Any]]
) -> None:
    runs = []
    for url, is_compressed in zip(front_door.urls, (False, True), strict=True):
        with OpenSearch(url, http_compress=is_compressed, **_OPTIONS) as client:
            runs.append([masked(result) for result in part(client, index)])
        front_door.direct.delete(f"/{index}*").raise_for_status()
    for number, (direct, through) in enumerate(zip(*runs, strict=True)):
        assert direct == through, f"result {number} of {part.__name__}: {first_difference(direct, through)}"


async def test_the_asynchronous_client_writes_and_finds_through_the_front_door(
    front_door: FrontDoor, index: str
) -> None:
    body = "".join(f'{{"index":{{"_index":"{index}"}}}}\n{{"n":{n}}}\n' for n in range(1000))
    async with AsyncOpenSearch(front_door.sidecar.url, **_OPTIONS) as client:
        written = await client.bulk(body=body, refresh=True)
        found = await client.search(index=index, body={"query": {"term": {"n": 999}}})
    assert not written["errors"]
    assert found["hits"]["total"]["value"] == 1
