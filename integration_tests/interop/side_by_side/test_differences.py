"""Where this server responds otherwise than MLServer, on purpose: "What differs" of docs/coming-from.md."""

from collections.abc import Iterator

import httpx
import pytest
from httpx_sse import connect_sse
from integration_tests.interop.side_by_side.two_servers import Both, Server, asked, both_servers, tensor

pytestmark = [pytest.mark.peers, pytest.mark.timeout(180)]
BROKEN = "/v2/models/broken"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with both_servers(tmp_path_factory.mktemp("both"), in_environment=False, workers=1) as both:
        yield both


def test_any_other_error_is_not_the_servers_own(both: Both) -> None:
    theirs, ours = (server.rest.post(f"{BROKEN}/infer", json=asked(tensor("value"))) for server in both.in_turn)
    assert (theirs.status_code, theirs.text) == (500, "Internal Server Error")
    assert ours.status_code == 424
    assert ours.json()["error"] == "The runtime of model broken raised ValueError: no such value"


def test_an_error_inside_a_stream_is_an_event_where_mlserver_breaks_off(both: Both) -> None:
    def events(server: Server) -> Iterator[str]:
        body = asked(tensor("value"))
        with connect_sse(server.rest, "POST", f"{BROKEN}/infer_stream", json=body) as source:
            for event in source.iter_sse():
                yield event.data

    theirs, ours = map(events, both.in_turn)
    with pytest.raises(httpx.TransportError):  # which may take the first event with it
        list(theirs)
    first, last = ours
    assert '"one"' in first
    assert "The runtime of model broken raised ValueError: no such value" in last


def test_headers_of_a_streams_responses_are_those_of_http(both: Both) -> None:
    def first(server: Server) -> tuple[str, str]:
        with connect_sse(server.rest, "POST", "/v2/models/words/infer_stream", json=asked(tensor("a"))) as source:
            return next(source.iter_sse()).data, source.response.headers.get("ce-id", "")

    theirs, ours = map(first, both.in_turn)
    assert '"Ce-Id"' in theirs[0] and not theirs[1]
    assert '"Ce-Id"' not in ours[0] and ours[1]


def test_the_metadata_has_the_id_of_the_models_document(both: Both) -> None:
    theirs, ours = (server.rest.get("/v2/models/words").json() for server in both.in_turn)
    assert (theirs["parameters"], ours["parameters"]) == ({}, {"model_id": "runtime-words-v1.2.3"})


def test_versions_are_those_that_can_be_called_where_the_file_names_none(both: Both) -> None:
    theirs, ours = (server.rest.get("/v2/models/echo").json() for server in both.in_turn)
    assert (theirs["versions"], ours["versions"]) == ([], ["1"])


def test_what_is_no_request_is_told_in_a_sentence_too(both: Both) -> None:
    theirs, ours = (server.rest.post("/v2/models/words/infer", json={}).json() for server in both.in_turn)
    assert theirs.keys() == {"detail"}
    assert ours["error"] == "inputs: Field required"
