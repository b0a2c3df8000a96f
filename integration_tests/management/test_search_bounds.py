"""Searches that would take long, by HTTP: each is refused by name, whatever is searched."""

from collections.abc import Mapping
from typing import Any

import pytest
from integration_tests.support.sidecars import Sidecar

KINDS = ["connectors", "models", "model_groups", "tasks"]
WORDS = " ".join(f"w{number}" for number in range(1_000))
FIELDS = [f"f{number}" for number in range(1_000)]
REFUSED: list[tuple[Mapping[str, Any], str]] = [
    ({"query": {"query_string": {"query": WORDS, "fields": FIELDS}}}, "too_many_clauses"),
    ({"query": {"bool": {"should": [{"match_phrase": {"name": f"a {name}"}} for name in FIELDS]}}}, "too_many_clauses"),
    ({"query": {"match_phrase": {"name": f"{WORDS} {WORDS}"}}}, "too_many_clauses"),
    ({"query": {"exists": {"field": "." * 60_000}}}, "illegal_argument_exception"),
    ({"sort": FIELDS}, "illegal_argument_exception"),
    ({"aggs": {name: {"terms": {"field": "name.keyword"}} for name in FIELDS}}, "illegal_argument_exception"),
    ({"query": {"term": {"_id": ["x"]}}}, "illegal_argument_exception"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_that_would_take_long_is_refused_by_name(shared_sidecar: Sidecar, kind: str) -> None:
    for body, expected in REFUSED:
        response = shared_sidecar.client.post(f"/_plugins/_ml/{kind}/_search", json=body)
        assert (response.status_code, response.json()["error"]["type"]) == (400, expected)


def test_a_field_of_many_parts_is_looked_for(shared_sidecar: Sidecar) -> None:
    body = {"query": {"exists": {"field": "." * 20_000}}}
    response = shared_sidecar.client.post("/_plugins/_ml/connectors/_search", json=body)
    assert (response.status_code, response.json()["hits"]["hits"]) == (200, [])
