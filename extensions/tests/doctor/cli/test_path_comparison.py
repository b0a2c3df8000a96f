"""What is said of timelines, without any call: the times are written here."""

from dataclasses import replace

import pytest

from opensearch_ml_stream.extensions.doctor.cli.path_comparison import End, Finding, PathTimeline, compare, merge

STEADY = tuple(100.0 + 40 * number for number in range(20))  # 100 to 860 ms


def timeline(*chunks: float, end_ms: float = 900.0, end: End = "complete", last_read: float = 0.0) -> PathTimeline:
    times = (*chunks, last_read) if last_read else chunks
    return PathTimeline("proxy", "SSE", end, end_ms, 200, {}, tuple((time, 50) for time in times), chunks)


SIDECAR = replace(timeline(*STEADY), place="sidecar")


def found(further: PathTimeline, nearer: PathTimeline = SIDECAR) -> Finding:
    (finding,) = compare(nearer, further)
    return finding


def test_a_stream_that_arrives_as_it_was_sent_has_no_finding() -> None:
    assert compare(SIDECAR, timeline(*STEADY)) == []
    assert compare(SIDECAR, timeline(*(time + 300 for time in STEADY), end_ms=1200)) == []


def test_a_few_joined_reads_are_no_buffering() -> None:
    assert compare(SIDECAR, timeline(*STEADY[::2])) == []


def test_text_that_comes_at_the_end_alone_is_held_back() -> None:
    finding = found(timeline(880.0, 881.0))
    assert (finding.kind, finding.verdict, finding.place) == ("buffers", "failed", "proxy")
    assert finding.summary == (
        "holds the text back until the end: the first came after 0.88 s of 0.90 s, from the sidecar after 0.10 s"
    )
    assert "proxy_buffering" in finding.advice


def test_text_that_comes_in_bunches_is_told_with_the_gaps() -> None:
    finding = found(timeline(300.0, 580.0, 860.0))
    assert finding.kind == "buffers"
    assert finding.summary == (
        "sends the text in bunches: 3 arrivals, longest gap 0.28 s; from the sidecar 20, longest gap 0.04 s"
    )


@pytest.mark.parametrize("chunks", [STEADY[:4], tuple(100.0 + number for number in range(200)), ()])
def test_a_stream_too_short_to_tell_is_not_said_to_be_buffered(chunks: tuple[float, ...]) -> None:
    assert compare(replace(timeline(*chunks), place="sidecar"), timeline(880.0)) == []


def test_reads_of_one_moment_are_one_arrival() -> None:
    assert timeline(10.0, 12.0, 16.0, 30.0).arrivals == (10.0, 30.0)


def test_compression_is_a_warning_if_the_nearer_place_does_not_do_it() -> None:
    compressed = replace(timeline(*STEADY), headers={"content-encoding": "gzip"})
    finding = found(compressed)
    assert (finding.kind, finding.verdict) == ("compresses", "warning")
    assert "with gzip" in finding.summary
    assert compare(compressed, compressed) == []


def test_a_cut_in_the_middle_of_the_text_is_a_limit_of_the_whole_response() -> None:
    finding = found(timeline(*STEADY[:5], end_ms=270.0, end="cut"))
    assert finding.kind == "cuts"
    assert finding.summary == "cuts the response after 0.27 s, while text was arriving"
    assert "timeout: 0s" in finding.advice


def test_a_response_that_does_not_end_is_no_good_one() -> None:
    finding = found(timeline(*STEADY, end_ms=150_000.0, end="too long"))
    assert (finding.kind, finding.verdict) == ("unfinished", "failed")
    assert finding.summary == "has not ended after 150.00 s"


def test_a_cut_after_a_silence_is_a_limit_of_silence() -> None:
    finding = found(timeline(100.0, 140.0, end_ms=5150.0, end="cut"))
    assert finding.summary == "cuts the response after 5.15 s, 5.01 s of them silent"
    assert "heartbeat_seconds" in finding.advice


def test_heartbeats_are_no_silence() -> None:
    assert found(timeline(100.0, end_ms=5150.0, end="cut", last_read=5000.0)).summary.endswith("text was arriving")


@pytest.mark.parametrize(
    ("end", "kind", "words"),
    [
        ("refused", "refuses", "responds with status 200: why"),
        ("unreachable", "unreachable", "cannot be reached: why"),
        ("error", "fails", "ends with an error: why"),
    ],
)
def test_other_ends_are_told_with_their_reason(end: End, kind: str, words: str) -> None:
    finding = found(replace(timeline(end=end), reason="why"))
    assert (finding.kind, finding.summary) == (kind, words)


def test_a_request_that_arrived_twice_was_retried() -> None:
    finding = found(replace(timeline(*STEADY), received=2))
    assert finding.kind == "retries"
    assert "2 times" in finding.summary
    assert compare(SIDECAR, replace(timeline(*STEADY), received=1)) == []


def test_the_sidecars_own_way_gets_another_advice_for_buffering() -> None:
    provider = replace(SIDECAR, place="provider", wire_format=None)
    finding = found(replace(timeline(880.0), place="sidecar"), provider)
    assert "output guardrails" in finding.advice


def test_the_same_finding_of_both_formats_is_told_once() -> None:
    cut = timeline(100.0, end_ms=5000.0, end="cut")
    findings = [*compare(SIDECAR, cut), *compare(SIDECAR, replace(cut, wire_format="NDJSON"))]
    (merged,) = merge(findings)
    assert merged.formats == ("SSE", "NDJSON")
    assert merge([*compare(SIDECAR, replace(cut, place="sidecar")), *findings])[0].place == "sidecar"


def test_a_timeline_as_json_has_rounded_times() -> None:
    document = timeline(100.04).to_json()
    assert (document["chunks"], document["reads"], document["end"]) == ([100.0], [[100.0, 50]], "complete")
