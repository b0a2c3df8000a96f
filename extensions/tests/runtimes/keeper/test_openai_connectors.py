"""Connectors of models that a provider, or an engine's own server, runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.documents import connector_document, read_connector
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from opensearch_ml_stream.connectors.stream_spec_lookup import spec_for
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.extensions.runtimes.keeper.model_folders import ModelFolder
from opensearch_ml_stream.extensions.runtimes.keeper.openai_connectors import (
    engine_connector,
    engine_of,
    is_remote_model,
    provider_connector,
)

PAGE = {
    "name": "openai-chat-completions",
    "implementation": "mlserver_llm_api.LLMRuntime",
    "parameters": {
        "extra": {
            "provider_id": "openai",
            "config": {"model_id": "gpt-3.5-turbo", "model_type": "chat.completions"},
        }
    },
}


def settings(provider_id: str = "openai", **config: Any) -> dict[str, Any]:
    config = {"model_id": "m", **config}
    return {"name": "n", "parameters": {"extra": {"provider_id": provider_id, "config": config}}}


def call(document: dict[str, Any], **parameters: str) -> tuple[str, dict[str, str], Any]:
    """Return URL, headers and body of the request that the connector renders."""
    connector = read_connector(connector_document(document, inline=True))
    values = ConnectorParameters.compile(connector.parameters)
    request = CompiledAction.compile(connector.action("PREDICT"), values, {"api_key": "sk"}).render(parameters)
    return request.url, dict(request.headers), json.loads(request.body)


def test_the_file_of_seldons_page_becomes_a_connector_of_openai() -> None:
    document = provider_connector(PAGE, {})
    assert document["credential"] == {"api_key": "env:OPENAI_API_KEY"}
    url, headers, body = call(document, inputs="Hi", temperature="0.5", max_tokens="7")
    assert url == "https://api.openai.com/v1/chat/completions"
    assert headers["Authorization"] == "Bearer sk"
    messages = [{"role": "user", "content": "Hi"}]
    assert body == {"model": "gpt-3.5-turbo", "messages": messages, "temperature": 0.5, "max_tokens": 7}


def test_parameters_of_the_file_hold_unless_a_request_gives_others() -> None:
    fixed = {"temperature": 0.25, "stop": ["\n"], "user": "me", "tool_choice": "auto"}
    document = provider_connector(settings(llm_parameters=fixed), {})
    assert call(document, inputs="Hi")[2] == {"model": "m", "messages": [{"role": "user", "content": "Hi"}], **fixed}
    assert call(document, inputs="Hi", temperature="1")[2]["temperature"] == 1


def test_the_short_name_needs_no_provider_and_no_config() -> None:
    extra = {"model_id": "m", "base_url": "http://127.0.0.1:8000/v1/"}
    document = provider_connector({"name": "n", "parameters": {"extra": extra}}, {"OPENAI_BASE_URL": "http://other"})
    assert call(document, inputs="Hi")[0] == "http://127.0.0.1:8000/v1/chat/completions"


def test_completions_continue_a_prompt() -> None:
    url, _, body = call(provider_connector(settings(model_type="completions"), {}), prompt="Once")
    assert (url, body) == ("https://api.openai.com/v1/completions", {"model": "m", "prompt": "Once"})
    assert call(provider_connector(settings(model_type="completions"), {}), inputs="Once")[2]["prompt"] == "Once"


def test_embeddings_take_texts_and_dimensions() -> None:
    document = provider_connector(settings(model_type="embeddings", llm_parameters={"dimensions": 8}), {})
    url, _, body = call(document, input='["a","b"]')
    assert (url, body) == ("https://api.openai.com/v1/embeddings", {"model": "m", "input": ["a", "b"], "dimensions": 8})
    assert document["actions"][0]["pre_process_function"] == "connector.pre_process.openai.embedding"


def test_gemini_is_called_through_its_openai_interface() -> None:
    document = provider_connector(settings("gemini", model_id="gemini-1.5-flash"), {})
    assert document["credential"] == {"api_key": "env:GEMINI_API_KEY"}
    assert call(document, inputs="Hi")[0] == "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions"
    assert provider_connector(settings("gemini"), {"GOOGLE_API_KEY": "k"})["credential"]["api_key"] == (
        "env:GOOGLE_API_KEY"
    )


AZURE = {"api_type": "azure", "azure_endpoint": "https://r.openai.azure.com/", "api_version": "v9", "model_id": "d"}


def test_a_deployment_on_azure_is_called_with_its_key_in_a_header_of_its_own() -> None:
    document = provider_connector(settings(**AZURE), {"AZURE_OPENAI_API_KEY": "k"})
    assert document["credential"] == {"api_key": "env:AZURE_OPENAI_API_KEY"}
    url, headers, _ = call(document, inputs="Hi")
    assert url == "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=v9"
    assert (headers["api-key"], "Authorization" in headers) == ("sk", False)


def test_azure_takes_a_token_of_its_directory_and_its_endpoint_from_the_environment() -> None:
    environment = {"AZURE_OPENAI_ENDPOINT": "https://e", "OPENAI_API_VERSION": "v8"}
    document = provider_connector(settings(api_type="azure_ad", azure_ad_token="t"), environment)
    assert document["credential"] == {"api_key": "t"}
    url, headers, _ = call(document, inputs="Hi")
    assert url == "https://e/openai/deployments/m/chat/completions?api-version=v8"
    assert headers["Authorization"] == "Bearer sk"
    assert provider_connector(settings(api_type="azure_ad"), environment)["credential"]["api_key"] == (
        "env:AZURE_OPENAI_AD_TOKEN"
    )


def test_an_organization_is_named_in_a_header() -> None:
    headers = call(provider_connector(settings(organization="org"), {}), inputs="Hi")[1]
    assert headers["OpenAI-Organization"] == "org"


@pytest.mark.parametrize(
    ("wrong", "named"),
    [(settings(model_type="images.generations"), "model_type [images.generations]"),
     (settings("cohere"), "provider_id [cohere]"),
     (settings(api_type="aws"), "api_type [aws]"),
     (settings(api_type="azure"), "azure_endpoint"),
     (settings(model_id=None), "model_id is missing"),
     (settings(model_id=7), "model_id must be a string"),
     (settings(llm_parameters=[1]), "llm_parameters must be an object"),
     ({"parameters": {"extra": []}}, "parameters.extra must be an object"),
     ({"parameters": {"extra": {"prompt_utils": {"prompt_options": {}}}}}, "prompt_utils is not supported")],
)  # fmt: skip
def test_what_cannot_be_carried_out_is_named(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        provider_connector(wrong, {})
    assert named in refused.value.reason


def test_only_these_implementations_are_remote_models() -> None:
    names = ("openai", "mlserver_llm_api.LLMRuntime", "mlserver_llm_api.runtime.LLMRuntime")
    assert all(is_remote_model(name) for name in names)
    assert not is_remote_model("mlserver_llm_local.runtime.Local")
    assert not is_remote_model("model.MyModel")


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
