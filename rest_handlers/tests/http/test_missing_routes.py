"""Routes that only ML Commons has are refused with a sentence, the ones that docs/ml-commons.md names."""

import re
from pathlib import Path

import pytest

from opensearch_ml_stream.rest_handlers.application import rest_application
from opensearch_ml_stream.rest_handlers.http.ml_commons_routes import ONLY_THERE, only_in_ml_commons
from tests.asgi_exchange import send_request

BASE = "/_plugins/_ml"
PAGE = (Path(__file__).parents[3] / "docs" / "ml-commons.md").read_text("utf-8").partition("\n## Not there\n")[2]
NAMED = [
    re.sub(r"\{\w+\}", "x", path)
    for line in PAGE.splitlines()
    if "`test_missing_routes.py`" in line
    for path in re.findall(r"`[A-Z, ]*(/[\w/{}]+)`", line)
]


def test_the_page_names_a_route_of_every_kind_and_none_that_is_there() -> None:
    sentences = [only_in_ml_commons(BASE + path) for path in NAMED]
    assert None not in sentences
    assert len(set(sentences)) == len(ONLY_THERE)


@pytest.mark.parametrize("path", [*NAMED, "/agents/", "/memory/m1/messages"])
async def test_a_route_that_only_ml_commons_has_says_so(path: str) -> None:
    exchange = await send_request(rest_application([]), "POST", BASE + path, {})
    assert exchange.status == 400
    text = exchange.json()["error"]
    assert text.startswith(f"no handler found for uri [{BASE}{path}] and method [POST]: ML Commons has ")
    assert text.endswith(", the sidecar does not; with --pass-through such requests go to the cluster")


@pytest.mark.parametrize("path", ["/agent", "/models/m1", "/models/m1/chunk", "/insights", "/_training", "/x/agents"])
def test_other_paths_are_not_ml_commons_alone(path: str) -> None:
    assert only_in_ml_commons(BASE + path) is None
    assert only_in_ml_commons("/agents") is None
