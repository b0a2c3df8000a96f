"""Search for search bodies that take longer than their size and their counted steps allow."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.plugin.registry.search import search
from opensearch_ml_stream.plugin.store import Document, Index, sqlite_search
from opensearch_ml_stream.plugin.store.sqlite_search_bounds import SearchWork
from tests.slow_inputs.derivations import Grammar
from tests.slow_inputs.search import Subject, check

pytestmark = pytest.mark.slow

_STEPS = 40_000  # of half a microsecond; the rest of 50 ms is for what reads the body and shapes the response
_BODY: Grammar = {
    "body": ["{<parts>}", '{"query":<query>}', '{"size":0,"aggs":{<aggs>}}', '{"sort":[<sorts>]}'],
    "parts": ["<part>", "<parts>,<parts>"],
    "part": [
        '"query":<query>', '"aggs":{<aggs>}', '"sort":[<sorts>]', '"sort":<sort>', '"from":1', '"size":<number>',
        '"_source":[<names>]', '"_source":{"excludes":[<names>]}', '"track_total_hits":<value>', '"version":true',
    ],
    "query": [
        '{"match_all":{}}', '{"term":{<pair>}}', '{"term":{<field>:{"value":<value>}}}',
        '{"terms":{<field>:[<values>]}}',
        '{"match":{<field>:<text>}}', '{"match":{<field>:{"query":<text>,"operator":"and"}}}',
        '{"match_phrase":{<field>:<text>}}', '{"prefix":{<field>:<text>}}', '{"wildcard":{<field>:<text>}}',
        '{"wildcard":{<field>:{"value":<text>,"case_insensitive":true}}}', '{"range":{<field>:{<limits>}}}',
        '{"ids":{"values":[<values>]}}', '{"exists":{"field":<field>}}', '{"nested":{"path":"user","query":<query>}}',
        '{"bool":{<clauses>}}', '{"query_string":{"query":<text>,"fields":[<names>]}}',
    ],
    "clauses": ['"<occurs>":[<queries>]', '"<occurs>":<query>', "<clauses>,<clauses>", '"minimum_should_match":2'],
    "occurs": ["must", "filter", "should", "must_not"],
    "queries": ["<query>", "<queries>,<queries>"],
    "pair": ["<field>:<value>"],
    "limits": ['"<limit>":<value>', "<limits>,<limits>", '"format":<format>'],
    "limit": ["gt", "gte", "lt", "lte"],
    "format": ['"yyyy-MM-dd"', '"epoch_second||strict_date"', '"<letters>"'],
    "letters": ["yyyy", "MM", "-", "||", "'a'", "x", "<letters><letters>"],
    "aggs": ['"<name>":{"terms":{<terms>}}', '"<name>":{"terms":{<terms>},"aggs":{<aggs>}}',
             '"<name>":{"top_hits":{"size":<number>,"sort":[<sorts>],"_source":[<names>]}}', "<aggs>,<aggs>"],
    "terms": ['"field":<field>', '"field":<field>,"size":<number>,"order":{"_key":"desc"}'],
    "sorts": ["<sort>", "<sorts>,<sorts>"],
    "sort": ["<field>", "{<field>:<order>}", '{<field>:{"order":"desc","unmapped_type":"long"}}', '"_score"'],
    "order": ['"asc"', '"desc"'],
    "names": ["<field>", '"<words>*"', "<names>,<names>"],
    "field": ['"name"', '"name.keyword"', '"description"', '"created_time"', '"user.name"', '"is_hidden"',
              '"connector.parameters.<name>"', '"version"', '"<path>"', '"_id"'],
    "path": ["<name>", "<path>.<path>", "<path>.keyword", "<path>.", "."],
    "name": ["a", "b", "user", "x<name>"],
    "values": ["<value>", "<values>,<values>"],
    "value": ["<number>", "<text>", "true", "null", '"<moment>"', "1e400", "{}"],
    "moment": ["now", "2024-01-01", "1700000000000", "2024-01-01T10:11:12.013Z", "<moment><maths>", "<moment>||"],
    "maths": ["+1d", "-1M", "/w", "+9999999y", "<maths><maths>"],
    "number": ["0", "1", "100", "10000", "<number>7"],
    "text": ['"<words>"'],
    "words": ["one", "a", "*", "?", " ", r"\"", "AND", "NOT", "-", r"\\", "é", "<words><words>", "<words> <words>"],
}  # fmt: skip
_SOURCE: Mapping[str, Any] = {
    "description": "one of a few " * 50,
    "user": [{"name": "ann"}, {"name": "bob"}],
    "connector": {"parameters": {"a": "one", "xa": ["two"] * 20}, "credential": {"key": "cipher text"}},
    "version": 7,
    "a": {"b": [{"a": "one"}] * 10},
}
_DOCUMENTS = [
    Document(str(number), {**_SOURCE, "name": f"one {number}", "created_time": 10**12 + number}, 1, number, 1)
    for number in range(40)
]


class _Store:
    async def search_for_caller(self, index: Index, body: Mapping[str, Any]) -> dict[str, Any]:
        return sqlite_search.search(index, "models", _DOCUMENTS, body, SearchWork(_STEPS))


def _search(body: str) -> None:
    parsed = jsontext.load_object(body.encode("utf-8", "surrogatepass"))
    asyncio.run(search(_Store(), Index.MODEL, parsed, ["connector.credential"], {"exists": {"field": "name"}}))


def _search_for(field: str) -> None:
    name = json.dumps(field)
    _search(
        f'{{"query":{{"exists":{{"field":{name}}}}},"sort":[{name}],"aggs":{{"a":{{"terms":{{"field":{name}}}}}}}}}'
    )


@pytest.mark.parametrize(("argument", "call"), [("body", _search), ("path", _search_for)])
def test_no_search_takes_more_than_its_time(argument: str, call: Callable[[str], None]) -> None:
    check(Subject(f"searches by {argument}", _BODY, (argument,), call, refusals=(MLStreamError,)))
