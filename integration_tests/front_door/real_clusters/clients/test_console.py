"""Dev Tools of OpenSearch Dashboards behind the front door: what its Console shows is readable in every case.

The Console asks with opensearch-js, which reads the whole response and parses what is labelled as JSON; what it cannot
parse is shown as `502.` and a number.
"""

import json
from collections.abc import Iterator

import pytest
from integration_tests.front_door.real_clusters.clients.opensearch_js import Dashboards
from integration_tests.front_door.real_clusters.compared_responses import first_difference, masked, masked_text
from integration_tests.front_door.real_clusters.front_doors import FrontDoor, at_newest_opensearch
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import (
    SSE_HEAD,
    Act,
    FakeProvider,
    Request,
    Script,
    chunk,
    json_response,
    openai_delta,
    openai_stream,
)

pytestmark = at_newest_opensearch

ML = "/_plugins/_ml"
QUESTION = json.dumps({"parameters": {"messages": [{"role": "user", "content": "hi"}]}}, indent=2)
CLUSTER_REQUESTS = [
    ("GET", "/", None),
    ("GET", "_cat/indices/{index}?v", None),
    ("GET", "/_cat/health?h=cluster", None),
    ("PUT", "{index}", '{\n  "settings": {"number_of_replicas": 0}\n}'),
    ("PUT", "{index}", "{}"),
    ("PUT", "{index}/_doc/1", '{"big": 12345678901234567890, "point": 7.0}'),
    ("POST", "_bulk?refresh", '{"index": {"_index": "{index}", "_id": "2"}}\n{"big": 1}\n'),
    ("GET", "{index}/_search", '{"query": {"match_all": {}}, "sort": ["_doc"]}'),
    ("GET", "{index}/_search?q=big:1&pretty=false", None),
    ("GET", "{index}/_msearch", '{}\n{"query": {"match_all": {}}, "size": 0}\n'),
    ("HEAD", "{index}", None),
    ("HEAD", "{index}-none", None),
    ("GET", "{index}/_search", '{"query": '),
    ("GET", "{index}-none/_search", None),
    ("PATCH", "{index}", None),
    ("GET", "_cluster/health/{index}?format=yaml", None),
    ("DELETE", "{index}", None),
    ("GET", "/_plugins/_none/of/this", None),
]
OWN_REQUESTS = [  # method, path, body; status, and what the Console shows
    ("POST", f"{ML}/models/none-of-this/_predict/stream", QUESTION, 404, "Failed to find model"),
    ("POST", f"{ML}/models/none-of-this/_predict", QUESTION, 404, "Failed to find model"),
    ("POST", f"{ML}/models/none-of-this/_predict/stream", "{", 400, '"error"'),
    ("POST", f"{ML}/models/_search", '{"query": {"match_all": {}}}', 200, '"hits"'),
    ("GET", f"{ML}/connectors/none-of-this", None, 404, "Failed to find connector"),
    ("GET", f"{ML}/profile", None, 200, "{"),
    ("GET", f"{ML}/stats", None, 200, '"nodes"'),
    ("GET", f"{ML}/_settings", None, 200, '"persistent"'),
    ("GET", "/v2", None, 200, '"opensearch-ml-stream"'),
    ("GET", "/v2/models/none-of-this", None, 404, "not found"),
    ("GET", "/_health/live", None, 200, '"live"'),
    ("HEAD", "/_health/live", None, 200, "200"),
    ("GET", "/metrics", None, 200, "# HELP"),
    ("PUT", "/metrics", "{}", 405, "Incorrect HTTP method"),
    ("GET", f"{ML}/no/such/route", None, 400, "no handler found"),
]


