"""The programs of examples/ run as they stand."""

import subprocess
import sys
from pathlib import Path

import pytest
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import (
    Act,
    Request,
    Script,
    chunk,
    head,
    json_response,
    openai_delta,
    openai_stream,
)
from integration_tests.support.sidecars import Sidecar

EXAMPLES = Path(__file__).parents[2] / "examples"
QUESTION = "Why is the sky blue?"


def run(program: str, sidecar: Sidecar, model_id: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLES / program), f"--model={model_id}", "--sidecar", sidecar.url, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_every_program_has_a_test() -> None:
    tests = Path(__file__).parents[1].rglob("test_*.py")
    named = {text for test in tests for text in test.read_text("utf-8").split('"')}
    programs = [program.name for program in EXAMPLES.glob("*.py")]
    assert programs and [program for program in programs if program not in named] == []


def test_one_question_is_asked_again_after_the_time_that_the_provider_names(shared_sidecar: Sidecar) -> None:
    refusals = iter([json_response({"error": {"message": "slow down"}}, 429, retry_after="0")])
    with background_provider(lambda _: next(refusals, openai_stream(["Ray", "leigh"]))) as provider:
        ended = run("ask.py", shared_sidecar, shared_sidecar.create_model(openai(provider.url)), QUESTION)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[0] == "Rayleigh"
    assert ended.stdout.splitlines()[1].startswith("[stop, ")
    assert len(provider.requests) == 2


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (json_response({"error": "no"}, 500), "(status 424)"),
        (
            [head(content_type="text/event-stream", transfer_encoding="chunked"), chunk(openai_delta("a")), Act.CLOSE],
            "The response above is a part: ",
        ),
    ],
    ids=["failed", "cut"],
)
def test_a_question_without_a_whole_response_ends_with_the_reason(
    shared_sidecar: Sidecar, script: Script, message: str
) -> None:
    with background_provider(script) as provider:
        ended = run("ask.py", shared_sidecar, shared_sidecar.create_model(openai(provider.url)), QUESTION)
    assert ended.returncode == 1
    assert message in ended.stderr and "Traceback" not in ended.stderr


def test_several_questions_are_asked_at_once_and_one_fails_alone(shared_sidecar: Sidecar) -> None:
    def answer(request: Request) -> Script:
        question = request.json()["messages"][-1]["content"]
        return json_response({"error": "no"}, 500) if question == "b" else openai_stream([f"re: {question}"])

    with background_provider(answer) as provider:
        model_id = shared_sidecar.create_model(openai(provider.url))
        ended = run("ask_several.py", shared_sidecar, model_id, "a", "b", "c")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert [line.split(":")[0] for line in ended.stdout.splitlines()] == [
        "a",
        "    re",
        "b",
        "    failed",
        "c",
        "    re",
    ]
