"""Clusters with a front door: a sidecar that passes on what is not its own."""

import secrets
from collections.abc import Iterator

import pytest
from integration_tests.front_door.real_clusters.front_doors import CLUSTERS, FrontDoor, cluster_client
from integration_tests.support.sidecars import running_sidecar
from integration_tests.support.stores import url_of


@pytest.fixture(scope="session", params=CLUSTERS.values())
def front_door(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FrontDoor]:
    """The front door of a cluster of each generation."""
    url = url_of(request.config, request.param)
    prefix = f"front-door-{secrets.token_hex(4)}"
    settings = {"opensearch_ml_stream.index_prefix": prefix}
    folder = tmp_path_factory.mktemp("front-door")
    with (
        running_sidecar(folder, url, settings, ("--pass-through",)) as sidecar,
        cluster_client(url) as direct,
        cluster_client(sidecar.url) as through,
    ):
        yield FrontDoor(request.param, sidecar, direct, through)
        direct.delete(f"/{prefix}*", params={"expand_wildcards": "all"})


@pytest.fixture
def index(front_door: FrontDoor) -> Iterator[str]:
    """A name for indices of the test's own: what begins with it is deleted at the end."""
    name = f"door-{secrets.token_hex(4)}"
    yield name
    front_door.direct.delete(f"/{name}*", params={"expand_wildcards": "all"})
