"""The commands of docs/openai-and-anthropic-apis.md, pasted as they stand, against a demo.

Its programs are run in `interop/chat_clients`.
"""

import json
from pathlib import Path

import pytest
from integration_tests.cli.demo_process import Demo
from integration_tests.server.runtimes.pages.pasted_pages import Reader, blocks_of

PAGE = "openai-and-anthropic-apis.md"
TESTED = ("/v1/chat/completions", "/v1/messages", "eval ", "drop_params")


@pytest.fixture
def reader(demo: Demo, tmp_path: Path) -> Reader:
    return Reader(tmp_path, PAGE, {"http://127.0.0.1:9510": demo.url})


def test_every_block_of_the_page_has_a_test_and_fits_a_terminal() -> None:
    blocks = blocks_of(PAGE)
    assert len(blocks) == len(TESTED)
    assert [block for block in blocks if not any(words in block for words in TESTED)] == []
    assert [line for block in blocks for line in block.splitlines() if len(line) > 80] == []


@pytest.mark.programs("curl")
def test_the_first_command_shows_a_stream_of_openais_chunks(reader: Reader) -> None:
    events = reader.paste(TESTED[0]).strip().split("\n\n")
    assert events[-1] == "data: [DONE]"
    assert json.loads(events[0].removeprefix("data: "))["object"] == "chat.completion.chunk"


@pytest.mark.programs("curl")
def test_the_second_command_shows_a_stream_of_anthropics_events(reader: Reader) -> None:
    shown = reader.paste(TESTED[1])
    assert shown.startswith("event: message_start\n")
    assert shown.rstrip().endswith('{"type":"message_stop"}')


def test_the_variables_are_set(reader: Reader, demo: Demo) -> None:
    block = reader.block("eval ") + '\nprintf "%s|" "$OPENAI_BASE_URL" "$OPENAI_MODEL" "$ANTHROPIC_BASE_URL"'
    assert reader.run(block, MLSTREAM_URL=demo.url) == f"{demo.url}/v1|Demo of openai-chat|{demo.url}|"


@pytest.mark.programs("curl")
def test_a_model_is_told_what_to_leave_out(reader: Reader, demo: Demo) -> None:
    assert '"result":"updated"' in reader.paste(TESTED[3], MLSTREAM_URL=demo.url)
