"""The programs of docs/openai-and-anthropic-apis.md, as they stand, with the variables that `env` prints."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration_tests.cli.commands import output_of
from integration_tests.interop.chat_clients.conversing_provider import WORDS, converse
from integration_tests.interop.chat_clients.installed_clients import printed
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import blueprint_connector
from integration_tests.support.sidecars import running_sidecar

pytestmark = [pytest.mark.peers, pytest.mark.timeout(180)]

MODEL = "Demo of openai-chat"
PAGE = (Path(__file__).parents[3] / "docs" / "openai-and-anthropic-apis.md").read_text("utf-8")
FENCED = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
NAME = re.compile(r"(?:#|//) (\w+\.(?:py|mjs)): (?:pip|npm) install ")
PROGRAMS = {match[1]: code for _, code in FENCED if (match := NAME.match(code))}
TEXT = "".join(WORDS)
OTHERS = {
    "langchain_chat.py": TEXT * 2,
    "ai_sdk_chat.mjs": TEXT * 2,
    "instructor_object.py": "name='Norway' capital='Oslo'\n",
}
WITH_NODE = pytest.mark.programs("node", "npm")


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What `env` prints of a model whose provider speaks neither API."""
    with background_provider(converse) as provider, running_sidecar(tmp_path_factory.mktemp("served")) as sidecar:
        sidecar.create_model(blueprint_connector("gemini-chat", provider.url), name=MODEL)
        yield json.loads(output_of("env", MODEL, "--json", "--url", sidecar.url))


def test_every_program_of_the_page_has_a_name_and_says_what_to_install() -> None:
    assert len(PROGRAMS) == len(FENCED) == 9


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=WITH_NODE if name.endswith(".mjs") else ()) for name in PROGRAMS]
)
def test_a_program_of_the_page_prints_the_answer(variables: dict[str, str], tmp_path: Path, name: str) -> None:
    program = tmp_path / name
    program.write_text(PROGRAMS[name], "utf-8")
    assert printed(program, variables, tmp_path) == OTHERS.get(name, TEXT)
