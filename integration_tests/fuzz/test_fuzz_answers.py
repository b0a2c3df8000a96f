"""Any answer behind each door: the client's SDK reads what it says, in whatever order it comes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from integration_tests.fuzz.bounds import TIMEOUT_SECONDS, tries

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending, TextRun, ToolCall, Usage, to_chunk_list
from tests.client_dialects.test_recorded_answers import CLIENTS, Client, value_of
from tests.providers.recorded_streams import join_chunks

pytestmark = pytest.mark.timeout(TIMEOUT_SECONDS)

_TEXTS = st.sampled_from(["a", "b\n", '"', "é", "\u2028"])
_ARGUMENTS = st.sampled_from([['{"q":', "1}"], ["{}", ""], ["", ""]])
_PLAIN: st.SearchStrategy[Chunks] = st.one_of(
    _TEXTS.map(lambda text: [Chunk(text)]),
    _TEXTS.map(lambda text: [Chunk(reasoning=text)]),
    st.just([Chunk(signature="s")]),
    st.just(TextRun(b"x\0y")),
)
_USAGE = Usage(10, 5, cached_tokens=4, cache_write_tokens=3)


@st.composite
def answers(draw: st.DrawFn) -> list[Chunks]:
    """Texts, reasoning, proofs and up to two calls, whose pieces come in between; each call is whole at the end."""
    reads: list[Chunks] = []
    waiting = {index: draw(_ARGUMENTS)[:] for index in range(draw(st.integers(0, 2)))}
    named: set[int] = set()

    def piece(index: int) -> Chunk:
        name = None if index in named else f"f{index}"
        id = draw(st.sampled_from([None, f"id{index}"])) if name else None
        named.add(index)
        return Chunk(tool_calls=(ToolCall(index, id, name, waiting[index].pop(0)),))

    for _ in range(draw(st.integers(0, 8))):
        calls = [index for index, pieces in waiting.items() if pieces]
        if draw(st.booleans()) and calls:
            reads.append([piece(draw(st.sampled_from(calls)))])
        else:
            reads.append(draw(_PLAIN))
    return [*reads, *([piece(index)] for index, pieces in waiting.items() for _ in pieces[:])]


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.dialect)
@tries(300)
@given(answers(), st.sampled_from(["stop", "length", "content_filter"]))
def test_any_answer_is_read_as_it_was_said(client: Client, reads: list[Chunks], finish: str) -> None:
    wire = client.wire()
    reading = client.read(b"".join(wire.chunks(read) for read in reads) + wire.ending(Ending(finish, usage=_USAGE), {}))
    text, reasoning, calls = join_chunks([chunk for read in reads for chunk in to_chunk_list(read)])
    assert (reading.text, reading.reasoning) == (text, reasoning)
    assert {name: value_of(arguments) for _, name, arguments in reading.tools} == {
        call["name"]: value_of(call["arguments"]) for call in calls
    }
    assert reading.usage == {"input_tokens": 10, "output_tokens": 5}
