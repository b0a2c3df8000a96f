"""OpenAI's SDK on models of two providers: one that speaks its dialect, one that does not."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from integration_tests.cli.guarded import Guarded, running_guarded
from integration_tests.openai_api.scripted_models import CITY, TEXTS, answer
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import anthropic, blueprint_connector
from integration_tests.support.connector_bodies import openai as openai_connector
from integration_tests.support.fake_provider import FakeProvider
from integration_tests.support.sidecars import Sidecar
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
from pydantic import BaseModel

TEXT = "".join(TEXTS)
WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


class Place(BaseModel):
    city: str


@dataclass(frozen=True)
class Served:
    """A provider's models behind the sidecar, and the SDK that calls them."""

    provider: FakeProvider
    sidecar: Sidecar
    client: OpenAI
    ids: dict[str, str]

    @property
    def last_body(self) -> dict[str, Any]:
        """What the provider was sent last."""
        body: dict[str, Any] = self.provider.requests[-1].json()
        return body


@pytest.fixture(scope="module")
def served(shared_sidecar: Sidecar) -> Iterator[Served]:
    with background_provider(answer) as provider:
        connectors = {
            "door/gpt": openai_connector(provider.url),
            "door/claude": anthropic(provider.url),
            "door/text": blueprint_connector("openai-completions", provider.url),
            "door/embeddings": blueprint_connector("openai-embedding", provider.url),
        }
        ids = {name: shared_sidecar.create_model(body, name=name) for name, body in connectors.items()}
        with OpenAI(base_url=f"{shared_sidecar.url}/v1", api_key="unused", max_retries=0) as client:
            yield Served(provider, shared_sidecar, client, ids)


@pytest.fixture(params=["door/gpt", "door/claude"])
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def asking(text: str) -> list[ChatCompletionMessageParam]:
    return [{"role": "user", "content": text}]


def test_a_stream_has_the_texts_the_reason_and_the_usage_that_is_asked_for(served: Served, model: str) -> None:
    stream = served.client.chat.completions.create(
        model=model, messages=asking("hi"), stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    choices = [chunk.choices[0] for chunk in chunks if chunk.choices]
    assert choices[0].delta.role == "assistant"
    assert "".join(choice.delta.content or "" for choice in choices) == TEXT
    assert [choice.finish_reason for choice in choices if choice.finish_reason] == ["stop"]
    (usage,) = [chunk.usage for chunk in chunks if chunk.usage is not None]
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (5, 3, 8)
    assert usage.prompt_tokens_details is not None
    assert usage.prompt_tokens_details.cached_tokens == 2
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk.id for chunk in chunks}) == 1


def test_nobody_gets_usage_in_a_stream_unasked(served: Served, model: str) -> None:
    stream = served.client.chat.completions.create(model=model, messages=asking("hi"), stream=True)
    assert all(chunk.usage is None and chunk.choices for chunk in stream)


def test_an_answer_in_one_piece_says_the_same(served: Served, model: str) -> None:
    answered = served.client.chat.completions.create(model=served.ids[model], messages=asking("hi"))
    choice = answered.choices[0]
    assert (choice.message.content, choice.finish_reason) == (TEXT, "stop")
    assert answered.usage is not None
    assert answered.usage.total_tokens == 8


def test_the_provider_s_own_envelope_reaches_a_client_of_its_dialect(served: Served) -> None:
    chunks = list(served.client.chat.completions.create(model="door/gpt", messages=asking("hi"), stream=True))
    assert {(chunk.id, chunk.created, chunk.model, chunk.system_fingerprint) for chunk in chunks} == {
        ("chatcmpl-p", 7, "gpt-p", "fp")
    }
    translated = list(served.client.chat.completions.create(model="door/claude", messages=asking("hi"), stream=True))
    assert {chunk.model for chunk in translated} == {"door/claude"}


def test_members_unknown_here_reach_a_provider_of_the_client_s_dialect(served: Served) -> None:
    served.client.chat.completions.create(
        model="door/gpt", messages=asking("hi"), prompt_cache_key="k", extra_body={"chat_template_kwargs": {"a": 1}}
    )
    assert (served.last_body["prompt_cache_key"], served.last_body["chat_template_kwargs"]) == ("k", {"a": 1})


def test_options_of_a_stream_are_the_door_s_and_no_others_are_taken(served: Served) -> None:
    def ask(**options: bool) -> None:
        body = {"stream_options": options}
        list(
            served.client.chat.completions.create(model="door/gpt", messages=asking("hi"), stream=True, extra_body=body)
        )

    ask(include_usage=False, include_obfuscation=False)
    assert served.last_body["stream_options"] == {"include_usage": True}
    with pytest.raises(openai.BadRequestError) as refused:
        ask(continuous_usage_stats=True)
    assert refused.value.param == "stream_options.continuous_usage_stats"


