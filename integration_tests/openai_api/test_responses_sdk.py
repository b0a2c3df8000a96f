"""The Responses API of OpenAI's SDK on models of three providers: one that speaks it, and two that do not."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from integration_tests.openai_api.scripted_models import CALLS, CITY, PATCH, TEXTS
from integration_tests.openai_api.scripted_responses import COUNTED, answer_responses
from integration_tests.openai_api.test_openai_sdk import Place, Served
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import anthropic, blueprint_connector
from integration_tests.support.connector_bodies import openai as openai_connector
from integration_tests.support.sidecars import Sidecar
from openai import OpenAI
from openai.types.responses import FunctionToolParam

TEXT = "".join(TEXTS)
SAME, TRANSLATED = "items/gpt-responses", ("items/gpt-chat", "items/claude")
WEATHER: FunctionToolParam = {
    "type": "function",
    "name": "weather",
    "description": "The weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "strict": False,
}

CODEX: dict[str, Any] = {
    "instructions": "You are a coding agent.",
    "tools": [
        {"type": "function", "name": "exec_command", "description": "Run.", "strict": False,
         "parameters": {"type": "object", "properties": {"cmd": {"type": "string"}}, "required": ["cmd"]}},
        {"type": "custom", "name": "apply_patch", "description": "Edit files.",
         "format": {"type": "grammar", "syntax": "lark", "definition": "start: begin_patch hunk+ end_patch"}},
        {"type": "web_search", "external_web_access": False},
        {"type": "local_shell"},
        {"type": "image_generation", "output_format": "png"},
        {"type": "tool_search", "execution": "client", "description": "Find tools.", "parameters": {"type": "object"}},
        {"type": "namespace", "name": "mcp__docs", "description": "Documentation.", "tools": [
            {"type": "function", "name": "search", "description": "Search.", "strict": False, "defer_loading": True,
             "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}]},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": None,
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "0199a213-81c0-7800-8aa1-bbab2a035a53",
    "client_metadata": {"x-codex-installation-id": "4c5a3f7e"},
}  # fmt: skip
"""What Codex sends beside the items of the input (openai/codex, codex-rs/codex-api/src/common.rs)."""


def codex_items(prompt: str) -> list[Any]:
    """The input of Codex's first request."""
    texts = {"developer": "<permissions>read-only</permissions>", "user": prompt}
    return [
        {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}
        for role, text in texts.items()
    ]


@pytest.fixture(scope="module")
def served(shared_sidecar: Sidecar) -> Iterator[Served]:
    with background_provider(answer_responses) as provider:
        connectors = {
            SAME: blueprint_connector("openai-responses", provider.url),
            TRANSLATED[0]: openai_connector(provider.url),
            TRANSLATED[1]: anthropic(provider.url),
        }
        ids = {name: shared_sidecar.create_model(body, name=name) for name, body in connectors.items()}
        with OpenAI(base_url=f"{shared_sidecar.url}/v1", api_key="unused", max_retries=0) as client:
            yield Served(provider, shared_sidecar, client, ids)


@pytest.fixture(params=[SAME, *TRANSLATED])
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_stream_has_texts_the_end_and_the_usage(served: Served, model: str) -> None:
    events = list(served.client.responses.create(model=model, input="hi", stream=True))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == TEXT
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[0].type == "response.created"
    last = events[-1]
    assert last.type == "response.completed"
    assert last.response.output_text == TEXT
    assert last.response.usage is not None
    assert (last.response.usage.input_tokens, last.response.usage.output_tokens) == (5, 3)
    assert last.response.usage.input_tokens_details.cached_tokens == 2


def test_a_response_in_one_piece_says_the_same(served: Served, model: str) -> None:
    response = served.client.responses.create(model=served.ids[model], input="hi", instructions="Be brief.")
    assert (response.output_text, response.status) == (TEXT, "completed")
    assert response.usage is not None
    assert response.usage.total_tokens == 8
    assert "Be brief." in str(served.last_body)


def test_events_and_members_pass_as_they_are_where_the_provider_speaks_the_api(served: Served) -> None:
    sent: dict[str, Any] = {"tools": [{"type": "web_search"}], "prompt_cache_key": "k", "truncation": "auto"}
    events = list(served.client.responses.create(model=SAME, input="hi", stream=True, **sent))
    assert {name: served.last_body[name] for name in sent} == sent
    assert served.last_body["store"] is False
    (last,) = [event for event in events if event.type == "response.completed"]
    assert (last.response.id, last.response.model) == ("resp_p", "gpt-p")
    assert last.response.model_extra == {"provider_note": "as sent"}
    whole = served.client.responses.create(model=SAME, input="hi", **sent)
    assert (whole.id, whole.model_extra) == ("resp_p", {"provider_note": "as sent"})


