"""The connectors that call the servers of engines."""

from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.documents import read_connector
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from opensearch_ml_stream.connectors.selection.spec_for import spec_for
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.extensions.runtimes.keeper.model_folders import ModelFolder
from opensearch_ml_stream.extensions.runtimes.keeper.openai_connectors import engine_connector, engine_of


def model(engine: str, **extra: Any) -> ModelFolder:
    settings = {"name": "a/m", "implementation": engine, "parameters": {"extra": {"model": "m", **extra}}}
    return ModelFolder(Path("/models/m"), settings)


def rendered(engine: str, folder: ModelFolder, **parameters: str) -> tuple[str, dict[str, Any]]:
    connector = read_connector(engine_connector("a/m", folder, engine))
    action = CompiledAction.compile(connector.action(), ConnectorParameters.compile(connector.parameters), {})
    request = action.render(parameters)
    assert request.headers.keys() <= {"Content-Type"}
    return request.url, dict(jsontext.parse(request.body.decode(), "body"))


def test_which_models_are_run_by_an_engines_server() -> None:
    assert [engine_of(model(name)) for name in ("vllm", "llama-cpp", "huggingface", "openai", "x.Y")] == [
        "vllm", "llama-cpp", None, None, None,
    ]  # fmt: skip


def test_a_chat_goes_to_the_engines_url_which_is_no_address_and_which_no_parameter_changes() -> None:
    elsewhere = {"endpoint": "https://other.example", "url": "https://other.example"}
    url, body = rendered("vllm", model("vllm"), inputs="hi", **elsewhere)
    assert url == "http://engine.invalid/a%2Fm/v1/chat/completions"
    assert body == {"model": "a/m", "messages": [{"role": "user", "content": "hi"}]}


def test_its_streams_are_those_of_openai() -> None:
    connector = read_connector(engine_connector("m", model("vllm"), "vllm"))
    assert spec_for(connector, connector.action(), {}).name == "openai/v1/chat/completions"


@pytest.mark.parametrize(("engine", "theirs"), [("vllm", "repetition_penalty"), ("llama-cpp", "repeat_penalty")])
def test_a_penalty_has_the_engines_name_in_the_settings_and_in_a_call(engine: str, theirs: str) -> None:
    folder = model(engine, llm_parameters={"repeat_penalty": 1.5, "max_new_tokens": 7, "stream": True, "stop": "."})
    _, body = rendered(engine, folder, inputs="hi")
    assert (body[theirs], body["max_tokens"], body["stop"]) == (1.5, 7, ".")
    assert "stream" not in body
    _, body = rendered(engine, folder, inputs="hi", repetition_penalty="1.1", top_k="3")
    assert (body[theirs], body["top_k"]) == (1.1, 3)


def test_tools_an_adapter_and_a_form_of_the_answer_go_to_it() -> None:
    given = {"tools": '[{"type":"function"}]', "response_format": '{"type":"json_object"}', "model": "my-lora"}
    _, body = rendered("vllm", model("vllm"), inputs="hi", **given)
    assert (body["tools"], body["response_format"]) == ([{"type": "function"}], {"type": "json_object"})
    assert body["model"] == "my-lora"


def test_texts_are_completed_or_embedded_where_the_settings_say_so() -> None:
    url, body = rendered("vllm", model("vllm", model_type="completions"), inputs="hi")
    assert (url.rpartition("/v1/")[2], body) == ("completions", {"model": "a/m", "prompt": "hi"})
    connector = engine_connector("m", model("vllm", model_type="embeddings"), "vllm")
    (action,) = connector["actions"]
    assert action["url"] == "http://engine.invalid/m/v1/embeddings"
    assert action["post_process_function"] == "connector.post_process.openai.embedding"


def test_settings_that_its_process_refuses_make_a_connector_all_the_same() -> None:
    url, _ = rendered("vllm", model("vllm", model_type="images"), inputs="hi")
    assert url.endswith("/v1/chat/completions")
