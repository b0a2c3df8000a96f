"""Which dialect a connector of Anthropic's models has, by its URL and `_llm_interface`."""

import pytest

from opensearch_ml_stream.connectors.conversation.dialect import Dialect
from opensearch_ml_stream.connectors.conversation.dialects.anthropic_messages import (
    ANTHROPIC_MESSAGES,
    HOSTED_MESSAGES,
)
from opensearch_ml_stream.connectors.documents import Action, Connector
from opensearch_ml_stream.connectors.providers.bedrock_converse import CLAUDE_CONVERSE, CONVERSE
from opensearch_ml_stream.connectors.stream_spec_lookup import choose_spec

BEDROCK = "https://bedrock-runtime.us-east-1.amazonaws.com/model/"
CLAUDE = f"{BEDROCK}us.anthropic.claude-sonnet-4-5-20250929-v1:0"
VERTEX = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/anthropic/models/c"


def chosen(url: str, **parameters: str) -> tuple[str, Dialect | None]:
    action = Action("predict", "POST", url)
    choice = choose_spec(Connector("c", "1", "http", parameters, {}, (action,)), action, {})
    return choice.spec.name, choice.dialect


@pytest.mark.parametrize(
    ("url", "spec", "dialect"),
    [
        ("https://api.anthropic.com/v1/messages", "anthropic/v1/messages", ANTHROPIC_MESSAGES),
        (f"{VERTEX}:rawPredict", "vertex/anthropic", HOSTED_MESSAGES),
        (f"{CLAUDE}/invoke", "bedrock/invoke", HOSTED_MESSAGES),
        (f"{CLAUDE}/invoke-with-response-stream", "bedrock/invoke", HOSTED_MESSAGES),
        (
            f"{BEDROCK}arn%3Aaws%3Abedrock%3A%3A%3Ainference-profile%2Fanthropic.c/invoke",
            "bedrock/invoke",
            HOSTED_MESSAGES,
        ),
        (f"{BEDROCK}meta.llama3-8b-instruct-v1:0/invoke", "bedrock/invoke", None),
        (f"{BEDROCK}${{parameters.model}}/invoke", "bedrock/invoke", None),
        (f"{CLAUDE}/converse", "bedrock/converse", CLAUDE_CONVERSE),
        (f"{BEDROCK}amazon.nova-pro-v1:0/converse-stream", "bedrock/converse", CONVERSE),
    ],
)
def test_the_url_says_whose_model_it_is(url: str, spec: str, dialect: Dialect | None) -> None:
    assert chosen(url) == (spec, dialect)


@pytest.mark.parametrize(
    ("url", "interface", "dialect"),
    [
        (f"{BEDROCK}m/converse", "bedrock/converse/claude", CONVERSE),
        (f"{CLAUDE}/converse", "bedrock/converse", CLAUDE_CONVERSE),
        ("https://gateway/claude", "bedrock/converse/claude", CLAUDE_CONVERSE),
        ("https://gateway/claude", "bedrock/converse", CONVERSE),
        ("https://gateway/claude", "anthropic/v1/messages", ANTHROPIC_MESSAGES),
        (f"{CLAUDE}/invoke", "bedrock/invoke", HOSTED_MESSAGES),
        (f"{CLAUDE}/invoke", "bedrock/converse/claude", CLAUDE_CONVERSE),
        (f"{BEDROCK}m/invoke", "bedrock/invoke", None),
    ],
)
def test_an_interface_that_is_named_decides_and_the_url_says_which_variant_it_is(
    url: str, interface: str, dialect: Dialect | None
) -> None:
    assert chosen(url, _llm_interface=interface)[1] == dialect


def test_a_parameter_of_the_connector_may_say_whose_model_it_is() -> None:
    assert chosen(f"{BEDROCK}${{parameters.model}}/invoke", model="anthropic.claude-3-haiku") == (
        "bedrock/invoke", HOSTED_MESSAGES,
    )  # fmt: skip