@pytest.mark.parametrize("member", ["web_search_options", "n", "seed"])
def test_what_the_provider_cannot_say_is_refused_by_name(served: Served, member: str) -> None:
    value: Any = {"web_search_options": {"search_context_size": "low"}, "n": 2, "seed": 5}[member]
    with pytest.raises(openai.BadRequestError) as raised:
        served.client.chat.completions.create(model="door/claude", messages=asking("hi"), extra_body={member: value})
    assert raised.value.param == member


def test_a_tool_is_called_and_its_result_goes_back(served: Served, model: str) -> None:
    messages = asking("weather")
    message = served.client.chat.completions.create(model=model, messages=messages, tools=[WEATHER]).choices[0].message
    assert message.tool_calls
    call = message.tool_calls[0]
    assert call.type == "function"
    assert (call.function.name, call.function.arguments.replace(" ", "")) == ("weather", CITY.replace(" ", ""))
    back: list[Any] = [*messages, message, {"role": "tool", "tool_call_id": call.id, "content": "rain"}]
    back.append({"role": "user", "content": "So?"})
    answered = served.client.chat.completions.create(model=model, messages=back, tools=[WEATHER])
    assert answered.choices[0].message.content == TEXT
    assert call.id in str(served.last_body["messages"])


def test_the_sdk_s_stream_helper_gathers_calls_and_texts(served: Served, model: str) -> None:
    with served.client.chat.completions.stream(model=model, messages=asking("weather"), tools=[WEATHER]) as stream:
        kinds = [event.type for event in stream]
        choice = stream.get_final_completion().choices[0]
    assert "tool_calls.function.arguments.done" in kinds
    assert choice.message.tool_calls
    assert choice.message.tool_calls[0].function.arguments == CITY
    assert choice.finish_reason == "tool_calls"
    with served.client.chat.completions.stream(model=model, messages=asking("hi")) as stream:
        texts = [event.delta for event in stream if event.type == "content.delta"]
    assert "".join(texts) == TEXT


def test_an_answer_is_parsed_by_its_schema(served: Served, model: str) -> None:
    parsed = served.client.chat.completions.parse(model=model, messages=asking("json"), response_format=Place)
    assert parsed.choices[0].message.parsed == Place(city="Ulm")


def test_a_stream_that_breaks_off_is_an_error_of_the_sdk(served: Served, model: str) -> None:
    with pytest.raises(openai.APIError) as raised:
        list(served.client.chat.completions.create(model=model, messages=asking("break"), stream=True))
    assert raised.value.type == "server_error"


def test_the_model_that_answers_in_another_s_place_is_named(served: Served) -> None:
    other = served.ids["door/claude"]
    down = served.sidecar.create_model(
        openai_connector("http://127.0.0.1:9"), name="door/down", _sidecar={"fallback_model_ids": [other]}
    )
    body = {"model": down, "messages": asking("hi"), "stream": True}
    streamed = httpx.post(f"{served.sidecar.url}/v1/chat/completions", json=body, timeout=30).text
    assert streamed.endswith(f': opensearch_ml_stream {{"model_id":"{other}"}}\n\ndata: [DONE]\n\n')
    whole = served.client.chat.completions.create(model=down, messages=asking("hi"))
    assert whole.choices[0].message.content == TEXT
    assert whole.model_extra == {"opensearch_ml_stream": {"model_id": other}}


@pytest.mark.parametrize("is_stream", [True, False])
def test_a_provider_s_limit_is_a_rate_limit_with_its_time(served: Served, model: str, is_stream: bool) -> None:
    with pytest.raises(openai.RateLimitError) as raised:
        served.client.chat.completions.create(model=model, messages=asking("limit"), stream=is_stream)
    assert raised.value.response.headers["retry-after"] == "7"
    assert raised.value.type == "rate_limit_error"


@pytest.mark.parametrize("is_stream", [True, False])
def test_a_conversation_that_is_too_long_has_the_code_by_which_clients_compact_theirs(
    served: Served, model: str, is_stream: bool
) -> None:
    with pytest.raises(openai.BadRequestError, match="exceeds the context window") as raised:
        served.client.chat.completions.create(model=model, messages=asking("long"), stream=is_stream)
    said = raised.value
    assert (said.code, said.type, said.param) == ("context_length_exceeded", "invalid_request_error", "input")


