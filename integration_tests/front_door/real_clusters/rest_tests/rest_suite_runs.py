"""Runs of tests of OpenSearch's REST suite at one address, and what they leave behind taken away."""

import secrets
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import httpx
from integration_tests.front_door.real_clusters.compared_responses import Exchange, exchange
from integration_tests.front_door.real_clusters.rest_tests.rest_suite import RestCall, RestSuite, RestTest, keep_values

_OWN_PATHS = (
    "/_index_template/",
    "/_template/",
    "/_component_template/",
    "/_ingest/pipeline/",
    "/_scripts/",
    "/_search/pipeline/",
    "/_data_stream/",
    "/_snapshot/",
)


def run(suite: RestSuite, test: RestTest, client: httpx.Client) -> list[Exchange]:
    """Sends the test's requests, and deletes what it made."""
    exchanges: list[Exchange] = []
    sent: list[RestCall] = []
    stash: dict[str, Any] = {}
    before = _indices(client)
    own = {"X-Opaque-Id": f"ID-{secrets.token_hex(16)}"}  # the cluster warns of what is deprecated once for each
    try:
        for step in test.steps:
            if "set" in step:
                keep_values(step["set"], exchanges[-1].json(), stash)
            if "do" in step:
                call = suite.call(step["do"], stash)
                _check(test, call)
                sent.append(call)
                exchanges.append(
                    exchange(client, call.method, call.path, content=call.body, headers={**own, **call.headers})
                )
                assert call.may_fail or call.method == "HEAD" or exchanges[-1].status < 400, exchanges[-1]
        return exchanges
    finally:
        _clean(client, sent, before)


def _check(test: RestTest, call: RestCall) -> None:
    """No test deletes what it has not made: the cluster is shared with other tests."""
    path = call.path.partition("?")[0]
    assert call.method != "DELETE" or not ("*" in path or "_all" in path), f"{test.name} deletes {call.path}"


def _indices(client: httpx.Client) -> set[str]:
    response = client.get("/_cat/indices", params={"h": "index", "expand_wildcards": "all"})
    return set(response.raise_for_status().text.split())


def _clean(client: httpx.Client, sent: Sequence[RestCall], before: set[str]) -> None:
    """Deletes the new indices that the test named; what else is new may be another's."""
    for call in sent:
        path = call.path.partition("?")[0]
        if call.method in ("PUT", "POST") and path.startswith(_OWN_PATHS):
            client.delete(path)
    named = " ".join(f"{call.path} {call.body!r}" for call in sent)
    named += unquote(named)
    if new := sorted(name for name in _indices(client) - before if name in named):
        client.delete(f"/{','.join(new)}", params={"expand_wildcards": "all"}).raise_for_status()
