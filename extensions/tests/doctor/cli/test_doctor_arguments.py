"""What `doctor`, `record` and `replay` refuse before anything is called, and what they send."""

import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from opensearch_ml_stream.extensions.doctor.cli.diagnosis_target import QUESTION, read_target
from opensearch_ml_stream.plugin.cli.command_errors import WrongUsage
from tests.cli.conftest import Run
from tests.cli.in_memory_sidecar import InMemorySidecar

DIAGNOSE = ("POST", "/models/m1/_diagnose")
FAILED: dict[str, Any] = {
    "works": False,
    "steps": [
        {
            "name": "response",
            "verdict": "failed",
            "milliseconds": 3.2,
            "summary": "status 401 [bold]not mark-up[/bold]",
            "details": {},
            "advice": "Check the credential",
        }
    ],
}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("doctor",), "Name the id of a model"),
        (("doctor", "m1", "text", "--connector", "c.json"), "only one word may follow"),
        (("doctor", "--connector", "/nowhere/c.json"), "--connector: /nowhere/c.json cannot be read"),
        (("doctor", "m1", "--through", "ftp://x"), "--through must be of the form http://host:port"),
        (("doctor", "m1", "--url", "x"), "--url must be of the form http://host:port"),
        (("doctor", "m1", "--set", "x"), "--set must be of the form name=value"),
        (("record", "/nowhere/r.jsonl", "m1"), "there is no folder /nowhere"),
        (("replay", "/nowhere/r.jsonl"), "/nowhere/r.jsonl cannot be read"),
        (("replay", "/nowhere/r.jsonl", "--port", "70000"), "--port must be between 0 and 65535"),
        (("replay", "/nowhere/r.jsonl", "--speed", "-1"), "--speed must be 0 or a positive number"),
        (("replay", "/nowhere/r.jsonl", "--speed", "nan"), "--speed must be 0 or a positive number"),
    ],
)
def test_wrong_usage_is_exit_code_2(run: Run, sidecar: InMemorySidecar, arguments: tuple[str, ...], words: str) -> None:
    ended = run(*arguments)
    assert (ended.code, ended.stdout, sidecar.requests) == (2, "", [])
    assert words in ended.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [("{", "is not JSON (line 1, column 2)"), ("[]", "must hold a JSON object"), (" " * 1_048_577, "has more than")],
)
def test_a_file_that_is_no_connector_is_refused(run: Run, tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "c.json"
    file.write_text(content)
    ended = run("doctor", "--connector", str(file))
    assert ended.code == 2 and words in ended.stderr


def test_a_file_that_is_no_recording_is_refused(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    file.write_text("{}\n")
    ended = run("replay", str(file))
    assert ended.code == 2 and "This is no recording" in ended.stderr


def test_a_connector_has_no_way_through_a_proxy(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    file.write_text("{}")
    ended = run("doctor", "--connector", str(file), "--through", "http://proxy")
    assert ended.code == 2 and "--through needs the id of a model" in ended.stderr


@pytest.mark.parametrize(
    ("words", "pairs", "parameters"),
    [
        (("m1", None), None, {"inputs": QUESTION}),
        (("m1", "hi"), None, {"inputs": "hi"}),
        (("m1", None), ["inputs=hi"], {"inputs": "hi"}),
        (("m1", None), ["temperature=0"], {"inputs": QUESTION, "temperature": "0"}),
        (("m1", "hi"), ["max_tokens=5"], {"inputs": "hi", "max_tokens": "5"}),
    ],
)
def test_the_parameters_are_the_text_and_what_is_set(
    words: tuple[str, str | None], pairs: list[str] | None, parameters: dict[str, str]
) -> None:
    assert read_target(words, None, pairs).parameters == parameters


def test_without_a_model_the_first_word_is_the_text(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    file.write_text('{"name": "c"}')
    target = read_target(("hi", None), file, None)
    assert (target.model_id, target.connector, target.parameters) == (None, {"name": "c"}, {"inputs": "hi"})
    with pytest.raises(WrongUsage):
        read_target(("m1", "hi"), file, None)


def test_a_step_that_failed_is_shown_with_what_to_do_and_nothing_else_is_called(
    run: Run, sidecar: InMemorySidecar
) -> None:
    sidecar.responses[DIAGNOSE] = FAILED
    ended = run("doctor", "m1", "hi")
    assert (ended.code, ended.stderr, sidecar.calls()) == (1, "", [DIAGNOSE])
    assert sidecar.sent(0) == {"parameters": {"inputs": "hi"}, "record": False}
    assert ended.stdout.splitlines() == [
        "failed  response  3 ms  status 401 [bold]not mark-up[/bold]",
        "",
        "The provider's stream does not work, so nothing behind it was looked at.",
        "What to do",
        "-  response: Check the credential.",
    ]


def test_on_a_terminal_what_the_provider_said_is_text_and_is_obeyed_in_nothing(
    run: Run, sidecar: InMemorySidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = "<\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b\u202e:smile:>"
    details = {"headers": {"server": hostile}}
    sidecar.responses[DIAGNOSE] = {
        "steps": [{**FAILED["steps"][0], "summary": hostile, "advice": hostile, "details": details}]
    }
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    printed = run("doctor", "m1", "hi", COLUMNS="120", TERM="xterm").stdout
    assert printed.count("<:smile:>") == 3
    assert not any(unprintable in printed for unprintable in ("\x1b]", "\x1b[2J", "\x07", "\x9b", "\u202e"))


def test_what_failed_without_any_advice_is_never_said_to_work(run: Run, sidecar: InMemorySidecar) -> None:
    step = {"name": "template", "verdict": "failed", "milliseconds": 1, "summary": "no JSON", "details": {}}
    sidecar.responses[DIAGNOSE] = {"steps": [step]}
    ended = run("doctor", "m1", "hi")
    assert ended.code == 1
    assert ended.stdout.splitlines()[-2:] == [
        "The provider's stream does not work, so nothing behind it was looked at.",
        "See what failed, above.",
    ]


def test_the_ways_are_called_with_the_parameter_that_the_text_went_to(run: Run, sidecar: InMemorySidecar) -> None:
    parameters = {"messages": '[{"role":"user","content":"hi"}]'}
    ok = {"verdict": "ok", "milliseconds": 1, "summary": "", "details": {}}
    steps = [{**ok, "name": "template", "details": {"parameters": parameters}}, {**ok, "name": "end"}]
    stream = {"reads": [[1, 5]], "chunks": [1], "status": 200, "headers": {}, "outcome": {}}
    sidecar.responses[DIAGNOSE] = {"steps": steps, "stream": stream}
    run("doctor", "m1", "hi")
    path = ("POST", "/models/m1/_predict/stream")
    assert [sidecar.sent(place) for place, call in enumerate(sidecar.calls()) if call == path] == [
        {"parameters": parameters}
    ] * 2


def test_an_id_may_begin_with_a_dash(run: Run, sidecar: InMemorySidecar) -> None:
    run("doctor", "-aIEINFHROSoUKzRo3WT")
    run("record", "r.jsonl", "-aIEINFHROSoUKzRo3WT")
    assert sidecar.calls() == [("POST", "/models/-aIEINFHROSoUKzRo3WT/_diagnose")] * 2


def test_a_sidecar_of_before_is_told(run: Run, sidecar: InMemorySidecar) -> None:
    sidecar.responses[DIAGNOSE] = {"hello": 1}
    ended = run("doctor", "m1")
    assert ended.code == 1 and "not a diagnosis report" in ended.stderr


def test_nothing_is_recorded_where_nothing_came(run: Run, sidecar: InMemorySidecar, tmp_path: Path) -> None:
    sidecar.responses[DIAGNOSE] = {**FAILED, "no_recording": "no response came"}
    ended = run("record", str(tmp_path / "r.jsonl"), "m1")
    assert (ended.code, list(tmp_path.glob("*.jsonl"))) == (1, [])
    assert "Nothing was recorded: status 401" in ended.stderr and "; Check the credential" in ended.stderr
    assert sidecar.sent(0)["record"] is True


def test_a_redirect_on_the_way_is_no_response(run: Run, sidecar: InMemorySidecar) -> None:
    sidecar.responses[DIAGNOSE] = httpx.Response(301, headers={"location": "https://elsewhere"})
    ended = run("doctor", "m1")
    assert ended.code == 1 and "redirects to https://elsewhere" in ended.stderr
