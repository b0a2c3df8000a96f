"""`/_ui/user` and `/_ui/logout`: who uses the page, and how a browser forgets them."""

import pytest

from opensearch_ml_stream.connectors.errors import Unauthorized
from opensearch_ml_stream.rest_handlers.callers import Caller, Scope
from tests.asgi_exchange import send_request
from tests.playground.http.recording_playground import RecordingPlayground, playground_application
from tests.recording_gate import RecordingGate


class GateOf(RecordingGate):
    """Lets one user in."""

    asks_for_login = True

    async def admit(self, scope: Scope, *actions: str) -> Caller:
        await super().admit(scope, *actions)
        return Caller("Zoë & co", roles=frozenset({"b", "a"}))


async def test_the_page_is_told_who_uses_it_and_no_more() -> None:
    user = await send_request(playground_application(RecordingPlayground(), GateOf()), "GET", "/_ui/user")
    assert user.json() == {"name": "Zoë & co", "roles": ["a", "b"], "asks_for_login": True}
    assert user.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("query", "status"), [("?user=Zo%C3%AB+%26+co", 401), ("?user=other", 302), ("", 302), ("?user=", 302)]
)
async def test_a_login_is_refused_where_its_user_logs_out_and_any_other_leads_to_the_page(
    query: str, status: int
) -> None:
    response = await send_request(playground_application(RecordingPlayground(), GateOf()), "GET", "/_ui/logout" + query)
    assert response.status == status
    if status == 302:
        assert response.headers["location"] == "./"
    else:
        assert response.headers["www-authenticate"] == Unauthorized().challenge
        assert "You are logged out" in response.body.decode() and "<script" not in response.body.decode()
