"""Clients of OpenAI's and Anthropic's APIs do with a model of every dialect what they do with their own provider.

Their programs run in environments of their own (`make clients`): SDKs with their stream helpers, tool runners and
parsers, LangChain, LlamaIndex, LiteLLM, Instructor, and the AI SDK.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from integration_tests.interop.chat_clients.conversing_provider import (
    BLUEPRINTS,
    COUNTRY,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    WEATHER,
    WORDS,
    converse,
)
from integration_tests.interop.chat_clients.installed_clients import outcomes
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import blueprint_connector
from integration_tests.support.sidecars import Sidecar, running_sidecar

pytestmark = [pytest.mark.peers, pytest.mark.timeout(180)]

TEXT = "".join(WORDS)
# By the last word of a check's name.
EXPECTED = {
    "text": [TEXT, INPUT_TOKENS, OUTPUT_TOKENS],
    "stream": [TEXT, INPUT_TOKENS, OUTPUT_TOKENS],
    "words": TEXT,
    "tools": f"It is {WEATHER}.",
    "runner": f"It is {WEATHER}.",
    "structured": COUNTRY,
    "object": COUNTRY,
    "counted": True,
    "listed": True,
}
# What these clients ask for by default, and a provider cannot be told.
DROPPED = ["parallel_tool_calls", "tool_choice", "tool_choice.disable_parallel_tool_use", "tools.strict"]


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    """A sidecar with a model for each blueprint, which has its name."""
    with background_provider(converse) as provider, running_sidecar(tmp_path_factory.mktemp("served")) as sidecar:
        for name in BLUEPRINTS:
            connector = blueprint_connector(name, provider.url)
            sidecar.create_model(connector, name=name, _sidecar={"drop_params": DROPPED})
        yield sidecar


@pytest.mark.parametrize(
    "program",
    [
        "openai_sdk.py",
        "anthropic_sdk.py",
        "langchain_chat.py",
        "llama_index_chat.py",
        "litellm_completion.py",
        "instructor_objects.py",
        *(
            pytest.param(program, marks=pytest.mark.programs("node", "npm"))
            for program in ("openai_sdk.mjs", "anthropic_sdk.mjs", "ai_sdk.mjs")
        ),
    ],
)
def test_a_client_does_the_same_with_a_model_of_every_dialect(sidecar: Sidecar, tmp_path: Path, program: str) -> None:
    variables = {
        "OPENAI_BASE_URL": f"{sidecar.url}/v1",
        "OPENAI_API_KEY": "none",
        "ANTHROPIC_BASE_URL": sidecar.url,
        "ANTHROPIC_API_KEY": "none",
    }
    got = outcomes(program, BLUEPRINTS, variables, tmp_path)
    assert len(got) >= 4 * len(BLUEPRINTS)
    expected = {check: EXPECTED[check.split()[1].rpartition("_")[2]] for check in got}
    wrong = {check: said for check, said in got.items() if said != expected[check]}
    assert wrong == {}
