"""docs/dialects.md says of each member of a client's request what becomes of it at each provider."""

import re

import orjson
import pytest

from tests.client_dialects.clients import CLIENTS, Client
from tests.client_dialects.dialects_page import PAGE, generated, introduction, shipped_dialects, sign
from tests.client_dialects.features import FEATURES, Feature

_ROWS = [
    pytest.param(client, feature, id=f"{client.dialect}, {feature.name}")
    for client in CLIENTS
    for feature in FEATURES
    if client.dialect in feature.bodies
]


def test_the_page_says_what_the_code_does() -> None:
    assert PAGE.read_text("utf-8") == introduction() + generated(), (
        "`python -m tests.client_dialects.dialects_page` writes the tables"
    )


@pytest.mark.parametrize(("client", "feature"), _ROWS)
def test_each_member_of_the_tables_is_read_and_asks_for_something(client: Client, feature: Feature) -> None:
    without, with_it = feature.bodies[client.dialect]
    assert client.read(without) != client.read(with_it)
    sent, more = (orjson.dumps(body).decode() for body in (without, with_it))
    assert sent != more


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_each_member_passes_somewhere_but_what_nobody_knows(feature: Feature) -> None:
    signs = {
        sign(client, dialect, feature)
        for client in CLIENTS
        if client.dialect in feature.bodies
        for dialect in shipped_dialects().values()
    }
    assert "✓" in signs, f"the mark {re.escape(feature.mark)} is found nowhere"
