"""The management API responds as ML Commons 3.6.0 did: recorded requests are sent again, the responses compared."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from integration_tests.management.management_server import management_api, open_test_registry

from opensearch_ml_stream.plugin.store import Store

RECORDINGS = Path(__file__).with_name("recordings")
CHANGING = {"took", "_version", "_seq_no", "_primary_term", "_score", "max_score"}
OPTIONAL = {"forced_refresh"}
ADVISED = ("connector_create_untrusted", "model_register_inline_untrusted")  # the reason goes on with advice
_ID = re.compile(r"(?=[^ ]*[0-9A-Z])[A-Za-z0-9_-]{20,22}")


@pytest.mark.parametrize("file", ["management", "controllers"])
async def test_recorded_requests_get_the_same_responses(store: Store, file: str) -> None:
    ids: dict[str, str] = {}  # recorded id -> ours
    async with management_api(open_test_registry(store)) as api:
        for recording in json.loads((RECORDINGS / f"{file}.json").read_text()):
            name = recording["name"]
            body = _translated(recording["request"], ids)
            response = await api(recording["method"], _translated(recording["path"], ids), body)
            assert response.status_code == recording["status"], (name, response.text)
            _compare(recording["response"], response.json(), ids, name)
            if "search" not in name:  # ML Commons' search gives fields in no order
                assert _order(response.json()) == _order(recording["response"]), name


def _compare(recorded: Any, ours: Any, ids: dict[str, str], where: str) -> None:
    if isinstance(recorded, dict):
        assert isinstance(ours, dict), where
        names = {key: key for key in recorded}
        if len(recorded) == len(ours) == 1 and _ID.fullmatch(key := next(iter(recorded))):  # a node's id
            names[key] = ids.setdefault(key, next(iter(ours)))
        assert {names[key] for key in recorded} - OPTIONAL == set(ours) - OPTIONAL, (where, ours)
        for key in recorded.keys() - CHANGING - OPTIONAL:
            _compare(recorded[key], ours[names[key]], ids, f"{where}.{key}")
    elif isinstance(recorded, list):
        assert len(recorded) == len(ours), (where, ours)
        for index, (one, other) in enumerate(zip(recorded, ours, strict=True)):
            _compare(one, other, ids, f"{where}[{index}]")
    elif isinstance(recorded, int) and recorded > 1_000_000_000_000:
        assert isinstance(ours, int) and ours > 1_000_000_000_000, (where, ours)
    elif isinstance(recorded, str) and _ID.fullmatch(recorded):
        assert ids.setdefault(recorded, ours) == ours, where
    elif where.startswith(ADVISED) and where.endswith(".reason"):
        assert ours.startswith(f"{recorded}. If "), where
    elif where.endswith("._index"):
        assert ours.endswith(recorded), where  # the tests' stores have a prefix
    else:
        assert _sorted_list(_translated(recorded, ids)) == _sorted_list(ours), where


def _translated(value: Any, ids: dict[str, str]) -> Any:
    """The value with each recorded id that has an equivalent replaced by it."""
    if value is None:
        return None
    text = json.dumps(value)
    return json.loads(_ID.sub(lambda match: ids.get(match[0], match[0]), text))


def _sorted_list(value: Any) -> Any:
    """A string with the ids between its brackets sorted, since they come in no order."""
    if not isinstance(value, str):
        return value
    return re.sub(r"first: \[(.*)\]", lambda match: ", ".join(sorted(match[1].split(", "))), value)


def _order(value: Any) -> Any:
    """The keys of a JSON value in the order in which they stand."""
    if isinstance(value, dict):
        keys = [key for key in value if key not in OPTIONAL]
        return [("id" if _ID.fullmatch(key) else key, _order(value[key])) for key in keys]
    return [_order(item) for item in value] if isinstance(value, list) else None