@pytest.mark.parametrize("translated", TRANSLATED)
@pytest.mark.parametrize(
    ("member", "value", "named"),
    [
        ("tool_choice", {"type": "web_search"}, "tool_choice"),
        ("truncation", "auto", "truncation"),
        ("max_tool_calls", 2, "max_tool_calls"),
    ],
)
def test_what_only_openai_s_own_interface_does_is_refused_by_name(
    served: Served, translated: str, member: str, value: Any, named: str
) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        served.client.responses.create(model=translated, input="hi", extra_body={member: value})
    assert named in raised.value.message


def test_a_function_is_called_and_its_output_goes_back(served: Served, model: str) -> None:
    items: list[Any] = [{"role": "user", "content": "weather"}]
    response = served.client.responses.create(model=model, input=items, tools=[WEATHER])
    (call,) = [item for item in response.output if item.type == "function_call"]
    assert (call.name, call.arguments.replace(" ", "")) == ("weather", CITY.replace(" ", ""))
    items += [*response.output, {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}]
    answered = served.client.responses.create(model=model, input=items, tools=[WEATHER])
    assert answered.output_text == TEXT
    assert str(served.last_body).count(call.call_id) == 2
    assert "rain" in str(served.last_body)


def test_the_sdk_s_stream_helper_gathers_calls_and_texts(served: Served, model: str) -> None:
    with served.client.responses.stream(model=model, input="weather", tools=[WEATHER]) as stream:
        snapshots = [event.snapshot for event in stream if event.type == "response.function_call_arguments.delta"]
        final = stream.get_final_response()
    assert snapshots[-1] == CITY
    (call,) = final.output
    assert call.type == "function_call"
    assert call.arguments == CITY
    with served.client.responses.stream(model=model, input="hi") as stream:
        texts = [event.snapshot for event in stream if event.type == "response.output_text.delta"]
        assert stream.get_final_response().output_text == TEXT
    assert texts[-1] == TEXT


def test_an_answer_is_parsed_by_its_schema(served: Served, model: str) -> None:
    assert served.client.responses.parse(model=model, input="json", text_format=Place).output_parsed == Place(
        city="Ulm"
    )
    with served.client.responses.stream(model=model, input="json", text_format=Place) as stream:
        assert stream.get_final_response().output_parsed == Place(city="Ulm")


def test_a_stream_that_breaks_off_fails(served: Served, model: str) -> None:
    events = list(served.client.responses.create(model=model, input="break", stream=True))
    assert [event.type for event in events[-2:]] == ["error", "response.failed"]
    last = events[-1]
    assert last.type == "response.failed"
    assert last.response.error is not None
    assert last.response.error.code == "server_error"
    with served.client.responses.stream(model=model, input="break") as stream, pytest.raises(RuntimeError):
        stream.get_final_response()


@pytest.mark.parametrize("is_stream", [True, False])
def test_a_provider_s_limit_is_a_rate_limit_with_its_time(served: Served, model: str, is_stream: bool) -> None:
    with pytest.raises(openai.RateLimitError) as raised:
        served.client.responses.create(model=model, input="limit", stream=is_stream)
    assert raised.value.response.headers["retry-after"] == "7"


@pytest.mark.parametrize("is_stream", [True, False])
def test_a_conversation_that_is_too_long_has_the_code_by_which_clients_compact_theirs(
    served: Served, model: str, is_stream: bool
) -> None:
    with pytest.raises(openai.BadRequestError, match="exceeds the context window") as raised:
        served.client.responses.create(model=model, input="long", stream=is_stream)
    assert raised.value.code == "context_length_exceeded"


@pytest.mark.parametrize(
    "member",
    [{"store": True}, {"background": True}, {"previous_response_id": "resp_1"}, {"conversation": "conv_1"}],
)
def test_what_needs_a_store_is_refused(served: Served, model: str, member: dict[str, Any]) -> None:
    before = len(served.provider.requests)
    with pytest.raises(openai.BadRequestError, match="not stored here") as raised:
        served.client.responses.create(model=model, input="hi", **member)
    assert raised.value.param == next(iter(member))
    assert len(served.provider.requests) == before


def test_there_are_no_stored_responses(served: Served) -> None:
    with pytest.raises(openai.NotFoundError, match="not stored here"):
        served.client.responses.retrieve("resp_1")
    with pytest.raises(openai.NotFoundError, match="not stored here"):
        served.client.responses.delete("resp_1")


