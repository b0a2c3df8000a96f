"""Chunks, alone and as a run of texts, and what an ending counts."""

import pytest

from opensearch_ml_stream.connectors.chunks import FINISH_REASONS, Chunk, TextRun, ToolCall, Usage, to_chunk_list


@pytest.mark.parametrize(
    ("run", "texts"),
    [
        (b"a", ["a"]),
        (b"a\0b\0c", ["a", "b", "c"]),
        (b'\\u00e9\\n\0 \0\\"\0\\\\', ["\u00e9\n", " ", '"', "\\"]),
        ("\u00e9\0\U0001f600".encode(), ["\u00e9", "\U0001f600"]),
    ],
)
def test_a_run_of_texts_is_a_chunk_for_each(run: bytes, texts: list[str]) -> None:
    assert TextRun(run).length == len(texts)
    assert to_chunk_list(TextRun(run)) == [Chunk(text) for text in texts]
    assert TextRun(run).to_texts() == [text.encode() for text in texts]


def test_a_list_of_chunks_stays_as_it_is() -> None:
    chunks = [Chunk("a"), Chunk(reasoning="b")]
    assert to_chunk_list(chunks) is chunks


def test_a_fragment_of_a_tool_call_has_its_id_and_name_where_it_begins() -> None:
    assert ToolCall(1, "i", "f").as_dict() == {"index": 1, "id": "i", "name": "f", "arguments": ""}
    assert ToolCall(0, arguments="{}").as_dict() == {"index": 0, "arguments": "{}"}


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        (Usage(), {}),
        (Usage(0, 0), {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}),
        (Usage(2, 3), {"input_tokens": 2, "output_tokens": 3, "total_tokens": 5}),
        (Usage(2, 3, 9), {"input_tokens": 2, "output_tokens": 3, "total_tokens": 9}),
        (Usage(2), {"input_tokens": 2}),
        (Usage(output_tokens=3), {"output_tokens": 3}),
        (Usage(cached_tokens=1, reasoning_tokens=0), {"cached_tokens": 1, "reasoning_tokens": 0}),
        (Usage(cache_write_tokens=2), {"cache_write_tokens": 2}),
    ],
)
def test_a_total_is_added_where_both_of_its_parts_are_there(usage: Usage, counts: dict[str, int]) -> None:
    assert usage.as_dict() == counts


def test_the_finish_reasons_are_those_of_the_readme() -> None:
    assert FINISH_REASONS == ("stop", "length", "tool_calls", "content_filter", "error")
