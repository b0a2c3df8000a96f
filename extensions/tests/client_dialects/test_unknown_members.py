"""A member that is unknown here is noted by its path, wherever in a body it stands."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from tests.client_dialects.clients import CLIENTS, Client
from tests.client_dialects.dialects_page import Recording, shipped_dialects
from tests.client_dialects.rich_bodies import RICH_BODIES

# Objects that are passed on as they are, whatever they hold.
_OWN = {"parameters", "schema", "input_schema", "input", "logit_bias", "metadata", "cache_control", "audio"}


def _objects(value: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a body and their paths."""
    if isinstance(value, dict):
        yield path, value
        for name, member in value.items():
            is_own = name in _OWN and isinstance(member, dict) and not (name == "metadata" and "user_id" in member)
            if not is_own:
                yield from _objects(member, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for place, element in enumerate(value):
            yield from _objects(element, f"{path}[{place}]")


_PLACES = [
    pytest.param(client, path, id=f"{client.dialect} {path}")
    for client in CLIENTS
    for path, _ in _objects(RICH_BODIES[client.dialect])
]


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.dialect)
def test_of_the_rich_body_everything_is_known(client: Client) -> None:
    assert client.read(RICH_BODIES[client.dialect]).unknown == {}


@pytest.mark.parametrize(("client", "path"), _PLACES)
def test_an_unknown_member_is_noted_by_its_path(client: Client, path: str) -> None:
    body = deepcopy(RICH_BODIES[client.dialect])
    dict(_objects(body))[path]["made_up"] = 1
    try:
        unknown = client.read(body).unknown
    except InvalidRequest as error:
        assert "made_up" in error.reason
        return
    plain = path.replace("[", ".").replace("]", "")
    assert [name.replace("[", ".").replace("]", "") for name in unknown] == [f"{plain}.made_up" if plain else "made_up"]


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.dialect)
def test_every_dialect_but_the_clients_own_refuses_what_is_unknown(client: Client) -> None:
    conversation = client.read({**client.least, "made_up": 1})
    for title, dialect in shipped_dialects().items():
        refuse = Recording(frozenset(), title)
        dialect.write(conversation, refuse)
        assert "made_up" in refuse.refused, title
