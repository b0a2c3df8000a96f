"""Amazon Bedrock and SageMaker. Streaming is a matter of the path; containers on SageMaker want it in the body, too."""

from tests.selection import caller_values as values
from tests.selection.provider_requests.hosted_requests import anthropic_messages
from tests.selection.provider_requests.rows import (
    ASKS,
    ASKS_PARTS,
    COHERE_TEXTS,
    COUNT,
    MAX_TOKENS,
    MESSAGES,
    PARTS,
    STREAM,
    TEXT,
    TRUE,
    Place,
    ProviderRequest,
    array,
    members,
    turns,
    vectors,
)

_MODELS = "https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-"
_LLAMA = "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n"
_LLAMA_END = "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
_CONVERSATION = turns(PARTS, roles="user assistant")
_MAX_TOKENS = {"max_tokens": Place(("inferenceConfig", "maxTokens"), values.COUNTS)}

ROWS = {
    "bedrock-converse": ProviderRequest(
        "https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html",
        members("messages", messages=_CONVERSATION, inferenceConfig=members("", maxTokens=COUNT)),
        ASKS_PARTS, _MAX_TOKENS,
    ),
    "bedrock-invoke-nova": ProviderRequest(
        "https://docs.aws.amazon.com/nova/latest/userguide/complete-request-schema.html",
        members(
            "schemaVersion messages", schemaVersion={"const": "messages-v1"}, messages=_CONVERSATION,
            inferenceConfig=members("", maxTokens=COUNT),
        ),
        ASKS_PARTS, _MAX_TOKENS,
    ),
    "bedrock-invoke-anthropic": ProviderRequest(
        f"{_MODELS}anthropic-claude-messages.html",
        anthropic_messages("anthropic_version", anthropic_version={"const": "bedrock-2023-05-31"}), ASKS, MAX_TOKENS,
    ),
    "bedrock-invoke-titan": ProviderRequest(
        f"{_MODELS}titan-text.html",
        members("inputText", inputText=TEXT, textGenerationConfig=members("", maxTokenCount=COUNT)),
        {"inputs": Place(("inputText",))},
        {"max_tokens": Place(("textGenerationConfig", "maxTokenCount"), values.COUNTS)},
    ),
    "bedrock-invoke-cohere": ProviderRequest(
        f"{_MODELS}cohere-command-r-plus.html", members("message", message=TEXT, max_tokens=COUNT),
        {"inputs": Place(("message",))}, MAX_TOKENS,
    ),
    "bedrock-invoke-llama": ProviderRequest(
        f"{_MODELS}meta.html", members("prompt", prompt=TEXT, max_gen_len=COUNT),
        {"inputs": Place(("prompt",), before=_LLAMA, after=_LLAMA_END), "prompt": Place(("prompt",))},
        {"max_tokens": Place(("max_gen_len",), values.COUNTS)},
    ),
    "bedrock-invoke-mistral": ProviderRequest(
        f"{_MODELS}mistral-text-completion.html", members("prompt", prompt=TEXT, max_tokens=COUNT),
        {"inputs": Place(("prompt",), before="<s>[INST] ", after=" [/INST]"), "prompt": Place(("prompt",))},
        MAX_TOKENS,
    ),
    "bedrock-cohere-embedding": vectors(
        f"{_MODELS}embed.html", members("texts input_type", **COHERE_TEXTS), ("texts",), "input_type"
    ),
    "bedrock-titan-embedding": vectors(
        f"{_MODELS}titan-embed-text.html", members("inputText", inputText=TEXT), ("inputText",)
    ),
    "sagemaker-chat": ProviderRequest(
        "https://docs.djl.ai/docs/serving/serving/docs/lmi/user_guides/chat_input_output_schema.html",
        members("messages", messages=MESSAGES, max_tokens=COUNT, stream=TRUE), ASKS, MAX_TOKENS, STREAM,
    ),
    "sagemaker-embedding": vectors("the model's own container takes an array of texts", array(TEXT), ()),
}  # fmt: skip
