"""`/_ui/`: the page, its files and its requests, and what each needs."""

import re
from typing import Any

import pytest
from starlette.routing import Route

from opensearch_ml_stream.connectors.errors import Forbidden, Unauthorized
from opensearch_ml_stream.extensions.playground.http.page_files import read_static_files
from opensearch_ml_stream.extensions.playground.service.blueprint_models import NewModel
from opensearch_ml_stream.rest_handlers.callers import Caller, Scope
from tests.asgi_exchange import SECURITY_HEADERS, Exchange, send_request
from tests.playground.http.recording_playground import RecordingPlayground, playground_application
from tests.recording_gate import CALLER, RecordingGate
from tests.scripted_predictions import LIMITS

ML = "cluster:admin/opensearch/ml/"
SEARCH, GET, DELETE = (ML + name for name in ("models/search", "models/get", "models/delete"))
REGISTER, UNDEPLOY = ML + "register_model", ML + "undeploy_models"
CREATE_CONNECTOR, GET_CONNECTOR, DELETE_CONNECTOR = (
    ML + name for name in ("create_connector", "connectors/get", "connectors/delete")
)
POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; script-src 'self'; "
    "style-src 'self'; img-src 'self' data:; connect-src 'self'; require-trusted-types-for 'script'; "
    "trusted-types dompurify"
)


class PickyGate(RecordingGate):
    """Refuses one action."""

    def __init__(self, refused: str) -> None:
        super().__init__()
        self.refused = refused

    async def admit(self, scope: Scope, *actions: str) -> Caller:
        caller = await super().admit(scope, *actions)
        if self.refused in actions:
            raise Forbidden(f"no permissions for [{self.refused}]")
        return caller


class Ui:
    def __init__(self, gate: RecordingGate | None = None) -> None:
        self.gate = gate or RecordingGate()
        self.playground = RecordingPlayground()
        self.application = playground_application(self.playground, self.gate)

    async def ask(self, method: str, target: str, body: object = None, **headers: str) -> Exchange:
        dashed = {name.replace("_", "-"): value for name, value in headers.items()}
        return await send_request(self.application, method, target, body, dashed)


async def test_the_page_has_the_version_a_closed_policy_and_only_its_own_files() -> None:
    ui = Ui()
    page = await ui.ask("GET", "/_ui/")
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "1.2.3" in page.body.decode()
    assert page.headers.items() >= {**SECURITY_HEADERS, "content-security-policy": POLICY}.items()
    assert ui.gate.asked == [(SEARCH, ML + "predict", ML + "predict/stream")]
    named = re.findall(r'(?:src|href)="([^"#]+)"', page.body.decode())
    api = "../_plugins/_ml/openapi.json"
    assert {name.removeprefix("static/") for name in named} <= {*read_static_files(), api}
    assert not re.search(r"<style|style=|<script(?![^>]+src=)|\son\w+=", page.body.decode())


async def test_a_page_without_openais_api_knows_it() -> None:
    application = playground_application(RecordingPlayground(), RecordingGate(), converses=False)
    page = await send_request(application, "GET", "/_ui/")
    assert '<html lang="en" data-converses="no">' in page.body.decode()


async def test_the_page_knows_whether_callers_log_in_as_it_is_now() -> None:
    ui = Ui()
    assert 'data-login="asked"' not in (await ui.ask("GET", "/_ui/")).body.decode()
    ui.gate.asks_for_login = True
    asked = await ui.ask("GET", "/_ui/")
    assert '<html lang="en" data-login="asked">' in asked.body.decode()
    assert (await ui.ask("GET", "/_ui/", if_none_match=asked.headers["etag"])).status == 304


