"""docs/dialects.md says of each member of a client's request what becomes of it at each provider."""

import re
from collections.abc import Mapping

import pytest

from opensearch_ml_stream.connectors.conversation.conversation_request import ConversationTemplate
from opensearch_ml_stream.connectors.conversation.dialect import Dialect
from opensearch_ml_stream.connectors.documents import Connector
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.model_inputs import find_model_inputs
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from tests.client_dialects.clients import CLIENTS, Body, Client
from tests.client_dialects.dialects_page import (
    PAGE,
    PASSES,
    REFUSED,
    SENTENCES,
    dialect_of,
    generated,
    introduction,
    moved_blueprints,
    shipped_dialects,
    sign,
    sign_of,
)
from tests.client_dialects.features import FEATURES, Feature

Cells = Mapping[tuple[str, str, str], str]
"""The signs of the page by client, provider and member."""


def test_the_page_says_what_the_code_does() -> None:
    assert PAGE.read_text("utf-8") == introduction() + generated(), (
        "`python -m tests.client_dialects.dialects_page` writes the tables"
    )


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_each_member_passes_somewhere(feature: Feature) -> None:
    """Else it is not known again by its mark, or the clients have no such member."""
    clients = [client for client in CLIENTS if client.dialect in feature.bodies]
    assert PASSES in {sign(client, dialect, feature) for client in clients for dialect in shipped_dialects().values()}


def _cells() -> Cells:
    cells: dict[tuple[str, str, str], str] = {}
    for text in PAGE.read_text("utf-8").split("### ")[1:]:
        section = text.split("## ")[0]
        client = re.match(r".*, for clients of (.*)\n", section)
        assert client is not None
        table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line[:1] == "|"]
        providers = table[0][1:]
        signs = [(row[0], row[1:]) for row in table[2:]]
        for mark, sentence in SENTENCES:
            if shared := re.search(rf"^{sentence}: (.*)\.$", section, re.MULTILINE):
                signs += [(member, [mark] * len(providers)) for member in shared[1].split("; ")]
        for member, row in signs:
            for titles, cell in zip(providers, row, strict=True):
                cells |= {(client[1], title, member): cell for title in _titles_in(titles)}
    return cells


def _titles_in(head: str) -> list[str]:
    """The titles in a head of a column, of which some have a comma themselves."""

    def is_in(title: str, others: str) -> bool:
        return title != others and f", {title}," in f", {others},"

    found = [title for title in shipped_dialects() if title == head or is_in(title, head)]
    return [title for title in found if not any(is_in(title, other) for other in found)]


def _columns() -> Mapping[str, str]:
    """The title of the column of each blueprint, as the page has it."""
    rows = [line.split("|")[1:-1] for line in PAGE.read_text("utf-8").split("## Columns")[1].splitlines()[4:]]
    return {
        blueprint.strip(" `"): column.strip()
        for column, _, blueprints in rows
        for blueprint in blueprints.split(",")
        if blueprint.strip() and "at its own" not in blueprint
    }


CELLS, COLUMNS = _cells(), _columns()


def test_the_page_has_a_column_for_every_blueprint_that_converses() -> None:
    assert {name for name, connector in moved_blueprints().items() if dialect_of(connector)} == COLUMNS.keys()


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.dialect)
@pytest.mark.parametrize("blueprint", COLUMNS)
def test_every_cell_of_a_blueprints_column_is_what_happens_at_another_address(blueprint: str, client: Client) -> None:
    connector = moved_blueprints()[blueprint]
    dialect = dialect_of(connector)
    assert dialect is not None
    features = [feature for feature in FEATURES if client.dialect in feature.bodies]
    cells = {feature.name: CELLS[client.title, COLUMNS[blueprint], feature.name] for feature in features}
    assert {feature.name: _sign_at(connector, dialect, client, feature) for feature in features} == cells


def _sign_at(connector: Connector, dialect: Dialect, client: Client, feature: Feature) -> str:
    """What becomes of a feature in what the connector's template and the dialect make of a request."""
    parameters = ConnectorParameters.compile(connector.parameters)
    action = CompiledAction.compile(connector.action(), parameters, dict.fromkeys(connector.credential, "secret"))
    template = ConversationTemplate.compile(action, find_model_inputs(connector.action(), parameters, None))

    def sent(body: Body) -> Body | None:
        try:
            made = template.request(client.request(body), dialect).body
        except InvalidRequest:
            return None
        return None if made is None else dict(made)

    without, with_it = map(sent, feature.bodies[client.dialect])
    return REFUSED if with_it is None else sign_of(feature, without or {}, with_it)
