"""The benchmark's provider and load generator measured against each other, and the pages made of its results."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest
from bench.__main__ import GROWTH, REQUESTS
from bench.relays.processes import tree_usage
from bench.report import page, table
from bench.report.plot import plot
from bench.runs.profiles.profiling import FILES, first_match, place_of_sample
from bench.runs.rounds import Results, medians
from bench.traffic.load import LoadPlan, measure
from bench.traffic.provider import serving
from bench.traffic.stream_forms import ANTHROPIC, OPENAI, PADDED, StreamForm
from bench.traffic.stream_plan import MARKER, StreamPlan, plan_in
from integration_tests.support.fake_provider import Act, FakeProvider, Step

RESULTS: Results = {
    "direct": {"first": {"first_ms_p50": 0.1}},
    "sidecar": {
        "first": {"first_ms_p50": 0.35},
        "paced": {"chunks_per_cpu_second": 31_234.0, "errors": 1},
        "many": {"added_ms_p50": 0.5, "added_ms_p99": 8.0, "errors": 2},
    },
    "nginx": {"paced": {"chunks_per_cpu_second": 62_468.0}},
}


def load_plan(port: int, stream: StreamPlan, **fields: Any) -> LoadPlan:
    plan = LoadPlan("127.0.0.1", port, "/v1/chat/completions", stream.prompt(), "[DONE]", stream.chunks, 1, timeout=50)
    return replace(plan, **fields)


async def run_load(stream: StreamPlan, **fields: Any) -> tuple[dict[str, Any], dict[str, int]]:
    """The load's report, and what the provider counted."""
    async with serving(0) as server:
        port = server.sockets[0].getsockname()[1]
        report = await measure(load_plan(port, stream, **fields))
        async with httpx.AsyncClient() as client:
            counts = (await client.get(f"http://127.0.0.1:{port}/stats")).json()
    return report, counts


@pytest.mark.parametrize(
    "stream",
    [
        StreamPlan(7),
        StreamPlan(7, every=0.001),
        StreamPlan(3, piece=1),
        StreamPlan(3, text=200_000),
        StreamPlan(5000, text=300),
    ],
    ids=["bulk", "paced", "byte by byte", "large chunks", "more than the socket holds"],
)
async def test_every_chunk_that_the_provider_sends_is_found_once(stream: StreamPlan) -> None:
    report, counts = await run_load(stream, connections=4, streams=8)
    assert report["errors"] == {}
    assert report["streams"] == counts["finished"] == 8
    assert report["chunks"] == counts["chunks"] == 8 * stream.chunks
    assert report["first_ms"]["p50"] > 0


async def test_a_paced_stream_takes_its_time() -> None:
    report, _ = await run_load(StreamPlan(11, every=0.01), streams=1)
    assert report["seconds"] >= 0.1


async def test_a_load_of_some_seconds_ends_after_them() -> None:
    report, _ = await run_load(StreamPlan(10), connections=2, seconds=0.1)
    assert report["streams"] > 0
    assert report["seconds"] >= 0.1


async def test_what_runs_on_after_a_hang_up_is_counted() -> None:
    report, counts = await run_load(StreamPlan(5000, every=0.002), connections=2, streams=4, cancel_after=3)
    assert report["cancelled"] == counts["disconnected"] == 4
    assert 12 <= report["chunks"] <= counts["chunks"] < 10_000
    assert counts["most_chunks_disconnected"] >= 3


def _response(*chunks: bytes, status: bytes = b"200 OK") -> list[Step]:
    head = b"HTTP/1.1 " + status + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
    return [head + b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"]


A, B = (b"~%06dt%019d~" % (number, 1) for number in (0, 1))


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (_response(A, b"[DONE]"), "chunks missing"),
        (_response(B, A, b"[DONE]"), "chunks out of order"),
        (_response(A, B), "end not marked"),
        (_response(A, B, b"[DONE]", status=b"424 Failed Dependency"), "status 424"),
        ([*(step[:-5] for step in _response(A, B) if isinstance(step, bytes)), Act.CLOSE], "connection closed early"),
        ([b"SSH-2.0\r\n\r\n", Act.CLOSE], "not HTTP"),
    ],
)
async def test_a_stream_that_is_not_whole_counts_as_failed(script: list[Step], error: str) -> None:
    async with FakeProvider(script) as provider:
        report = await measure(load_plan(provider.port, StreamPlan(2), streams=1))
    assert report["errors"] == {error: 1}
    assert report["streams"] == 0