@pytest.mark.parametrize(
    ("name", "content_type"),
    [
        ("playground.js", "text/javascript; charset=utf-8"),
        ("playground.css", "text/css; charset=utf-8"),
        ("purify.es.mjs", "text/javascript; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
    ],
)
async def test_a_file_is_sent_once_and_asked_for_again_by_its_tag(name: str, content_type: str) -> None:
    ui = Ui()
    file = await ui.ask("GET", f"/_ui/static/{name}")
    assert (file.status, file.headers["content-type"]) == (200, content_type)
    assert file.headers["cache-control"] == "no-cache"
    assert file.headers["content-security-policy"] == POLICY
    tag = file.headers["etag"]
    for known in (tag, f'"old", W/{tag}'):
        again = await ui.ask("GET", f"/_ui/static/{name}", if_none_match=known)
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    other = await ui.ask("GET", f"/_ui/static/{name}", if_none_match='"old"')
    assert (other.status, other.body) == (200, file.body)
    assert set(ui.gate.asked) == {()}


async def test_every_import_of_the_script_is_a_file_that_is_served() -> None:
    files = read_static_files()
    imported = {
        name for file in files.values() for name in re.findall(r'from "\./([^"]+)"', file.content.decode("utf-8"))
    }
    assert imported and imported <= files.keys()


@pytest.mark.parametrize("name", ["none.js", "..", "%2e%2e", "playground.html"])
async def test_no_other_file_is_served(name: str) -> None:
    file = await Ui().ask("GET", f"/_ui/static/{name}")
    assert (file.status, file.reason()) == (404, "There is no such file; the page is /_ui/")


async def test_the_path_without_its_slash_leads_to_the_page() -> None:
    response = await Ui().ask("GET", "/_ui")
    assert (response.status, response.headers["location"]) == (302, "_ui/")


@pytest.mark.parametrize(
    ("method", "target", "asked", "called"),
    [
        ("GET", "/_ui/models", [SEARCH, GET], ("listed", CALLER, True)),
        ("GET", "/_ui/models/a1", [GET, GET_CONNECTOR], ("form", CALLER, "a1", True)),
        ("DELETE", "/_ui/models/a1", [UNDEPLOY, DELETE, DELETE_CONNECTOR], ("delete", CALLER, "a1", True)),
        ("GET", "/_ui/blueprints", [CREATE_CONNECTOR], None),
    ],
)
async def test_a_request_needs_what_the_api_needs_for_the_same(
    method: str, target: str, asked: list[str], called: tuple[Any, ...] | None
) -> None:
    ui = Ui()
    response = await ui.ask(method, target)
    assert (response.status, response.headers["cache-control"]) == (200, "no-store")
    assert ui.gate.asked == [(action,) for action in asked]
    assert ui.playground.asked == ([] if called is None else [called])


@pytest.mark.parametrize(
    ("method", "target", "refused", "called"),
    [
        ("GET", "/_ui/models", GET, ("listed", CALLER, False)),
        ("GET", "/_ui/models/a1", GET_CONNECTOR, ("form", CALLER, "a1", False)),
        ("DELETE", "/_ui/models/a1", DELETE_CONNECTOR, ("delete", CALLER, "a1", False)),
    ],
)
async def test_without_a_right_to_a_part_the_rest_is_done(
    method: str, target: str, refused: str, called: tuple[Any, ...]
) -> None:
    ui = Ui(PickyGate(refused))
    assert (await ui.ask(method, target)).status == 200
    assert ui.playground.asked == [called]


@pytest.mark.parametrize(
    ("method", "target", "needed"),
    [
        ("DELETE", "/_ui/models/a1", DELETE),
        ("DELETE", "/_ui/models/a1", UNDEPLOY),
        ("POST", "/_ui/blueprints/b", REGISTER),
        ("POST", "/_ui/blueprints/b", CREATE_CONNECTOR),
    ],
)
async def test_what_does_two_things_needs_both_rights(method: str, target: str, needed: str) -> None:
    ui = Ui(PickyGate(needed))
    response = await ui.ask(method, target, {} if method == "POST" else None)
    assert (response.status, response.reason()) == (403, f"no permissions for [{needed}]")
    assert ui.playground.asked == []


async def test_a_new_model_takes_a_name_a_credential_and_parameters() -> None:
    ui = Ui()
    body = {"model_name": "Mine", "credential": {"key": "k"}, "parameters": {"model": "x", "temperature": 1}}
    response = await ui.ask("POST", "/_ui/blueprints/b", body)
    assert (response.status, response.json()) == (200, {"model_id": "1", "connector_id": "2"})
    assert (await ui.ask("POST", "/_ui/blueprints/b", {})).status == 200
    assert ui.playground.asked == [
        ("create", CALLER, "b", NewModel("Mine", {"key": "k"}, {"model": "x", "temperature": 1})),
        ("create", CALLER, "b", NewModel()),
    ]


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ({"name": "x"}, 400, "Unknown member [name]; a new model has credential, model_name, parameters"),
        ({"model_name": " "}, 400, "model_name must be a string that is not blank"),
        ({"model_name": 1}, 400, "model_name must be a string that is not blank"),
        ({"credential": {"key": 1}}, 400, "credential [key] must be a string"),
        ({"credential": ["k"]}, 400, "credential must be an object"),
        ({"parameters": "x"}, 400, "parameters must be an object"),
        (b"[" * (LIMITS.max_body_size // 2), 400, None),
        (b"", 400, None),
        (b"{" + b" " * LIMITS.max_body_size + b"}", 413, None),
    ],
)
async def test_a_body_that_is_none_is_refused(body: object, status: int, reason: str | None) -> None:
    ui = Ui()
    response = await ui.ask("POST", "/_ui/blueprints/b", body, content_type="application/json")
    assert response.status == status
    assert reason is None or response.reason() == reason
    assert ui.playground.asked == []


async def test_a_form_of_a_foreign_page_makes_no_model() -> None:
    ui = Ui()
    response = await ui.ask("POST", "/_ui/blueprints/b", b"{}", content_type="text/plain")
    assert response.status == 406
    assert ui.playground.asked == []


@pytest.mark.parametrize("target", ["/_ui/models?x=1", "/_ui/models/..", "/_ui/blueprints?pretty=maybe"])
async def test_a_query_or_an_id_that_nothing_can_have_is_refused(target: str) -> None:
    ui = Ui()
    assert (await ui.ask("GET", target)).status == 400
    assert ui.playground.asked == []


async def test_nothing_is_shown_or_done_without_credentials() -> None:
    ui = Ui(RecordingGate(Unauthorized("Unauthorized")))
    for route in ui.application.routes:
        assert isinstance(route, Route)
        path = re.sub(r"{\w+}", "x", route.path)
        for method in route.methods or {"GET"}:
            response = await ui.ask(method, path, {} if method == "POST" else None)
            assert (response.status, path) == (401, path)
            assert "www-authenticate" in response.headers
    assert ui.playground.asked == []


@pytest.mark.parametrize("target", ["/_ui", "/_ui/", "/_ui/models", "/_ui/static/playground.js"])
async def test_a_server_without_a_playground_says_so(target: str) -> None:
    application = playground_application(RecordingPlayground(), RecordingGate(), is_on=False)
    response = await send_request(application, "GET", target)
    reason = "There is no playground here: the setting opensearch_ml_stream.playground is false"
    assert (response.status, response.reason()) == (404, reason)


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
