"""A cluster and the sidecar in front of it, and the clients that ask both."""

from dataclasses import dataclass

import httpx
import pytest
from integration_tests.support.sidecars import Sidecar
from integration_tests.support.stores import OPENSEARCH_2, OPENSEARCH_3

CLUSTER_SECONDS = 60  # for one response; a busy machine takes its time over an index

CLUSTERS = {
    version: pytest.param(version, marks=pytest.mark.opensearch(version), id=f"opensearch-{version}")
    for version in (OPENSEARCH_2, OPENSEARCH_3)
}
# Of clients that also reindex and make ingest pipelines, whose modules are there with this version alone.
at_newest_opensearch = pytest.mark.parametrize("front_door", [CLUSTERS[OPENSEARCH_3]], indirect=True)


def cluster_client(url: str) -> httpx.Client:
    """A client that asks for nothing compressed: JSON in another order has another length then."""
    return httpx.Client(base_url=url, timeout=CLUSTER_SECONDS, headers={"accept-encoding": "identity"})


@dataclass(frozen=True, slots=True)
class FrontDoor:
    """A cluster, and the sidecar in front of it. `direct` and `through` are clients of the one and of the other."""

    version: str
    sidecar: Sidecar
    direct: httpx.Client
    through: httpx.Client

    @property
    def clients(self) -> tuple[httpx.Client, httpx.Client]:
        return self.direct, self.through

    @property
    def urls(self) -> tuple[str, str]:
        """The cluster's and the sidecar's."""
        return str(self.direct.base_url), str(self.through.base_url)
