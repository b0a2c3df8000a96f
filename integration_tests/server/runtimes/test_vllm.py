"""What callers get of vLLM itself, on a CPU: tools, forms of output, embeddings, adapters (`make test-runtimes`)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from integration_tests.server.runtimes.engine_models import (
    data_of,
    message,
    predict,
    serving_engines,
    stream,
    text_of,
    write_model,
)
from integration_tests.server.runtimes.runtime_server import RuntimeServer

from tests.runtimes.shipped import tiny_models

pytestmark = pytest.mark.engines

PROMPT = "w1 w2 w3"
CITIES = ["Oslo", "Rome"]


def schema(**values: list[Any]) -> dict[str, Any]:
    properties = {name: {"enum": allowed} for name, allowed in values.items()}
    return {"type": "object", "properties": properties, "required": list(values), "additionalProperties": False}


def tool(name: str, **values: list[Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "strict": True, "parameters": schema(**values)}}


ALLOWED: dict[str, dict[str, list[Any]]] = {
    "weather": {"city": ["Oslo", "Rome"], "days": [1, 2]},
    "clock": {"zone": ["UTC", "CET"]},
}
TOOLS = [tool(name, **values) for name, values in ALLOWED.items()]


def named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def is_allowed(call: dict[str, str]) -> bool:
    arguments, allowed = json.loads(call["arguments"]), ALLOWED[call["name"]]
    return arguments.keys() == allowed.keys() and all(arguments[name] in allowed[name] for name in allowed)


def joined(fragments: list[dict[str, Any]]) -> dict[str, str]:
    """The one call that the fragments are of."""
    assert {fragment["index"] for fragment in fragments} == {0}
    return {name: "".join(fragment.get(name, "") for fragment in fragments) for name in ("name", "arguments")}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RuntimeServer]:
    folder = tmp_path_factory.mktemp("vllm")
    models = folder / "models"
    tools = {"enable_auto_tool_choice": True, "tool_call_parser": "hermes", "llm_parameters": {"max_tokens": 150}}
    write_model(models, "tools", "vllm", tiny_models.folder_of_bytes, **tools)
    lora = write_model(models, "lora", "vllm", enable_lora=True, lora_modules=["adapted=adapter"])
    tiny_models.lora_adapter(lora / "adapter")
    write_model(models, "embedding", "vllm", model_type="embeddings")
    with serving_engines(folder, models, "tools", "lora", "embedding") as running:
        yield running


@pytest.mark.parametrize(
    ("choice", "names"),
    [('"required"', {"weather", "clock"}), (named("weather"), {"weather"}), (named("clock"), {"clock"})],
    ids=["required", "weather", "clock"],
)
def test_the_model_calls_the_tool_that_it_must_in_a_stream_as_in_a_whole_response(
    server: RuntimeServer, choice: object, names: set[str]
) -> None:
    (whole,) = message(predict(server, "tools", inputs=PROMPT, tools=TOOLS, tool_choice=choice))["tool_calls"]
    assert whole["function"]["name"] in names
    assert is_allowed(whole["function"])
    chunks = stream(server, "tools", inputs=PROMPT, tools=TOOLS, tool_choice=choice)
    fragments = [fragment for chunk in chunks for fragment in data_of(chunk).get("tool_calls", [])]
    call = joined(fragments)
    assert len(fragments) > 2
    assert call["name"] == whole["function"]["name"]
    assert json.loads(call["arguments"]) == json.loads(whole["function"]["arguments"])
    assert text_of(chunks) == ""
    assert data_of(chunks[-1])["is_last"] is True


def test_a_tool_that_is_not_among_the_tools_is_refused_in_the_engines_words(server: RuntimeServer) -> None:
    response = predict(server, "tools", inputs=PROMPT, tools=TOOLS, tool_choice=named("map"))
    assert "does not match any of the specified `tools`" in response.text


def test_a_response_has_the_form_that_its_schema_says(server: RuntimeServer) -> None:
    form = {"name": "place", "strict": True, "schema": schema(city=CITIES, known=[True, False])}
    given = {"inputs": PROMPT, "response_format": {"type": "json_schema", "json_schema": form}}
    chunks = stream(server, "tools", **given)
    place = json.loads(text_of(chunks))
    assert (place["city"] in CITIES, type(place["known"])) == (True, bool)
    assert json.loads(message(predict(server, "tools", **given))["content"]) == place
    assert len(chunks) > 2


def test_the_parameter_model_calls_an_adapter_of_the_models_folder(server: RuntimeServer) -> None:
    own = message(predict(server, "lora", inputs=PROMPT))["content"]
    adapted = message(predict(server, "lora", inputs=PROMPT, model="adapted"))["content"]
    chunks = stream(server, "lora", inputs=PROMPT, model="adapted")
    assert adapted != own
    assert (text_of(chunks), data_of(chunks[-1])["model"]) == (adapted, "adapted")
    assert message(predict(server, "lora", inputs=PROMPT))["content"] == own


def test_a_decoder_embeds_texts_where_the_settings_say_so(server: RuntimeServer) -> None:
    response = server.post("/_predict/text_embedding/runtime-embedding", text_docs=["w1 w2", "w3", "w1 w2"])
    assert response.status_code == 200, response.text
    outputs = response.json()["inference_results"][0]["output"]
    assert [(one["name"], one["shape"]) for one in outputs] == [("sentence_embedding", [tiny_models.WIDTH])] * 3
    first, second, again = (one["data"] for one in outputs)
    assert first == pytest.approx(again, abs=1e-5)
    assert first != pytest.approx(second, abs=0.1)
