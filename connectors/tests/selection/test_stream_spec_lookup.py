"""Which stream a connector has: by `_stream`, by `_llm_interface`, by its URL."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.conversation.dialect import Dialect
from opensearch_ml_stream.connectors.conversation.dialects import openai_compatible
from opensearch_ml_stream.connectors.conversation.dialects.anthropic_messages import (
    ANTHROPIC_MESSAGES,
    HOSTED_MESSAGES,
)
from opensearch_ml_stream.connectors.conversation.dialects.chat_completions import COMPATIBLE
from opensearch_ml_stream.connectors.documents import Action, Connector, read_connector
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.bedrock_converse import CLAUDE_CONVERSE, CONVERSE
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT, OPENAI_CHAT_PLAIN
from opensearch_ml_stream.connectors.stream_spec_lookup import choose_spec, spec_for

CHAT = "openai/v1/chat/completions"
AWS = "https://bedrock-runtime.us-east-1.amazonaws.com"
VERTEX = "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1/publishers"


def connector(url: str, parameters: dict[str, Any] | None = None, **action: str) -> Connector:
    return read_connector({
        "name": "c", "version": "1", "protocol": "http", "parameters": parameters or {},
        "actions": [{"action_type": "predict", "method": "POST", "url": url, **action}],
    })  # fmt: skip


def chosen(url: str, parameters: dict[str, Any] | None = None, request: dict[str, str] | None = None) -> str:
    made = connector(url, parameters)
    return spec_for(made, made.action(), request or {}).name


def refusal(made: Connector, request: dict[str, str] | None = None) -> str:
    with pytest.raises(InvalidRequest) as caught:
        spec_for(made, made.action(), request or {})
    return caught.value.reason


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://api.openai.com/v1/chat/completions", CHAT),
        ("http://127.0.0.1:11434/v1/chat/completions", CHAT),
        (f"{AWS}/openai/v1/chat/completions", CHAT),
        ("https://api.mistral.ai/v1/chat/completions", "mistral/v1/chat/completions"),
        ("https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21", CHAT),
        ("https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-09-01-preview", CHAT),
        ("https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2023-07-01-preview",
         "mistral/v1/chat/completions"),
        ("https://api.openai.com/v1/completions", "openai/v1/completions"),
        ("https://api.openai.com/v1/responses", "openai/v1/responses"),
        ("https://api.anthropic.com/v1/messages", "anthropic/v1/messages"),
        (f"{AWS}/model/us.anthropic.claude-v1:0/converse", "bedrock/converse"),
        (f"{AWS}/model/m/converse-stream", "bedrock/converse"),
        (f"{AWS}/model/arn:aws:bedrock:us-east-1:1:inference-profile%2Fx/invoke", "bedrock/invoke"),
        (f"{AWS}/model/m/invoke-with-response-stream", "bedrock/invoke"),
        ("https://runtime.sagemaker.us-east-1.amazonaws.com/endpoints/e/invocations", "sagemaker/invocations"),
        ("https://generativelanguage.googleapis.com/v1beta/models/gemini:generateContent",
         "gemini/v1beta/generatecontent"),
        (f"{VERTEX}/google/models/gemini:streamGenerateContent", "gemini/v1beta/generatecontent"),
        (f"{VERTEX}/anthropic/models/claude@1:rawPredict", "vertex/anthropic"),
        ("https://api.cohere.ai/v1/chat", "cohere/v1/chat"),
        ("https://api.cohere.com/v2/chat", "cohere/v2/chat"),
        ("http://127.0.0.1:11434/api/chat", "ollama/api/chat"),
        ("http://127.0.0.1:11434/api/generate", "ollama/api/generate"),
        ("http://127.0.0.1:8080/generate", "huggingface/generate_stream"),
        ("http://127.0.0.1:8080/generate_stream", "huggingface/generate_stream"),
        ("https://generativelanguage.googleapis.com/v1beta/interactions", "gemini/v1beta/interactions"),
        ("https://api.groq.com/openai/v1/chat/completions", CHAT),
        ("https://api.perplexity.ai/chat/completions", "mistral/v1/chat/completions"),
        ("https://w.cloud.databricks.com/serving-endpoints/m/invocations", "mistral/v1/chat/completions"),
        ("https://dashscope.aliyuncs.com/compatible-mode/v1/chat/completions", CHAT),
        ("https://dashscope.aliyuncs.com/api/v1/services/aigc/text-generation/generation", "dashscope/generation"),
        ("https://dashscope.aliyuncs.com/api/v1/services/aigc/multimodal-generation/generation",
         "dashscope/generation"),
        ("https://us-south.ml.cloud.ibm.com/ml/v1/text/chat?version=2024-10-10", "watsonx/text/chat"),
        ("https://us-south.ml.cloud.ibm.com/ml/v1/deployments/d/text/generation_stream?version=2024-10-10",
         "watsonx/text/generation"),
        ("https://api.cloudflare.com/client/v4/accounts/a/ai/v1/chat/completions", CHAT),
        ("https://api.cloudflare.com/client/v4/accounts/a/ai/run/@cf/meta/llama-3.1-8b-instruct", "cloudflare/ai/run"),
        ("http://127.0.0.1:8080/v2/models/m/infer", "v2/models/infer_stream"),
        ("http://127.0.0.1:8080/v2/models/m/versions/1/generate_stream", "v2/models/infer_stream"),
    ],
)  # fmt: skip
def test_the_url_tells_the_interface(url: str, name: str) -> None:
    assert chosen(url) == name


def test_the_url_is_filled_from_connector_and_request() -> None:
    url = "${parameters.endpoint}/model/${parameters.model}/converse"
    assert chosen(url, {"endpoint": AWS}, {"model": "m"}) == "bedrock/converse"


def test_a_url_that_only_the_request_completes_is_recognised_by_the_rest_of_its_path() -> None:
    assert chosen(AWS + "/model/${parameters.model}/converse") == "bedrock/converse"
    assert chosen("${parameters.a}/${parameters.b}/v1/messages", {"a": "http://${parameters.c}"}) == (
        "anthropic/v1/messages"
    )


@pytest.mark.parametrize("name", sorted(SHIPPED.presets))
def test_every_documented_name_chooses_its_preset(name: str) -> None:
    for written in (name, f"  {name.upper()} ", name.replace("/", "\\/")):
        assert chosen("http://h/unknown", {"_llm_interface": written}) == SHIPPED.presets[name].name
        assert chosen("http://h/unknown", None, {"_llm_interface": written}) == SHIPPED.presets[name].name


def test_the_names_of_ml_commons_are_known() -> None:
    names = {CHAT, "bedrock/converse", "bedrock/converse/claude", "gemini/v1beta/generatecontent"}
    assert names <= SHIPPED.presets.keys()


def test_a_request_cannot_contradict_what_the_url_says() -> None:
    assert chosen("https://api.anthropic.com/v1/messages", None, {"_llm_interface": CHAT}) == "anthropic/v1/messages"
    assert chosen("https://api.openai.com/v1/chat/completions", None, {"_llm_interface": "no/such"}) == CHAT


def test_the_connectors_own_interface_beats_its_url() -> None:
    parameters = {"_llm_interface": "bedrock/converse/claude"}
    assert chosen(f"{AWS}/model/m/invoke", parameters) == "bedrock/converse"


def test_the_url_knows_which_variant_of_an_interface_a_server_needs() -> None:
    parameters = {"_llm_interface": CHAT}
    assert chosen("https://api.mistral.ai/v1/chat/completions", parameters) == "mistral/v1/chat/completions"


def test_a_connector_may_name_the_variant_itself() -> None:
    parameters = {"_llm_interface": "mistral/v1/chat/completions"}
    assert chosen("http://127.0.0.1:8000/v1/chat/completions", parameters) == "mistral/v1/chat/completions"


ELSEWHERE = "http://127.0.0.1:8000/v1/chat/completions"
AZURE_2023 = "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2023-07-01-preview"
OF_CHAT = {name: dialect for name, dialect in SHIPPED.dialects.items() if dialect.name == COMPATIBLE.name}


def dialect_of(url: str, **parameters: str) -> Dialect | None:
    made = connector(url, parameters)
    return choose_spec(made, made.action(), {}).dialect


@pytest.mark.parametrize("name", OF_CHAT)
@pytest.mark.parametrize("url", [ELSEWHERE, "https://gateway/acme"])
def test_the_dialect_that_is_named_is_spoken_at_any_address(url: str, name: str) -> None:
    assert dialect_of(url, _llm_interface=name) is OF_CHAT[name]
    assert dialect_of(url, _stream=f'{{"preset": "{name}"}}') is OF_CHAT[name]


@pytest.mark.parametrize(
    ("url", "name", "dialect"),
    [
        # Of a name and a URL that many share, and one that says more, this counts.
        ("https://api.deepseek.com/v1/chat/completions", CHAT, openai_compatible.DEEPSEEK),
        ("https://us-south.ml.cloud.ibm.com/ml/v1/text/chat?version=2024-10-10", CHAT, openai_compatible.WATSONX),
        (AZURE_2023, CHAT, openai_compatible.AZURE_OLD),
        ("https://gateway/v1/messages", "vertex/anthropic", HOSTED_MESSAGES),
        (f"{VERTEX}/anthropic/models/claude@1:rawPredict", "anthropic/v1/messages", HOSTED_MESSAGES),
        (f"{AWS}/model/anthropic.claude-v2/invoke", "anthropic/v1/messages", HOSTED_MESSAGES),
        ("https://gateway/v1/messages", "anthropic/v1/messages", ANTHROPIC_MESSAGES),
        # Of two that say something, the name.
        ("https://api.deepseek.com/v1/chat/completions", "vllm/v1/chat/completions", openai_compatible.TAKES_REASONING),
        (AZURE_2023, "vllm/v1/chat/completions", openai_compatible.TAKES_REASONING),
        ("https://api.openai.com/v1/chat/completions", "together/v1/chat/completions", COMPATIBLE),
        # But a provider's own URL says which version or model of it is called.
        (AZURE_2023, "azure/openai/chat/completions", openai_compatible.AZURE_OLD),
        (f"{AWS}/model/us.anthropic.claude-v1:0/converse", "bedrock/converse", CLAUDE_CONVERSE),
        (f"{AWS}/model/amazon.nova-pro-v1:0/converse", "bedrock/converse/claude", CONVERSE),
        (f"{AWS}/model/arn:aws:bedrock:us-east-1:1:application-inference-profile%2Fx/converse",
         "bedrock/converse/claude", CLAUDE_CONVERSE),
        (f"{AWS}/model/arn:aws:bedrock:us-east-1:1:provisioned-model/x/converse", "bedrock/converse", CONVERSE),
    ],
)  # fmt: skip
def test_the_name_decides_the_dialect_but_for_what_many_servers_share(url: str, name: str, dialect: Dialect) -> None:
    assert dialect_of(url, _llm_interface=name) is dialect
    assert dialect_of(url, _stream=f'{{"preset": "{name}"}}') is dialect


def test_a_named_interface_asks_for_no_usage_where_the_server_of_the_url_refuses_that() -> None:
    assert chosen(AZURE_2023, {"_llm_interface": "vllm/v1/chat/completions"}) == OPENAI_CHAT_PLAIN.name
    assert chosen(AZURE_2023, {"_llm_interface": "azure/openai/chat/completions"}) == OPENAI_CHAT_PLAIN.name


def test_the_reason_says_where_the_url_had_its_say() -> None:
    for url, ends in (
        (ELSEWHERE, "names it"),
        ("https://api.deepseek.com/chat/completions", "its url says which variant"),
    ):
        made = connector(url, {"_llm_interface": CHAT})
        assert choose_spec(made, made.action(), {}).reason.endswith(ends)


def test_a_shared_name_is_streamed_as_the_url_says() -> None:
    url = "https://us-south.ml.cloud.ibm.com/ml/v1/text/chat?version=2024-10-10"
    assert chosen(url, {"_llm_interface": CHAT}) == "watsonx/text/chat"
    assert chosen(f"{VERTEX}/anthropic/models/c:rawPredict", {"_llm_interface": "anthropic/v1/messages"}) == (
        "vertex/anthropic"
    )


def test_a_provider_of_an_extension_is_spoken_to_as_it_is_named() -> None:
    plain = Interface(("acme/plain",), OPENAI_CHAT_PLAIN)
    thinking = Interface(("acme/thinking",), OPENAI_CHAT, dialect=openai_compatible.TAKES_REASONING)
    known = SHIPPED.with_others([Provider((plain, thinking))])
    for name, dialect in (("acme/plain", COMPATIBLE), ("acme/thinking", openai_compatible.TAKES_REASONING)):
        made = connector(ELSEWHERE, {"_llm_interface": name})
        assert choose_spec(made, made.action(), {}, known).dialect is dialect


def test_stream_beats_all_else() -> None:
    parameters = {"_stream": '{"preset": "ollama/api/chat"}', "_llm_interface": CHAT}
    assert chosen("https://api.anthropic.com/v1/messages", parameters, {"_llm_interface": CHAT}) == "ollama/api/chat"
    assert chosen("http://h/v1/embeddings", parameters) == "ollama/api/chat"


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com/v1/embeddings",
        "https://api.cohere.ai/v1/embed",
        "https://api.cohere.ai/v1/rerank",
        "https://r.openai.azure.com/openai/deployments/d/embeddings?api-version=2024-10-21",
        f"{VERTEX}/google/models/text-embedding-005:predict",
        f"{AWS}/model/amazon.titan-embed-text-v1/invoke",
        f"{AWS}/model/cohere.embed-english-v3/invoke",
    ],
)
def test_what_makes_vectors_or_scores_cannot_stream_whatever_the_request_says(url: str) -> None:
    assert "connector [c] cannot stream" in refusal(connector(url), {"_llm_interface": CHAT})


def test_a_post_process_function_for_vectors_says_so_too() -> None:
    url = "https://runtime.sagemaker.us-east-1.amazonaws.com/endpoints/e/invocations"
    made = connector(url, post_process_function="connector.post_process.default.embedding")
    assert "connector.post_process.default.embedding" in refusal(made)


def test_a_sagemaker_model_that_takes_texts_through_a_function_streams_only_if_its_interface_is_named() -> None:
    url = "https://runtime.sagemaker.us-east-1.amazonaws.com/endpoints/e/invocations"
    made = connector(url, pre_process_function="return params.question;")
    assert "name `_llm_interface` or `_stream`" in refusal(made)
    named = connector(url, {"_llm_interface": "sagemaker/invocations"}, pre_process_function="return params.question;")
    assert spec_for(named, named.action(), {}).name == "sagemaker/invocations"


def test_an_unknown_url_is_refused_with_what_to_add() -> None:
    reason = refusal(connector("http://h/unknown"))
    assert "_llm_interface" in reason
    assert "_stream" in reason


def test_an_unknown_interface_is_refused_with_the_known_ones() -> None:
    reason = refusal(connector("http://h/unknown", {"_llm_interface": "open/ai"}))
    assert "[open/ai]" in reason
    assert CHAT in reason


def test_the_action_is_the_one_that_is_asked_for() -> None:
    made = connector("http://h/unknown")
    action = Action("PREDICT", "POST", "http://h/api/chat")
    assert spec_for(made, action, {}).name == "ollama/api/chat"