def test_a_wrong_member_and_an_unknown_model_are_errors_of_the_sdk(served: Served) -> None:
    wrong: Any = [{"type": "function_call_output", "output": "rain"}]
    with pytest.raises(openai.BadRequestError) as refused:
        served.client.responses.create(model=TRANSLATED[0], input=wrong)
    assert refused.value.param == "input[0].call_id"
    with pytest.raises(openai.NotFoundError):
        served.client.responses.create(model="nowhere", input="hi")
    assert httpx.get(f"{served.sidecar.url}/v1/responses").status_code == 405


def test_input_tokens_are_counted_by_the_provider_or_estimated(served: Served, model: str) -> None:
    counted = served.client.responses.input_tokens.with_raw_response.count
    response = counted(model=model, input="Why?", instructions="Be brief.", tools=[WEATHER])
    count = response.parse()
    assert count.object == "response.input_tokens"
    if model == TRANSLATED[0]:
        assert response.headers["x-token-count"] == "estimate"
        assert 0 < count.input_tokens != COUNTED
    else:
        assert "x-token-count" not in response.headers
        assert count.input_tokens == COUNTED
        assert served.provider.requests[-1].path == (
            "/v1/responses/input_tokens" if model == SAME else "/v1/messages/count_tokens"
        )
        assert "Be brief." in str(served.last_body)
    assert counted(model=model, instructions="Be brief.").parse().input_tokens > 0


@pytest.mark.parametrize("member", [{"previous_response_id": "resp_1"}, {"model": "none"}, {"input": 3}])
def test_what_cannot_be_counted_is_named(served: Served, member: dict[str, Any]) -> None:
    body = {"model": TRANSLATED[0], "input": "Why?", **member}
    response = httpx.post(f"{served.sidecar.url}/v1/responses/input_tokens", json=body)
    assert response.status_code in (400, 404)
    assert next(iter(member)) in response.json()["error"]["message"]


@pytest.mark.parametrize("translated", TRANSLATED)
def test_codex_keeps_its_functions_and_is_told_which_tools_were_left_out(served: Served, translated: str) -> None:
    events = list(
        served.client.responses.create(model=translated, input=codex_items("hi"), stream=True, extra_body=CODEX)
    )
    last = events[-1]
    assert last.type == "response.completed"
    assert last.response.output_text == TEXT
    sent = [tool.get("function", tool)["name"] for tool in served.last_body["tools"]]
    assert sent == ["exec_command", "apply_patch", "mcp__docs__search"]
    assert "start: begin_patch" in str(served.last_body["tools"])
    whole = served.client.responses.create(model=translated, input=codex_items("hi"), extra_body=CODEX)
    for response in (last.response, whole):
        assert response.model_extra is not None
        left_out = [warning.split(" was")[0] for warning in response.model_extra["opensearch_ml_stream"]["warnings"]]
        assert left_out == [
            "tools[2] (web_search)", "tools[3] (local_shell)", "tools[4] (image_generation)", "tools[5] (tool_search)",
        ]  # fmt: skip


@pytest.mark.parametrize("translated", TRANSLATED)
@pytest.mark.parametrize("streams", [True, False])
def test_codex_s_own_kinds_of_tools_are_called_as_it_calls_them(served: Served, translated: str, streams: bool) -> None:
    for asked, called in (
        ("patch", {"type": "custom_tool_call", "name": "apply_patch", "input": PATCH}),
        ("search", {"type": "function_call", "namespace": "mcp__docs", "name": "search"}),
    ):
        items = codex_items(asked)
        if streams:
            with served.client.responses.stream(model=translated, input=items, extra_body=CODEX) as stream:
                done = [event.item for event in stream if event.type == "response.output_item.done"]
        else:
            done = served.client.responses.create(model=translated, input=items, extra_body=CODEX).output
        call: Any
        (call,) = [item.to_dict() for item in done]
        assert called.items() <= call.items()
        output: Any = {"type": f"{call['type']}_output", "call_id": call["call_id"], "output": "Done."}
        answered = served.client.responses.create(model=translated, input=[*items, call, output], extra_body=CODEX)
        assert answered.output_text == TEXT
        name, _ = CALLS[asked]
        assert str(served.last_body["messages"]).count(call["call_id"]) == 2
        assert f"'name': '{name}'" in str(served.last_body["messages"])


def test_codex_is_set_up_as_the_page_says(served: Served) -> None:
    page = (Path(__file__).parents[2] / "docs" / "openai-api.md").read_text("utf-8")
    config = tomllib.loads(page.split("```toml\n")[1].split("```")[0])
    provider = config["model_providers"][config["model_provider"]]
    url = provider["base_url"].replace("http://127.0.0.1:9510", served.sidecar.url)
    body = {"model": TRANSLATED[0], "input": codex_items("hi"), "stream": True, **CODEX}
    response = httpx.post(f"{url}/{provider['wire_api']}", json=body)
    assert response.headers["content-type"].startswith("text/event-stream")
    assert "event: response.completed" in response.text
