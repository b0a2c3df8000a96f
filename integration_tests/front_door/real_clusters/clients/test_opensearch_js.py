"""OpenSearch Dashboards' client, with its options: each of its calls has the same result through the front door."""

from collections.abc import Callable, Sequence

import pytest
from integration_tests.front_door.real_clusters.clients import dashboards_calls
from integration_tests.front_door.real_clusters.clients.opensearch_js import Call, Dashboards
from integration_tests.front_door.real_clusters.compared_responses import first_difference, masked
from integration_tests.front_door.real_clusters.front_doors import FrontDoor, at_newest_opensearch

pytestmark = at_newest_opensearch

MADE_TO_FAIL: dict[Callable[[str], Sequence[Call]], int] = {
    dashboards_calls.start: 1,
    dashboards_calls.saved_objects: 5,
    dashboards_calls.applications: 3,
}


@pytest.mark.parametrize("compression", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("calls_of", MADE_TO_FAIL, ids=lambda calls: calls.__name__)
def test_dashboards_calls_have_the_same_results_through_the_front_door(
    front_door: FrontDoor, index: str, calls_of: Callable[[str], Sequence[Call]], compression: bool
) -> None:
    results = []
    for url in front_door.urls:
        results.append(Dashboards(url, {}, compression=compression).run(calls_of(index)))
        front_door.direct.delete(f"/{index}*").raise_for_status()
    assert len([result for result in results[0] if "error" in result]) == MADE_TO_FAIL[calls_of], results[0]
    for call, direct, through in zip(calls_of(index), *results, strict=True):
        one, other = masked(direct), masked(through)
        assert one == other, f"{call}: {first_difference(one, other)}"
