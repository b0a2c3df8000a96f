"""`_plugins/_ml/_settings` on a running sidecar: shape, effect, and the reach of a change."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from integration_tests.support.conditions import eventually
from integration_tests.support.sidecars import Sidecar, running_sidecar

PATH = "/_plugins/_ml/_settings"
STREAM_ENABLED = "plugins.ml_commons.stream_enabled"
TASKS = "plugins.ml_commons.max_batch_inference_tasks"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("settings")


@pytest.fixture(scope="module")
def sidecar(folder: Path) -> Iterator[Sidecar]:
    with running_sidecar(folder) as running:
        yield running


@pytest.fixture(autouse=True)
def reset(sidecar: Sidecar) -> Iterator[None]:
    yield
    put(sidecar, {STREAM_ENABLED: None, TASKS: None})


def put(sidecar: Sidecar, body: dict[str, Any], **query: str) -> httpx.Response:
    return sidecar.client.put(PATH, json=body, params=query)


def streaming_is_refused(sidecar: Sidecar) -> bool:
    response = sidecar.client.post("/_plugins/_ml/models/nope/_predict/stream", json={"parameters": {"inputs": "x"}})
    return "stream_enabled" in response.text


def test_responses_have_the_shape_of_cluster_settings(sidecar: Sidecar) -> None:
    assert sidecar.client.get(PATH).json() == {"persistent": {}, "transient": {}}
    response = put(sidecar, {"persistent": {STREAM_ENABLED: False, TASKS: 5}}).json()
    nested = {"plugins": {"ml_commons": {"stream_enabled": "false", "max_batch_inference_tasks": "5"}}}
    assert response == {"acknowledged": True, "persistent": nested, "transient": {}}
    assert sidecar.client.get(PATH).json()["persistent"] == nested
    flat = sidecar.client.get(PATH, params={"flat_settings": "true"}).json()
    assert flat["persistent"] == {STREAM_ENABLED: "false", TASKS: "5"}


def test_defaults_are_shown_on_request_without_the_settings_that_were_changed(sidecar: Sidecar) -> None:
    put(sidecar, {TASKS: 5})
    query = {"flat_settings": "true", "include_defaults": "true"}
    defaults = sidecar.client.get(PATH, params=query).json()["defaults"]
    assert defaults[STREAM_ENABLED] == "true"
    assert defaults["plugins.ml_commons.trusted_connector_endpoints_regex"][0].startswith("^https")
    assert TASKS not in defaults
    assert "opensearch_ml_stream.store" not in defaults


def test_a_change_is_in_force_at_once_and_null_undoes_it(sidecar: Sidecar) -> None:
    assert not streaming_is_refused(sidecar)
    put(sidecar, {STREAM_ENABLED: False})
    assert streaming_is_refused(sidecar)
    put(sidecar, {STREAM_ENABLED: None})
    assert not streaming_is_refused(sidecar)


def test_a_change_reaches_replicas_that_start_later_and_that_run(sidecar: Sidecar, folder: Path) -> None:
    put(sidecar, {STREAM_ENABLED: False})
    with running_sidecar(folder) as replica:
        eventually(lambda: streaming_is_refused(replica))
        put(sidecar, {STREAM_ENABLED: None})
        eventually(lambda: not streaming_is_refused(replica))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"plugins.ml_commons.stream_enable": True}, "did you mean [plugins.ml_commons.stream_enabled]?"),
        ({STREAM_ENABLED: "perhaps"}, "expected true or false"),
        ({"opensearch_ml_stream.port": 1}, "not updateable"),
        ({}, "no settings to update"),
    ],
)
def test_a_wrong_change_is_a_400_with_the_reason(sidecar: Sidecar, body: dict[str, Any], words: str) -> None:
    response = put(sidecar, body)
    assert response.status_code == 400
    assert words in response.json()["error"]["reason"]
    assert sidecar.client.get(PATH).json()["persistent"] == {}
