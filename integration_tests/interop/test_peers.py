"""Real servers as providers: MLServer over the V2 protocol, and the LiteLLM proxy as an OpenAI."""

from collections.abc import Iterator

import pytest
from integration_tests.interop.peers import servers
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually
from integration_tests.support.connector_bodies import blueprint_connector
from integration_tests.support.fake_provider import (
    Act,
    FakeProvider,
    Request,
    Script,
    chunk,
    head,
    json_response,
    openai_stream,
    sse_event,
)
from integration_tests.support.predict_calls import SECRET, ask, data_as_map, reason
from integration_tests.support.sidecars import Sidecar
from integration_tests.support.streamed_responses import objects, stream

pytestmark = [pytest.mark.peers, pytest.mark.timeout(180)]

QUESTION = {"parameters": {"inputs": 'Grüße an "die" Welt'}}


@pytest.fixture(scope="module")
def mlserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with servers.mlserver(tmp_path_factory.mktemp("mlserver")) as url:
        yield url


def by_last_word(request: Request) -> Script:
    """What the proxy's provider does is chosen by the end of the question."""
    word = request.json()["messages"][-1]["content"].rpartition(" ")[2]
    if word == "refuse":
        return json_response({"error": {"message": "slow down", "type": "rate_limit_error"}}, 429)
    if word == "wait":
        first = sse_event({"id": "1", "model": "m", "choices": [{"index": 0, "delta": {"content": "a"}}]})
        return [head(content_type="text/event-stream", transfer_encoding="chunked"), chunk(first), Act.WAIT]
    return openai_stream(["For", "ty", "-two"])


@pytest.fixture(scope="module")
def behind() -> Iterator[FakeProvider]:
    with background_provider(by_last_word) as provider:
        yield provider


@pytest.fixture(scope="module")
def litellm(tmp_path_factory: pytest.TempPathFactory, behind: FakeProvider) -> Iterator[str]:
    with servers.litellm(tmp_path_factory.mktemp("litellm"), behind.url, SECRET) as url:
        yield url


def test_mlserver_streams_through_the_v2_blueprint(sidecar: Sidecar, mlserver: str) -> None:
    model_id = sidecar.create_model(blueprint_connector("mlserver-infer", mlserver))
    *chunks, last = objects(stream(sidecar, model_id, QUESTION))
    assert [one["response"] for one in chunks] == ["Grüße", "an", '"die"', "Welt"]
    assert (last["is_last"], last["finish_reason"], last["model"]) == (True, "stop", "text-model")


def test_mlserver_predicts_through_the_v2_blueprint(sidecar: Sidecar, mlserver: str) -> None:
    model_id = sidecar.create_model(blueprint_connector("mlserver-infer", mlserver))
    [output] = data_as_map(ask(sidecar, model_id, **QUESTION["parameters"]))["outputs"]
    assert output["data"] == ['Grüße an "die" Welt']


def test_mlserver_that_breaks_off_is_an_error_after_the_text(sidecar: Sidecar, mlserver: str) -> None:
    model_id = sidecar.create_model(blueprint_connector("mlserver-infer", mlserver))
    response = stream(sidecar, model_id, {"parameters": {"inputs": "one two fail"}})
    assert '"response":"one"' in response.text
    assert "stream_truncated_exception" in response.text.split("\n")[-2]


def test_mlserver_without_the_model_is_an_error(sidecar: Sidecar, mlserver: str) -> None:
    model_id = sidecar.create_model(blueprint_connector("mlserver-infer", mlserver, model="absent"))
    assert reason(ask(sidecar, model_id, inputs="x"), 424) == (
        'Error from remote service: {"error":"Model absent not found"}'
    )


def test_litellm_streams_through_the_openai_blueprint(sidecar: Sidecar, litellm: str) -> None:
    model_id = sidecar.create_model(blueprint_connector("openai-chat", litellm, model="relayed"))
    *chunks, last = objects(stream(sidecar, model_id, QUESTION))
    assert "".join(one["response"] for one in chunks) == "Forty-two"
    assert (last["is_last"], last["finish_reason"]) == (True, "stop")
    assert last["usage"]["output_tokens"] == 3


def test_litellms_refusal_keeps_its_status(sidecar: Sidecar, litellm: str) -> None:
    model_id = sidecar.create_model(blueprint_connector("openai-chat", litellm, model="relayed"))
    assert "slow down" in reason(stream(sidecar, model_id, {"parameters": {"inputs": "please refuse"}}), 429)


def test_litellms_provider_is_freed_when_the_client_disconnects(
    sidecar: Sidecar, litellm: str, behind: FakeProvider
) -> None:
    model_id = sidecar.create_model(blueprint_connector("openai-chat", litellm, model="relayed"))
    path = f"/_plugins/_ml/models/{model_id}/_predict/stream"
    with sidecar.client.stream("POST", path, json={"parameters": {"inputs": "please wait"}}) as response:
        assert '"response":"a"' in next(response.iter_lines())
    eventually(behind.disconnected.is_set)
