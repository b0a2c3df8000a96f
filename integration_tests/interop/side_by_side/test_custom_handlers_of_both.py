"""What MLServer and this server respond at the paths of a model's custom handlers: the same."""

from collections.abc import Iterator
from typing import Any

import pytest
from integration_tests.interop.side_by_side.two_servers import Both, Server, asked, both_servers, tensor

pytestmark = [pytest.mark.peers, pytest.mark.timeout(180)]


@pytest.fixture(scope="module", params=[False, True], ids=["without FastAPI", "by MLServer's FastAPI"])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with both_servers(tmp_path_factory.mktemp("both"), in_environment=request.param, workers=1) as both:
        yield both


REQUESTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a list": ("POST", "/sum", {"json": [1, 2.5]}),
    "a dictionary": ("POST", "/lengths", {"json": {"a": "one", "ü": "zwei"}}),
    "a request of V2": ("POST", "/upper", {"json": asked(tensor("one", "two"))}),
    "parameters of the path": ("GET", "/items/7", {}),
    "parameters of the query": ("GET", "/items/7?times=3&loud=yes&note=a%20b", {}),
    "the request itself": (
        "PUT", "/said/a/b%20c?q=%C3%BC", {"content": "body", "headers": {"x-said": "hello"}},
    ),
    "bytes": ("POST", "/bytes", {"json": {}}),
    "nothing": ("POST", "/nothing", {"json": {}}),
    "an HTTPException": ("POST", "/taken", {"json": {}}),
}  # fmt: skip


def told(server: Server, name: str) -> tuple[int, bytes, str | None]:
    method, path, sent = REQUESTS[name]
    response = server.rest.request(method, path, **sent)
    return response.status_code, response.content, response.headers.get("content-type")


@pytest.mark.parametrize("name", REQUESTS)
def test_a_handler_responds_the_same(both: Both, name: str) -> None:
    theirs = told(both.mlserver, name)
    assert theirs[0] in (200, 201, 409), theirs
    assert told(both.here, name) == theirs


@pytest.mark.parametrize(
    ("path", "body"), [("/sum", b"{}"), ("/sum", b""), ("/lengths", b"["), ("/upper", b'{"inputs": 1}')]
)
def test_a_body_that_does_not_fit_is_the_clients_fault(both: Both, path: str, body: bytes) -> None:
    """As FastAPI words it where it reads the body, else as any other request that is none."""
    theirs, ours = (server.rest.post(path, content=body) for server in both.in_turn)
    assert theirs.status_code == 422
    if both.has_numpy:  # the runtime runs where MLServer is
        assert (ours.status_code, ours.json()) == (422, theirs.json())
    else:
        assert ours.status_code == 422
        assert ours.json()["error"].startswith("body: ")


def test_a_handler_goes_with_its_model(both: Both) -> None:
    for operation, found in (("unload", False), ("load", True)):
        for server in both.in_turn:
            server.rest.post(f"/v2/repository/models/handlers/{operation}").raise_for_status()
            assert (server.rest.post("/sum", json=[1]).status_code == 200) == found