def _play(request: Request) -> Script:
    """Streams in the ways that the model's key asks for."""
    how = request.headers["authorization"].removeprefix("Bearer ")
    if how == "refuses":
        return json_response({"error": {"message": "Incorrect API key provided", "type": "invalid_request_error"}}, 401)
    if how == "breaks":
        return [SSE_HEAD, chunk(openai_delta("half of")), Act.CLOSE]
    if not request.json().get("stream"):
        return json_response({"choices": [{"message": {"role": "assistant", "content": "Forty-two"}}]})
    return openai_stream(["For", "ty", "-two"])


@pytest.fixture(scope="module")
def chat_provider() -> Iterator[FakeProvider]:
    with background_provider(_play) as running:
        yield running


def _model(front_door: FrontDoor, provider: FakeProvider, key: str) -> str:
    return front_door.sidecar.create_model(openai(provider.url, credential={"openAI_key": key}))


@pytest.mark.parametrize("compression", [False, True], ids=["plain", "gzip"])
def test_the_console_shows_of_the_cluster_what_it_shows_without_the_front_door(
    front_door: FrontDoor, index: str, compression: bool
) -> None:
    calls = [
        (
            "console",
            {"method": method, "path": path.replace("{index}", index), "body": body and body.replace("{index}", index)},
        )
        for method, path, body in CLUSTER_REQUESTS
    ]
    direct, through = (Dashboards(url, {}, compression=compression).run(calls) for url in front_door.urls)
    for (_, call), one, other in zip(calls, direct, through, strict=True):
        assert one["status"] == other["status"], (call, one, other)
        assert _comparable(one["shown"]) == _comparable(other["shown"]), (
            f"{call}: {first_difference(_comparable(one['shown']), _comparable(other['shown']))}"
        )


@pytest.mark.parametrize("wire_format", ["", "?format=sse", "?format=json&pretty=true"])
def test_a_stream_is_shown_as_its_text_when_it_has_ended(
    front_door: FrontDoor, chat_provider: FakeProvider, wire_format: str
) -> None:
    model_id = _model(front_door, chat_provider, "good")
    shown = _console(front_door).shows("POST", f"{ML}/models/{model_id}/_predict/stream{wire_format}", QUESTION)
    assert shown["status"] == 200, shown
    missing = [text for text in ("For", "ty", "-two", "inference_results") if text not in shown["shown"]]
    assert missing == [], shown["shown"]


def test_a_stream_that_breaks_is_shown_with_its_text_and_its_error(
    front_door: FrontDoor, chat_provider: FakeProvider
) -> None:
    model_id = _model(front_door, chat_provider, "breaks")
    shown = _console(front_door).shows("POST", f"{ML}/models/{model_id}/_predict/stream", QUESTION)
    assert shown["status"] == 200, shown
    assert "half of" in shown["shown"]
    assert '"error"' in shown["shown"]


@pytest.mark.parametrize("path", ["_predict", "_predict/stream"])
def test_an_error_of_the_provider_is_shown_with_its_reason_and_is_not_tried_again(
    front_door: FrontDoor, chat_provider: FakeProvider, path: str
) -> None:
    model_id = _model(front_door, chat_provider, "refuses")
    before = len(chat_provider.requests)
    shown = _console(front_door).shows("POST", f"{ML}/models/{model_id}/{path}", QUESTION)
    assert "Incorrect API key provided" in shown["shown"]
    assert len(chat_provider.requests) == before + 1


def test_what_the_sidecar_itself_responds_is_readable(front_door: FrontDoor) -> None:
    calls = [("console", {"method": method, "path": path, "body": body}) for method, path, body, _, _ in OWN_REQUESTS]
    results = _console(front_door).run(calls)
    for (method, path, _, status, shows), shown in zip(OWN_REQUESTS, results, strict=True):
        assert shown["status"] == status, (method, path, shown)
        assert shows in shown["shown"], (method, path, shown)


def _console(front_door: FrontDoor) -> Dashboards:
    return Dashboards(front_door.sidecar.url, {})


def _comparable(shown: str) -> object:
    try:
        return masked(json.loads(shown))
    except ValueError:
        return masked_text(shown)
