"""docs/dialects.md says of each member of a client's request what becomes of it at each provider."""

import pytest

from tests.client_dialects.clients import CLIENTS
from tests.client_dialects.dialects_page import PAGE, PASSES, generated, introduction, shipped_dialects, sign
from tests.client_dialects.features import FEATURES, Feature


def test_the_page_says_what_the_code_does() -> None:
    assert PAGE.read_text("utf-8") == introduction() + generated(), (
        "`python -m tests.client_dialects.dialects_page` writes the tables"
    )


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_each_member_passes_somewhere(feature: Feature) -> None:
    """Else it is not known again by its mark, or the clients have no such member."""
    clients = [client for client in CLIENTS if client.dialect in feature.bodies]
    assert PASSES in {sign(client, dialect, feature) for client in clients for dialect in shipped_dialects().values()}
