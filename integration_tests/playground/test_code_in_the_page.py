"""The code that the page shows for a call, run as it is pasted: by each door, in each language, with logins."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration_tests.cli.commands import output_of
from integration_tests.playground.models_in_page import choose_code, show_models
from integration_tests.playground.open_playground import (
    HOSTILE,
    TEXT,
    Playground,
    complaints,
    opened,
    running_playground,
)
from integration_tests.playground.test_rights_in_the_page import PASSWORD, logged_in
from integration_tests.support.browser.chromium import NEEDS_CHROMIUM
from integration_tests.support.conditions import eventually
from integration_tests.support.connector_bodies import blueprint_connector, openai
from integration_tests.support.predict_calls import connector

pytestmark = [NEEDS_CHROMIUM, pytest.mark.programs("node"), pytest.mark.timeout(300)]
DOORS = ("ML Commons", "OpenAI", "Anthropic")
LANGUAGES = {
    "curl": ["sh", "-c"],
    "Python": [sys.executable, "-c"],
    "JavaScript": ["node", "--input-type=module", "-e"],
}
HARD = f'It\'s "a" $(name) `x` \\n {HOSTILE} {{}} ünï 🙂'
FIRST_WORD = {"ML Commons": '"content":"Light"', "OpenAI": '"content":"Light"', "Anthropic": '"text":"Light"'}


@pytest.fixture
def playground(tmp_path: Path) -> Iterator[Playground]:
    with running_playground(tmp_path) as running:
        yield running


@pytest.fixture
def secured(playground: Playground, tmp_path: Path) -> Playground:
    """The same with a model, and with two users who log in."""
    playground.sidecar.create_model(openai(playground.provider.url), name="Alpha")
    for role in ("ml_full_access", "ml_predict_access"):
        arguments = ("--role", role, "--password", "env:PW", "--store", f"sqlite:///{tmp_path}/store.db")
        output_of("users", "add", role, *arguments, PW=PASSWORD)
    client = playground.sidecar.client
    eventually(lambda: client.get("/_ui/", headers={"Connection": "close"}).status_code == 401)
    return playground


async def run(language: str, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the code; nothing is remembered or asked for."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("MLSTREAM_")}
    return await asyncio.to_thread(
        subprocess.run, [*LANGUAGES[language], code], capture_output=True, text=True, timeout=120,
        env={**own, **environment}, stdin=subprocess.DEVNULL,
    )  # fmt: skip


async def test_every_door_in_every_language_whatever_the_models_name(playground: Playground, tmp_path: Path) -> None:
    playground.sidecar.create_model(openai(playground.provider.url), name=HARD)
    async with opened(playground, tmp_path) as page:
        await show_models(page, HARD)
        for door in DOORS:
            for language in LANGUAGES:
                code = await choose_code(page, HARD, door, language)
                ended = await run(language, code)
                expected = FIRST_WORD[door] if language == "curl" else TEXT
                assert ended.returncode == 0 and expected in ended.stdout.replace('": "', '":"'), (
                    door,
                    language,
                    ended,
                )
        assert complaints(page) == []


async def test_models_of_one_name_are_called_by_their_ids(playground: Playground, tmp_path: Path) -> None:
    first, second = (playground.sidecar.create_model(openai(playground.provider.url), name="Twin") for _ in range(2))
    async with opened(playground, tmp_path) as page:
        await show_models(page, "Twin", "Twin")
        code = await choose_code(page, "Twin", "OpenAI", "curl")
    assert first in code or second in code
    assert FIRST_WORD["OpenAI"] in (await run("curl", code)).stdout


async def test_models_that_do_not_stream_or_give_vectors(playground: Playground, tmp_path: Path) -> None:
    playground.sidecar.create_model(connector(playground.provider.url), name="Other")
    embedding = blueprint_connector("openai-embedding", playground.provider.url)
    playground.sidecar.create_model(embedding, name="Vectors")
    async with opened(playground, tmp_path) as page:
        await show_models(page, "Other", "Vectors")
        for name, door, expected in (
            ("Other", "ML Commons", "Why is the sky blue?"),
            ("Vectors", "ML Commons", "0.125"),
            ("Vectors", "OpenAI", "0.125"),
        ):
            for language in LANGUAGES:
                ended = await run(language, await choose_code(page, name, door, language))
                assert ended.returncode == 0 and expected in ended.stdout, (name, door, language, ended)


async def test_the_code_logs_in_by_names_and_says_which_are_missing(secured: Playground, tmp_path: Path) -> None:
    async with logged_in(secured, tmp_path, "ml_full_access") as page:
        await show_models(page, "Alpha")
        calls = [(door, language) for door in DOORS for language in LANGUAGES]
        codes = {call: await choose_code(page, "Alpha", *call) for call in calls}
    assert not any(PASSWORD in code for code in codes.values())
    login = {"MLSTREAM_USER": "ml_predict_access", "MLSTREAM_PASSWORD": PASSWORD}
    for (door, language), code in codes.items():
        ended = await run(language, code, **login)
        expected = FIRST_WORD[door] if language == "curl" else TEXT
        assert ended.returncode == 0 and expected in ended.stdout.replace('": "', '":"'), (door, language, ended)
        without = await run(language, code)
        assert without.returncode != 0 and TEXT not in without.stdout
        assert "MLSTREAM_USER" in without.stderr or "User: " in without.stdout, without
