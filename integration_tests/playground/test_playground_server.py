"""The playground's server: its requests to a running sidecar, by a client that is no browser."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from integration_tests.support.background_provider import background_provider
from integration_tests.support.fake_provider import openai_stream
from integration_tests.support.sidecars import Sidecar, running_sidecar

BLUEPRINT = "/_ui/blueprints/openai-chat"
WORKERS = ("--workers", "2")


def new_model(endpoint: str, **fields: Any) -> dict[str, Any]:
    return {
        "model_name": "Mine",
        "credential": {"openAI_key": "sk-123"},
        "parameters": {"endpoint": endpoint, "model": "gpt-fake"},
        **fields,
    }


def names(client: httpx.Client) -> list[str]:
    return [model["name"] for model in client.get("/_ui/models").json()["models"]]


def connectors(client: httpx.Client) -> int:
    found = client.post("/_plugins/_ml/connectors/_search", json={}).json()
    return int(found["hits"]["total"]["value"])


def read_events(lines: Iterator[str], count: int) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    while len(events) < count:
        line = next(lines)
        if line.startswith("data: "):
            events.append(json.loads(line.removeprefix("data: ")))
    return events


def test_a_browser_finds_the_page_and_all_that_it_loads(shared_sidecar: Sidecar) -> None:
    page = shared_sidecar.client.get("/", headers={"Accept": "text/html"}, follow_redirects=True)
    assert (page.status_code, page.url.path) == (200, "/_ui/")
    for name in ("playground.js", "playground.css", "icon.svg"):
        assert f'"static/{name}"' in page.text
        file = shared_sidecar.client.get(page.url.join(f"static/{name}"))
        again = shared_sidecar.client.get(file.url, headers={"If-None-Match": file.headers["etag"]})
        assert (file.status_code, again.status_code, again.content) == (200, 304, b"")
    assert shared_sidecar.client.get("/").json()["name"] == "opensearch-ml-stream"


def test_a_model_is_made_called_and_deleted_in_every_store(tmp_path: Path, store_url: str, index_prefix: str) -> None:
    settings = {"opensearch_ml_stream.index_prefix": index_prefix}
    with (
        running_sidecar(tmp_path, store_url, settings) as sidecar,
        background_provider(openai_stream(["Hello", " you"])) as provider,
    ):
        client = sidecar.client
        assert (names(client), connectors(client)) == ([], 0)
        body = {**new_model(provider.url), "model_name": "Yours"}
        other = client.post(BLUEPRINT, json=body).raise_for_status().json()
        made = client.post(BLUEPRINT, json=new_model(provider.url)).raise_for_status().json()
        path = f"/_ui/models/{made['model_id']}"
        form = client.get(path).raise_for_status().json()
        assert (form["kind"], form["turn"], names(client)) == ("chat", "messages", ["Mine", "Yours"])
        call = f"/_plugins/_ml/models/{made['model_id']}/_predict/stream"
        assert '"response":"Hello"' in client.post(call, json={"parameters": {"inputs": "Hi"}}).text
        assert client.delete(path).raise_for_status().json()["deleted_connector_id"] == made["connector_id"]
        assert (names(client), connectors(client)) == (["Yours"], 1)
        assert client.get(path).status_code == 404
        client.delete(f"/_ui/models/{other['model_id']}").raise_for_status()
        assert (names(client), connectors(client)) == ([], 0)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"parameters": {"endpoint": "https://not-trusted.example"}}, "trusted connector endpoint"),
        ({"credential": {}}, "openai-chat needs the credential [openAI_key]"),
        ({"parameters": {"endpiont": "x"}}, "did you mean [endpoint]?"),
    ],
)
def test_a_model_that_cannot_be_made_leaves_nothing(
    shared_sidecar: Sidecar, fields: dict[str, Any], reason: str
) -> None:
    client = shared_sidecar.client
    before = names(client), connectors(client)
    response = client.post(BLUEPRINT, json=new_model("http://127.0.0.1:9", **fields))
    assert response.status_code == 400
    assert reason in response.json()["error"]["reason"]
    assert "sk-123" not in response.text
    assert (names(client), connectors(client)) == before


def test_every_blueprint_is_a_form(shared_sidecar: Sidecar) -> None:
    blueprints = shared_sidecar.client.get("/_ui/blueprints").raise_for_status().json()["blueprints"]
    assert len(blueprints) > 50
    assert all(one["title"] and one["credential"] and isinstance(one["parameters"], list) for one in blueprints)


def test_the_statistics_of_all_workers_come_until_the_server_stops(tmp_path: Path) -> None:
    with running_sidecar(tmp_path, arguments=WORKERS) as sidecar:
        with background_provider(openai_stream(["a", "b"])) as provider:
            made = sidecar.client.post(BLUEPRINT, json=new_model(provider.url)).raise_for_status().json()
            call = f"/_plugins/_ml/models/{made['model_id']}/_predict/stream"
            sidecar.client.post(call, json={"parameters": {"inputs": "Hi"}}).raise_for_status()
        with sidecar.client.stream("GET", "/_ui/statistics") as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            lines = response.iter_lines()
            for event in read_events(lines, 2):
                assert event["models"] == [{"id": made["model_id"], "streams": 0, "requests": 1}]
            sidecar.process.send_signal(signal.SIGTERM)
            list(lines)  # it ends, as a whole response does; a broken one would raise
        assert sidecar.process.wait(timeout=30) == 0


def test_a_server_without_a_playground_has_no_page_and_redirects_nobody_to_it(tmp_path: Path) -> None:
    with running_sidecar(tmp_path, settings={"opensearch_ml_stream.playground": "false"}) as sidecar:
        assert sidecar.client.get("/", headers={"Accept": "text/html"}).json()["name"] == "opensearch-ml-stream"
        assert sidecar.client.get("/_ui/").status_code == 404
