"""The files of Seldon's API runtime as connectors, called with what its clients send."""

import json
from typing import Any

import pytest

from opensearch_ml_stream.connectors.documents import connector_document, read_connector
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from opensearch_ml_stream.extensions.runtimes.keeper.openai_connectors import is_remote_model, provider_connector

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
