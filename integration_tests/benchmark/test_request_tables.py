"""The tables of whole requests, and the division of a request's CPU time into steps."""

from xml.etree import ElementTree

import pytest
from bench.report import table
from bench.report.plot import plot
from bench.runs.requests.request_profile import STEPS, divide, profile_table, step_of
from bench.runs.requests.whole_requests import CONNECTIONS
from bench.runs.rounds import Results
from bench.traffic.whole_bodies import CHAT, EMBEDDING

RESULTS: Results = {
    "direct": {"first": {"first_ms_p50": 0.1}},
    "sidecar": {"paced": {"chunks_per_cpu_second": 30_000, "errors": 1}, "bulk": {"chunks_per_cpu_second": 250_000}},
    "nginx": {"paced": {"chunks_per_cpu_second": 60_000}, "bulk": {"chunks_per_cpu_second": 500_000}},
    "tensorzero": {"bulk": {"chunks_per_cpu_second": 125_000}},
}
CHATS: list[tuple[str, dict[str, float]]] = [
    ("sidecar", {"per_cpu_second": 13_123, "added_ms_p50": 0.21, "errors": 2}),
    ("nginx", {"errors": 0}),
]
VECTORS: list[tuple[str, dict[str, float]]] = [("sidecar", {"per_cpu_second": 11_456, "errors": 0, "errors_8": 4})]


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.split("|")[1:-1]]


def test_the_plot_has_panels_of_requests() -> None:
    drawing = plot(RESULTS, "note", CHATS, VECTORS)
    ElementTree.fromstring(drawing)
    assert all(text in drawing for text in ("Chat requests", "13,100", "11,500"))
    assert "500,000" not in drawing


def test_rows_of_several_runs_say_which_is_whose() -> None:
    assert table.runs_of([("sidecar", "today"), ("nginx", "today")]) == "today."
    runs = table.runs_of([("sidecar", "today"), ("litellm", "yesterday"), ("smg", "today")])
    assert runs == "this sidecar, SMG (bytes only): today. LiteLLM proxy: yesterday."


def test_bulk_is_compared_with_relays_that_translate_alone() -> None:
    ratios = [_cells(row) for row in table.ratios_table(RESULTS).splitlines()[2:]]
    assert ratios == [["nginx (bytes only)", "0.5 x", "-"], ["TensorZero", "-", "2 x"]]
    nginx = next(row for row in table.systems_table(RESULTS).splitlines() if "nginx" in row)
    assert "500,000" not in nginx


def test_every_system_that_can_be_measured_has_a_title() -> None:
    rows = table.requests_table([(name, {"us": 75.0}) for name in table.TITLES], (("µs", "us"),))
    assert rows.count("75") == len(table.TITLES)
    assert CONNECTIONS > 1


@pytest.mark.parametrize(
    ("stack", "step"),
    [
        ("main (app.py:1);Runner.run (asyncio/runners.py:118)", "accept, wait for events"),
        ("StreamingProtocol.data_received (plugin/server/http1/protocol.py:9)", "parse"),
        ("RequestCycle.run (plugin/server/http1/request_cycle.py:9);Router.app (starlette/routing.py:7)", "route"),
        ("Predictor.predict (plugin/predictions/predictor.py:1);loads (json/__init__.py:3)", "tasks and the"),
        (
            "f (connectors/rendering/template.py:1);g (connectors/syntax/jsontext.py:2);_match (re2/__init__.py:1)",
            "temp",
        ),
        ("read_response (connectors/predict/post_process.py:2);check (connectors/syntax/jsontext.py:2)", "decode"),
        ("Redactor.body (plugin/credentials/redaction.py:2);_Regexp._match (re2/__init__.py:9)", "redaction"),
        ("Exchange.start (plugin/upstream/http1/exchange.py:5)", "upstream"),
        ("RequestCycle._write (plugin/server/http1/request_cycle.py:5)", "write"),
    ],
)
def test_a_sample_counts_for_the_step_of_the_innermost_frame_that_has_one(stack: str, step: str) -> None:
    assert step_of(stack).startswith(step)


def test_the_steps_share_the_cost_and_threads_that_wait_have_no_part() -> None:
    raw = (
        "a (app.py);b (plugin/upstream/x.py:1) 3\na (app.py);c (rest_handlers/http/responses.py:2) 1\n"
        "t (threading.py:1);_worker (concurrent/futures/thread.py:81) 96\n"
    )
    assert divide(raw, 80) == {"upstream": 60, "encode": 20}


def test_the_profile_has_a_row_a_step_and_shows_what_was_not_measured_as_such() -> None:
    text = profile_table({"before": {CHAT: {"upstream": 60.0, "encode": 20.0}, EMBEDDING: {}, "conditions": "x"}})
    rows = {cells[0]: cells[1:] for cells in map(_cells, text.splitlines())}
    assert rows["upstream"] == ["60", "-", "-", "-"]
    assert rows["**in all**"] == ["80", "-", "-", "-"]
    assert len(rows) == len(STEPS) + 3