async def test_a_marker_cut_in_two_by_the_relay_is_found() -> None:
    async with FakeProvider(_response(A[:9], A[9:] + B[:1], B[1:], b"[DONE]")) as provider:
        report = await measure(load_plan(provider.port, StreamPlan(2), streams=1))
    assert (report["errors"], report["chunks"]) == ({}, 2)


def test_a_plan_survives_its_way_through_a_prompt() -> None:
    plan = StreamPlan(12, 0.4, 64, 1)
    assert plan_in(json.dumps({"messages": [{"content": plan.prompt()}]}).encode()) == plan
    assert plan_in(b"{}") is None


@pytest.mark.parametrize("text", [28, 30, 1000])
@pytest.mark.parametrize("form", [OPENAI, PADDED, ANTHROPIC], ids=["OpenAI", "padded", "Anthropic"])
def test_a_chunk_holds_a_text_of_the_planned_length(form: StreamForm, text: int) -> None:
    for chunk in form.chunks(text):
        size, _, rest = (chunk % (3, 17)).partition(b"\r\n")
        assert len(rest) == int(size, 16) + 2
        payload = json.loads(rest.partition(b"data: ")[2])
        content = payload["delta"]["text"] if form is ANTHROPIC else payload["choices"][0]["delta"]["content"]
        assert len(content) == text
        match = MARKER.match(content.encode())
        assert match is not None
        assert (int(match[1]), int(match[2])) == (3, 17)


def test_the_padding_of_padded_events_changes() -> None:
    paddings = [json.loads((chunk % (0, 0)).partition(b"data: ")[2])["obfuscation"] for chunk in PADDED.chunks(30)]
    assert len(set(paddings)) == len(paddings) > 1


def test_the_usage_of_a_process_tree_is_that_of_the_process_and_its_children() -> None:
    own = tree_usage(os.getpid())
    assert own.rss_bytes > 1_000_000
    assert own.cpu_seconds > own.kernel_seconds


def test_medians_are_taken_metric_by_metric() -> None:
    assert medians([{"a": 1, "b": 5}, {"a": 9}, {"a": 2}]) == {"a": 2, "b": 5}


def test_the_table_shows_what_was_measured_and_no_more() -> None:
    rows = table.systems_table(RESULTS).splitlines()
    cells = [cell.strip() for cell in rows[3].split("|")[1:-1]]
    assert cells == ["**this sidecar**", "31,200", "-", "0.25", "0.5 / 8", "-", "-", "-", "3"]
    assert len({len(row) for row in rows}) == 1
    assert "0.5 x" in table.ratios_table(RESULTS)


def test_the_plot_is_well_formed_and_names_every_system() -> None:
    drawing = plot(RESULTS, "a < b")
    ElementTree.fromstring(drawing)
    assert all(name in drawing for name in ("this sidecar", "nginx", "a &lt; b", "31,200"))


def test_a_generated_part_of_a_page_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text("a\n<!-- bench:x -->\nold\n<!-- /bench -->\nb\n<!-- bench:y -->\n<!-- /bench -->\n")
    assert page.fill(file, "x", "new \\1\n")
    assert not page.fill(file, "z", "nowhere")
    assert file.read_text() == "a\n<!-- bench:x -->\nnew \\1\n<!-- /bench -->\nb\n<!-- bench:y -->\n<!-- /bench -->\n"


def test_every_generated_part_has_its_marks_in_the_page() -> None:
    text = page.PAGE.read_text()
    for name in ("table", "profile", "profile-requests", "soak", *REQUESTS, *GROWTH):
        assert text.count(f"<!-- bench:{name} -->\n") == 1


@pytest.mark.parametrize(
    ("part_of", "sample", "part"),
    [
        (place_of_sample, "1 copy ([kernel.kallsyms])\n2 __x64_sys_sendto ([kernel.kallsyms])", "kernel: write"),
        (place_of_sample, "1 llhttp (/x/python3.11/site-packages/httptools/parser/p.so)", "HTTP parse"),
        (place_of_sample, "1 eval (/usr/bin/python3.11)", "Python"),
        (place_of_sample, "1 malloc (/lib/x86_64-linux-gnu/libc.so.6)", "C library"),
        (lambda leaf: first_match(FILES, leaf), "SSEFraming.feed (connectors/decoding/sse.py:40)", "SSE parse"),
        (lambda leaf: first_match(FILES, leaf), "Runner.run (asyncio/runners.py:118)", "event loop"),
    ],
)
def test_a_profilers_sample_counts_for_the_part_it_was_taken_in(
    part_of: Callable[[str], str], sample: str, part: str
) -> None:
    assert part_of(sample).startswith(part)
