"""The providers' own clients read our fakes and recordings, and well-known readers read the sidecar's streams.

That those clients read the demo provider is in test_demo_provider.
"""

import json
import subprocess
from typing import Any

import anthropic
import httpx
import openai
import pytest
from httpx_sse import connect_sse
from integration_tests.support import connector_bodies
from integration_tests.support.background_provider import background_provider
from integration_tests.support.fake_provider import Script, anthropic_stream, chunked_stream, openai_stream, sse_event
from integration_tests.support.sidecars import Sidecar
from opensearchpy import OpenSearch
from opensearchpy.serializer import TextSerializer

from tests.providers.recorded_streams import ALL_STREAMS, Recorded

QUESTION: Any = [{"role": "user", "content": "What is the meaning of life?"}]
BODY = {"parameters": {"inputs": "What is the meaning of life?"}}
TEXTS = ["For", "ty\u2028-", '"two"']
# The typed parts of Mistral and Databricks and the usage of Groq are their own; the others claim to be OpenAI's.
LIKE_OPENAI = (
    "openai-chat", "openai-tool-calls", "deepseek-chat", "azure-openai-chat", "vllm-chat", "openrouter-chat",
    "xai-chat", "perplexity-chat", "together-chat", "fireworks-chat", "huggingface-chat", "watsonx-chat",
    "workers-ai-chat",
)  # fmt: skip
BY_NAME = {recorded.name: recorded for recorded in ALL_STREAMS}


def replayed(recorded: Recorded) -> Script:
    return chunked_stream([recorded.data])


def openai_chunks(url: str) -> list[Any]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        return list(client.chat.completions.create(model="m", messages=QUESTION, stream=True))


def text_of(chunks: list[Any]) -> str:
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices if choice.index == 0]
    return "".join(delta.content or "" for delta in deltas if delta is not None)


@pytest.mark.parametrize("name", LIKE_OPENAI)
def test_openais_client_reads_the_recordings_as_our_decoder_does(name: str) -> None:
    recorded = BY_NAME[name]
    with background_provider(replayed(recorded)) as provider:
        chunks = openai_chunks(provider.url)
    finishes = [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason]
    usages = [chunk.usage.total_tokens for chunk in chunks if chunk.usage is not None]
    assert text_of(chunks) == recorded.text
    assert finishes == [recorded.native]
    assert usages[-1:] == ([recorded.usage["total_tokens"]] if recorded.usage else [])


def test_openais_client_reads_our_fake_stream_with_its_usage() -> None:
    with background_provider(openai_stream(TEXTS)) as provider:
        chunks = openai_chunks(provider.url)
    assert text_of(chunks) == "".join(TEXTS)
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == len(TEXTS)


def test_openais_client_reads_the_recorded_responses() -> None:
    recorded = BY_NAME["openai-responses"]
    with (
        background_provider(replayed(recorded)) as provider,
        openai.OpenAI(base_url=f"{provider.url}/v1", api_key="k", max_retries=0) as client,
    ):
        events = list(client.responses.create(model="m", input="x", stream=True))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == recorded.text
    assert events[-1].type == "response.completed"
    assert events[-1].response.usage is not None and recorded.usage is not None
    assert events[-1].response.usage.output_tokens == recorded.usage["output_tokens"]


def test_openais_client_sees_the_error_in_the_stream_that_our_decoder_sees() -> None:
    fault = sse_event({"error": {"message": "overloaded", "type": "server_error", "param": None, "code": None}})
    with background_provider(chunked_stream([fault])) as provider, pytest.raises(openai.APIError, match="overloaded"):
        openai_chunks(provider.url)


@pytest.mark.parametrize(
    ("script", "text", "output_tokens"),
    [
        (replayed(BY_NAME["anthropic-messages"]), BY_NAME["anthropic-messages"].text, 15),
        (anthropic_stream(TEXTS), "".join(TEXTS), len(TEXTS)),
    ],
    ids=["recorded", "fake"],
)
def test_anthropics_client_puts_the_same_message_together(script: Script, text: str, output_tokens: int) -> None:
    with (
        background_provider(script) as provider,
        anthropic.Anthropic(base_url=provider.url, api_key="k", max_retries=0) as client,
        client.messages.stream(model="m", max_tokens=9, messages=QUESTION) as stream,
    ):
        message = stream.get_final_message()
    assert "".join(block.text for block in message.content if block.type == "text") == text
    assert message.usage.output_tokens == output_tokens


def test_anthropics_client_sees_the_error_event() -> None:
    fault = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with (
        background_provider(chunked_stream([sse_event(fault, "error")])) as provider,
        anthropic.Anthropic(base_url=provider.url, api_key="k", max_retries=0) as client,
        client.messages.stream(model="m", max_tokens=9, messages=QUESTION) as stream,
        pytest.raises(anthropic.APIStatusError, match="Overloaded"),
    ):
        stream.get_final_message()


def test_httpx_sse_reads_each_event_whole(sidecar: Sidecar) -> None:
    # No U+2028 here: some versions of httpx-sse take it for the end of a line (httpx-sse#34).
    texts = ["For", "ty\n-", '"two"']
    with background_provider(openai_stream(texts)) as provider:
        path = f"/_plugins/_ml/models/{sidecar.create_model(connector_bodies.openai(provider.url))}/_predict/stream"
        with connect_sse(sidecar.client, "POST", f"{path}?format=sse", json=BODY) as source:
            events = [event.json() for event in source.iter_sse()]
    maps = [event["inference_results"][0]["output"][0]["dataAsMap"] for event in events]
    assert [one["content"] for one in maps] == [*texts, ""]
    assert [one["is_last"] for one in maps] == [False, False, False, True]


@pytest.mark.parametrize(
    ("parameters", "start", "key"),
    [({}, "", "response"), ({"_llm_interface": "openai/v1/chat/completions"}, "data: ", "content")],
    ids=["RFC", "as of 3.3"],
)
def test_opensearch_pys_own_method_gives_the_stream_as_text(
    sidecar: Sidecar, parameters: dict[str, str], start: str, key: str
) -> None:
    """The client knows neither content type by itself, so one has to tell it that they are text."""
    as_text = {"application/x-ndjson": TextSerializer(), "text/event-stream": TextSerializer()}
    with background_provider(openai_stream(TEXTS)) as provider, OpenSearch(sidecar.url, serializers=as_text) as client:
        model_id = sidecar.create_model(connector_bodies.openai(provider.url))
        body = {"parameters": {**BODY["parameters"], **parameters}}
        text = client.plugins.ml.predict_model_stream(model_id=model_id, body=body)
    parts = [json.loads(line.removeprefix(start)) for line in text.split("\n") if line]
    maps = [part["inference_results"][0]["output"][0]["dataAsMap"] for part in parts]
    assert [one[key] for one in maps] == [*TEXTS, ""]


@pytest.mark.programs("jq")
def test_jq_reads_the_objects_one_after_another(sidecar: Sidecar) -> None:
    with background_provider(openai_stream(TEXTS)) as provider:
        path = f"/_plugins/_ml/models/{sidecar.create_model(connector_bodies.openai(provider.url))}/_predict/stream"
        response: httpx.Response = sidecar.client.post(path, json=BODY)
    query = ".inference_results[0].output[0].dataAsMap | [.response, .is_last // false]"
    read = subprocess.run(["jq", "-c", query], input=response.content, capture_output=True, check=True)
    assert [json.loads(line) for line in read.stdout.split(b"\n") if line] == [
        *([text, False] for text in TEXTS),
        ["", True],
    ]