def test_an_unknown_model_is_not_found_and_a_wrong_member_is_named(served: Served) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        served.client.chat.completions.create(model="nowhere", messages=asking("hi"))
    assert missing.value.code == "model_not_found"
    wrong: Any = [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]
    with pytest.raises(openai.BadRequestError) as refused:
        served.client.chat.completions.create(model="door/claude", messages=wrong)
    assert refused.value.param == "messages[0].content[0].image_url.url"


def test_a_body_that_is_no_json_by_its_type_is_refused_in_openai_s_form(served: Served) -> None:
    url = f"{served.sidecar.url}/v1/chat/completions"
    refused = httpx.post(url, content=b"{}", headers={"content-type": "text/plain"})
    assert (refused.status_code, refused.json()["error"]["type"]) == (406, "invalid_request_error")
    nothing = httpx.get(f"{served.sidecar.url}/v1/models/nothing/there")
    assert (nothing.status_code, nothing.json()["error"]["code"]) == (404, "model_not_found")


@pytest.mark.parametrize("model", ["door/text", "door/gpt", "door/claude"])
def test_completions_are_texts_streamed_and_whole(served: Served, model: str) -> None:
    whole = served.client.completions.create(model=model, prompt="Once", max_tokens=9)
    assert (whole.choices[0].text, whole.choices[0].finish_reason) == (TEXT, "stop")
    chunks = list(served.client.completions.create(model=model, prompt=["Once"], max_tokens=9, stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks) == TEXT
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_models_are_listed_and_found_by_name_and_id(served: Served) -> None:
    listed = {model.id for model in served.client.models.list()}
    assert served.ids.keys() <= listed
    for name in ("door/gpt", served.ids["door/gpt"]):
        found = served.client.models.retrieve(name)
        assert (found.id, found.object) == (name, "model")
        assert found.created > 1_700_000_000


def test_a_name_of_two_models_is_an_error_that_lists_their_ids(served: Served) -> None:
    connector = openai_connector(served.provider.url)
    ids = [served.sidecar.create_model(connector, name="door/twice") for _ in range(2)]
    with pytest.raises(openai.BadRequestError) as raised:
        served.client.chat.completions.create(model="door/twice", messages=asking("hi"))
    assert all(id in raised.value.message for id in ids)
    assert set(ids) <= {model.id for model in served.client.models.list()}


@pytest.mark.parametrize("encoding", [openai.NOT_GIVEN, "float", "base64"])
def test_embeddings_come_as_floats_and_as_base64(served: Served, encoding: Any) -> None:
    made = served.client.embeddings.create(model="door/embeddings", input=["a", "four"], encoding_format=encoding)
    vectors = [item.embedding for item in made.data]
    if encoding == "base64":
        assert all(isinstance(vector, str) for vector in vectors)
    else:
        assert [vector[0] for vector in vectors] == [1, 4]
        assert math.isclose(vectors[0][1], 0.5)
    assert made.usage.total_tokens > 0
    assert len(served.last_body["input"]) == 2


def test_dimensions_go_where_the_template_has_a_place_for_them(served: Served) -> None:
    made = served.client.embeddings.create(model="door/embeddings", input="a", dimensions=256)
    assert made.data[0].embedding == [1, 256]


def test_members_without_a_place_in_the_template_are_refused_and_so_are_chat_models(served: Served) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        served.client.embeddings.create(model="door/embeddings", input="a", extra_body={"nothing": 1})
    assert refused.value.param == "nothing"
    connector = blueprint_connector("openai-embedding", served.provider.url)
    dropping = served.sidecar.create_model(connector, name="door/dropping", _sidecar={"drop_params": ["nothing"]})
    served.client.embeddings.create(model=dropping, input="a", extra_body={"nothing": 1})
    assert "nothing" not in served.last_body
    with pytest.raises(openai.BadRequestError, match="embeddings"):
        served.client.embeddings.create(model="door/claude", input="a")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with running_guarded(Path(tmp_path_factory.mktemp("guarded"))) as running:
        yield running


def test_a_wrong_key_and_a_missing_right_are_the_sdk_s_errors(guarded: Guarded) -> None:
    key = guarded.new_key("ml_predict_access")
    with OpenAI(base_url=f"{guarded.url}/v1", api_key=key, max_retries=0) as client:
        assert list(client.models.list()) == []
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(model="none", messages=asking("hi"))
    with OpenAI(base_url=f"{guarded.url}/v1", api_key="wrong", max_retries=0) as client:
        with pytest.raises(openai.AuthenticationError) as raised:
            client.models.list()
        assert raised.value.code == "invalid_api_key"
    reader = guarded.new_key("ml_read_access")
    with (
        OpenAI(base_url=f"{guarded.url}/v1", api_key=reader, max_retries=0) as client,
        pytest.raises(openai.PermissionDeniedError),
    ):
        client.chat.completions.create(model="none", messages=asking("hi"))
