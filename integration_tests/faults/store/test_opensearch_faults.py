"""A cluster that fails under a running sidecar: what was in force stays in force, and each fault has its name.

`known` is a model that has been called before the fault, `new` one that has never been.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import httpx
import pytest
from integration_tests.faults.store.fake_opensearch import (
    FakeOpenSearch,
    Fault,
    Response,
    StoreRequest,
    error,
    fake_opensearch,
)
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import (
    LAST_CHUNK,
    SSE_HEAD,
    FakeProvider,
    Gate,
    Script,
    chunk,
    openai_delta,
    openai_stream,
)
from integration_tests.support.sidecars import Sidecar, running_sidecar

QUESTION = {"parameters": {"inputs": "x"}}
NOT_OPENSEARCH = "does not respond as OpenSearch does; check host, port and path"
BLOCKED = "index blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark];"


@pytest.fixture(scope="module")
def cluster() -> Iterator[FakeOpenSearch]:
    with fake_opensearch() as running:
        yield running


@pytest.fixture(scope="module")
def sidecar(cluster: FakeOpenSearch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with running_sidecar(tmp_path_factory.mktemp("sidecar"), cluster.url) as running:
        yield running


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with background_provider(openai_stream(["go", "od"])) as running:
        yield running


def status_of(sidecar: Sidecar, model_id: str) -> int:
    return ask(sidecar, model_id).status_code


def ask(sidecar: Sidecar, model_id: str) -> httpx.Response:
    return sidecar.client.post(f"/_plugins/_ml/models/{model_id}/_predict/stream", json=QUESTION)


def reason_of(response: httpx.Response) -> str:
    assert response.status_code == 503, response.text
    return str(response.json()["error"]["reason"])


def ready(sidecar: Sidecar) -> httpx.Response:
    return sidecar.client.get("/_health/ready")


@contextmanager
def faulty(cluster: FakeOpenSearch, fault: Fault) -> Iterator[None]:
    cluster.fault = fault
    try:
        yield
    finally:
        cluster.fault = None


def foreign(request: StoreRequest) -> Response:
    return 200, {"message": "welcome"}


def red(request: StoreRequest) -> Response | None:
    return error(503, "no_shard_available_action_exception", "No shard available") if request.action else None


def flood_stage(request: StoreRequest) -> Response | None:
    return error(429, "cluster_block_exception", BLOCKED) if request.writes else None


def refused(request: StoreRequest) -> Response:
    return error(401, "security_exception", "no")


@pytest.mark.parametrize(
    ("fault", "words", "is_ready"),
    [
        (foreign, NOT_OPENSEARCH, False),
        (refused, "does not accept the user and password of the store's URL", False),
        (red, "503 no_shard_available_action_exception", True),
    ],
)
def test_a_cluster_that_cannot_be_read_stops_only_what_needs_it(
    sidecar: Sidecar, cluster: FakeOpenSearch, provider: FakeProvider, fault: Fault, words: str, is_ready: bool
) -> None:
    known, new = (sidecar.create_model(openai(provider.url)) for _ in range(2))
    assert status_of(sidecar, known) == 200
    with faulty(cluster, fault):
        asked = len(cluster.requests)
        eventually(lambda: status_of(sidecar, known) == 200 and len(cluster.requests) > asked + 2)
        assert words in reason_of(ask(sidecar, new))
        assert words in reason_of(sidecar.client.post("/_plugins/_ml/connectors/_create", json=openai(provider.url)))
        assert words in reason_of(sidecar.client.get(f"/_plugins/_ml/models/{known}"))
        response = ready(sidecar)
        assert response.status_code == 200 if is_ready else words in reason_of(response)
        assert sidecar.client.get("/_health/live").status_code == 200
    assert ready(sidecar).status_code == 200
    assert [status_of(sidecar, model_id) for model_id in (known, new)] == [200, 200]
    assert "Traceback" not in sidecar.log.read_text()


def test_a_cluster_without_disk_space_takes_no_writes_and_predictions_go_on(
    sidecar: Sidecar, cluster: FakeOpenSearch, provider: FakeProvider
) -> None:
    known, new = (sidecar.create_model(openai(provider.url)) for _ in range(2))
    assert status_of(sidecar, known) == 200
    with faulty(cluster, flood_stage):
        assert [status_of(sidecar, model_id) for model_id in (known, new)] == [200, 200]
        assert ready(sidecar).status_code == 200
        refusal = sidecar.client.post("/_plugins/_ml/connectors/_create", json=openai(provider.url))
        assert f"OpenSearch does not write now: {BLOCKED}" in reason_of(refusal)
        eventually(lambda: f"Model {new} is used without being stored as deployed" in sidecar.log.read_text())
    sidecar.create_model(openai(provider.url))


def test_a_cluster_that_hangs_holds_up_neither_health_nor_predictions(
    sidecar: Sidecar, cluster: FakeOpenSearch, provider: FakeProvider
) -> None:
    known = sidecar.create_model(openai(provider.url))
    assert status_of(sidecar, known) == 200
    released = Event()

    def hang(request: StoreRequest) -> None:
        released.wait()

    with faulty(cluster, hang):
        try:
            assert "The store did not respond within" in reason_of(ready(sidecar))
            assert status_of(sidecar, known) == 200
        finally:
            released.set()
    eventually(lambda: ready(sidecar).status_code == 200)


def test_a_cluster_that_goes_away_leaves_streams_alone_and_comes_back(
    sidecar: Sidecar, cluster: FakeOpenSearch, provider: FakeProvider
) -> None:
    new = sidecar.create_model(openai(provider.url))
    gate = Gate()
    script: Script = [
        SSE_HEAD,
        chunk(openai_delta("Hel")),
        gate,
        chunk(openai_delta("lo") + b"data: [DONE]\n\n"),
        LAST_CHUNK,
    ]
    with background_provider(script) as gated:
        known = sidecar.create_model(openai(gated.url))
        with sidecar.client.stream("POST", f"/_plugins/_ml/models/{known}/_predict/stream", json=QUESTION) as response:
            lines = response.iter_lines()
            assert "Hel" in next(lines)
            with cluster.away():
                assert "check that it runs" in reason_of(ready(sidecar))
                assert "check that it runs" in reason_of(ask(sidecar, new))
                gate.open()
                *_, last = [json.loads(line) for line in lines if line]
                assert last["inference_results"][0]["output"][0]["dataAsMap"]["is_last"] is True
                assert status_of(sidecar, known) == 200
    eventually(lambda: ready(sidecar).status_code == 200)
    assert status_of(sidecar, new) == 200


def test_models_whose_index_was_deleted_are_gone_and_can_be_made_anew(
    sidecar: Sidecar, cluster: FakeOpenSearch, provider: FakeProvider
) -> None:
    known = sidecar.create_model(openai(provider.url))
    assert status_of(sidecar, known) == 200
    cluster.forget_everything()
    eventually(lambda: status_of(sidecar, known) == 404)
    assert status_of(sidecar, sidecar.create_model(openai(provider.url))) == 200


def test_a_write_that_another_one_precedes_is_made_again_and_a_conflict_in_the_end(
    sidecar: Sidecar, cluster: FakeOpenSearch, provider: FakeProvider
) -> None:
    model_id = sidecar.create_model(openai(provider.url))
    conflicts = iter([True] * 3 + [False] * 1000)

    def contested(request: StoreRequest) -> Response | None:
        guarded = "if_seq_no" in request.query
        return error(409, "version_conflict_engine_exception", "[m]: conflict") if guarded and next(conflicts) else None

    change = (f"/_plugins/_ml/models/{model_id}", {"description": "new"})
    with faulty(cluster, contested):
        assert sidecar.client.put(change[0], json=change[1]).status_code == 200
        conflicts = iter([True] * 1000)
        assert sidecar.client.put(change[0], json=change[1]).status_code == 409


def test_a_sidecar_that_starts_without_its_cluster_serves_when_it_has_come(
    cluster: FakeOpenSearch, provider: FakeProvider, sidecar: Sidecar, tmp_path: Path
) -> None:
    model_id = sidecar.create_model(openai(provider.url))
    with cluster.away(), running_sidecar(tmp_path, cluster.url) as late:
        assert "check that it runs" in reason_of(ready(late))
        refused = ask(late, model_id)  # nobody is let in before the cluster has said who decides
        assert (refused.status_code, reason_of(refused)) == (
            503,
            "OpenSearch cannot authenticate the caller now; see the log of the sidecar",
        )
        cluster.start()
        try:
            eventually(lambda: ready(late).status_code == 200)
            assert status_of(late, model_id) == 200
        finally:
            cluster.stop()
        assert status_of(late, model_id) == 200
