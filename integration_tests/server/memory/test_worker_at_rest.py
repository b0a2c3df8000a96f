"""A worker that has served nothing holds only the code that its settings call for, and little memory."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from integration_tests.support.sidecars import Sidecar, running_sidecar
from integration_tests.support.worker_processes import resident_mib, worker_pids

# What a server over an embedded store has no use for: other stores, other clients, the other commands, pages. Python
# lists what a statement imports, not what is loaded by name: so the latter stand here with what they import.
NOT_LOADED = frozenset({
    "aiohttp", "grpc", "httpx", "jinja2.environment", "opensearchpy", "pygments", "requests", "rich", "urllib3",
    "opensearch_ml_stream.plugin.cli.predict_command",
    "opensearch_ml_stream.plugin.demo.provider",
    "opensearch_ml_stream.extensions.front_door.relay",
    "opensearch_ml_stream.extensions.runtimes.keeper.runtime_documents",
})  # fmt: skip

# 55 MiB where this was written, 79 with all of the above. The rest is for other builds of Python and of the libraries
# (a page of memory that the loader has mapped counts as well), and for code compiled at the start, without .pyc files.
MAX_MIB = 70

_IMPORTED = re.compile(r"^import time: .*\|\s+(\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class AtRest:
    """A sidecar of two workers, and what it had loaded before it was asked: MiB, and modules of all its processes."""

    sidecar: Sidecar
    loaded: frozenset[str]
    worker_mib: tuple[float, ...]


@pytest.fixture(scope="module")
def at_rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AtRest]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPROFILEIMPORTTIME", "1")
        with running_sidecar(tmp_path_factory.mktemp("rest"), arguments=("--workers", "2")) as sidecar:
            sizes = tuple(resident_mib(pid) for pid in worker_pids(sidecar))
            yield AtRest(sidecar, _imported(sidecar), sizes)


def _imported(sidecar: Sidecar) -> frozenset[str]:
    return frozenset(_IMPORTED.findall(sidecar.log.read_text()))


def test_a_server_at_rest_has_loaded_nothing_that_only_others_need(at_rest: AtRest) -> None:
    assert at_rest.loaded >= {"orjson", "starlette.routing", "opensearch_ml_stream.plugin.app"}
    assert sorted(at_rest.loaded & NOT_LOADED) == []


def test_a_worker_at_rest_takes_little_memory(at_rest: AtRest) -> None:
    assert len(at_rest.worker_mib) == 2
    assert max(at_rest.worker_mib) <= MAX_MIB


def test_the_pages_load_their_templates_when_they_are_asked_for(at_rest: AtRest) -> None:
    for path in ("/_ui/", "/v2/docs"):
        assert at_rest.sidecar.client.get(path).headers["content-type"] == "text/html; charset=utf-8"
    assert "jinja2.environment" in _imported(at_rest.sidecar)
