"""A sample of OpenSearch's own REST tests: each response is the same at the cluster and through the front door."""

from functools import cache
from itertools import islice

import pytest
from integration_tests.front_door.real_clusters.compared_responses import differences
from integration_tests.front_door.real_clusters.front_doors import FrontDoor
from integration_tests.front_door.real_clusters.rest_tests.rest_suite import fetched_suite
from integration_tests.front_door.real_clusters.rest_tests.rest_suite_runs import run
from integration_tests.front_door.real_clusters.rest_tests.rest_suite_sample import FILES

TESTS_OF_A_FILE = 2
_suite = cache(fetched_suite)


@pytest.mark.parametrize("api", FILES)
def test_rest_tests_of_opensearch_have_the_same_responses_through_the_front_door(
    front_door: FrontDoor, api: str
) -> None:
    suite, found = _suite(), list[str]()
    for file in FILES[api]:
        for test in islice(suite.tests(f"{api}/{file}", front_door.version), TESTS_OF_A_FILE):
            direct, through = (run(suite, test, client) for client in front_door.clients)
            found += [f"{test.name}: {line}" for line in differences(direct, through)]
    assert found == []
