"""Requests as browsers send them: under which host names and from which pages they are taken, and what comes back."""

import json

import pytest

from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.errors import Forbidden, MisdirectedRequest
from opensearch_ml_stream.rest_handlers.http.host_and_origin import BrowserPolicy, check_browser
from tests.asgi_exchange import JSON_HEADERS, SECURITY_HEADERS, Exchange, send_request
from tests.counted_work import steps
from tests.scripted_predictions import BODY, QUESTION, STREAM_PATH, ScriptedPredictions, Sidecar, text

LISTED = "https://app.example.com"
POLICY = BrowserPolicy(frozenset({LISTED, "http://localhost:3000"}), frozenset({"ml.example.com", "sidecar"}))
OWN = "localhost:9510"
PREDICT_PATH = STREAM_PATH.removesuffix("/stream")
LISTED_HEADERS = {
    **SECURITY_HEADERS,
    "cross-origin-resource-policy": "cross-origin",
    "access-control-allow-origin": LISTED,
    "access-control-expose-headers": "X-Opaque-Id, X-Request-Id, Retry-After",
    "vary": "Origin",
}


def check(path: str = "/", **headers: str) -> None:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    check_browser(Exchange("GET", path, headers=named).scope, POLICY)


async def ask(method: str, target: str, body: object = None, **headers: str) -> Exchange:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    sidecar = Sidecar(ScriptedPredictions(text("a"), Ending()), policy=POLICY)
    return await send_request(sidecar.application, method, target, body, named)


@pytest.mark.parametrize(
    "host",
    [
        "localhost", "LocalHost:9510", "localhost.", "localhost.:9510", "app.localhost:80", "127.0.0.1:9510",
        "127.9.9.9", "10.0.0.7:1", "192.168.1.4", "0.0.0.0:9510", "[::1]:9510", "[::1]", "[2001:DB8::7]:80",
        "[fe80::1]", "ml.example.com", "ML.Example.com:443", "ml.example.com.", "sidecar:9510",
    ],
)  # fmt: skip
def test_an_address_a_loopback_name_and_a_known_name_may_be_the_host(host: str) -> None:
    check(host=host)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:9510", "localhost.evil.example", "127.0.0.1.evil.example", "xlocalhost",
        "x.sidecar", "ml.example.com.evil.example", "ml.example.com..", "localhost:9510:1", "localhost@evil.example",
        "[::1", "::1", "[evil.example]", "[]", "127.0.0.1evil", "2130706433", "0x7f.1", "localhost:x", "\u00fc.example",
        "x" * 300,
    ],
)  # fmt: skip
def test_any_other_host_is_misdirected_and_the_error_names_the_setting(host: str) -> None:
    with pytest.raises(MisdirectedRequest, match=r"opensearch_ml_stream\.allowed_hosts") as error:
        check(host=host)
    assert len(error.value.reason) < 300


def test_each_of_two_hosts_must_be_known() -> None:
    scope = Exchange("GET", "/", headers={"host": OWN}).scope
    for position in (0, 1):
        scope["headers"] = [(b"host", OWN.encode())]
        scope["headers"].insert(position, (b"host", b"evil.example"))
        with pytest.raises(MisdirectedRequest):
            check_browser(scope, POLICY)


def test_a_probe_may_ask_for_health_under_any_host_name_and_without_one() -> None:
    check("/_health/live", host="probe.example")
    check("/_health/ready", host="probe.example")
    check("/metrics")
    with pytest.raises(MisdirectedRequest):
        check("/metrics", host="probe.example")


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        (OWN, "http://localhost:9510"),
        ("LOCALHOST:9510", "http://localhost:9510"),
        ("localhost", "http://localhost"),
        ("localhost:80", "http://localhost"),
        ("ml.example.com", "https://ml.example.com"),
        ("ml.example.com:443", "https://ml.example.com"),
        ("ml.example.com.", "https://ml.example.com."),
        ("[::1]:9510", "http://[::1]:9510"),
        ("sidecar", LISTED),
        (OWN, "http://localhost:3000"),
        (OWN, "HTTPS://APP.example.com"),
    ],
)
@pytest.mark.parametrize("site", ["", "same-origin", "same-site", "none"])
def test_a_page_of_the_sidecar_or_of_a_listed_origin_may_call(host: str, origin: str, site: str) -> None:
    check(host=host, origin=origin, **({"sec_fetch_site": site} if site else {}))


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        (OWN, "null"),
        (OWN, "http://evil.example"),
        (OWN, "http://localhost"),
        (OWN, "http://localhost:8080"),
        (OWN, "http://127.0.0.1:9510"),
        (OWN, "http://app.example.com"),
        (OWN, "https://app.example.com:8443"),
        (OWN, "https://app.example.com.evil.example"),
        (OWN, "https://x.app.example.com"),
        (OWN, "http://localhost:9510@evil.example"),
        (OWN, "localhost:9510"),
        (OWN, "file://"),
        (OWN, "chrome-extension://localhost:9510"),
        ("localhost", "https://localhost:80"),
        ("localhost:80", "https://localhost"),
        ("[::1]:9510", "http://[::2]:9510"),
    ],
)
def test_a_page_of_another_origin_may_not_call_and_the_error_names_the_setting(host: str, origin: str) -> None:
    with pytest.raises(Forbidden, match=r"opensearch_ml_stream\.cors_origins") as error:
        check(host=host, origin=origin)
    assert f"[{origin}]" in error.value.reason


@pytest.mark.parametrize("site", ["cross-site", "Cross-Site"])
def test_a_request_that_another_site_caused_is_refused_without_an_origin_too(site: str) -> None:
    with pytest.raises(Forbidden, match="of another site"):
        check(host=OWN, sec_fetch_site=site, sec_fetch_mode="navigate")
    with pytest.raises(Forbidden):
        check(host="localhost", origin="http://localhost", sec_fetch_site=site)
    check(host=OWN, origin=LISTED, sec_fetch_site=site)


def test_a_page_whose_name_was_rebound_to_this_address_is_of_its_own_origin_and_still_refused() -> None:
    with pytest.raises(MisdirectedRequest):
        check(host="evil.example:9510", origin="http://evil.example:9510", sec_fetch_site="same-origin")


@pytest.mark.parametrize("target", [STREAM_PATH, PREDICT_PATH, "/nowhere"])
async def test_the_rules_hold_for_every_route(target: str) -> None:
    foreign = await ask("POST", target, QUESTION, host=OWN, origin="https://evil.example")
    assert (foreign.status, foreign.json()["status"]) == (403, 403)
    assert "access-control-allow-origin" not in foreign.headers
    rebound = await ask("POST", target, QUESTION, host="evil.example")
    assert (rebound.status, rebound.json()["error"]["type"]) == (421, "status_exception")


@pytest.mark.parametrize("target", [STREAM_PATH, PREDICT_PATH, STREAM_PATH + "?nonsense=1", "/nowhere"])
async def test_every_response_to_a_listed_page_can_be_read_by_it(target: str) -> None:
    exchange = await ask("POST", target, BODY, origin=LISTED, host=OWN, **JSON_HEADERS)
    assert exchange.headers.items() >= LISTED_HEADERS.items()


@pytest.mark.parametrize("target", [STREAM_PATH, PREDICT_PATH, STREAM_PATH + "?nonsense=1", "/nowhere"])
async def test_every_response_tells_browsers_to_do_nothing_else_with_it(target: str) -> None:
    exchange = await ask("POST", target, BODY, **JSON_HEADERS)
    assert exchange.headers.items() >= SECURITY_HEADERS.items()
    assert exchange.headers["cache-control"] in ("no-store", "no-cache, no-transform")
    assert not any(name.startswith("access-control") for name in exchange.headers)


@pytest.mark.parametrize("target", [STREAM_PATH, PREDICT_PATH, "/_plugins/_ml/models/m1"])
async def test_a_listed_page_may_ask_beforehand(target: str) -> None:
    wanted = {"access-control-request-method": "POST", "access-control-request-headers": "content-type, x-opaque-id"}
    exchange = await ask("OPTIONS", target, origin=LISTED, host=OWN, sec_fetch_site="cross-site", **wanted)
    assert (exchange.status, exchange.body) == (204, b"")
    assert exchange.headers == {
        **LISTED_HEADERS,
        "access-control-allow-methods": "GET, HEAD, POST, PUT, DELETE",
        "access-control-allow-headers": "content-type, x-opaque-id",
        "access-control-max-age": "600",
    }
    refused = await ask("OPTIONS", target, origin="https://evil.example", host=OWN, **wanted)
    assert (refused.status, json.loads(refused.body)["status"]) == (403, 403)
    assert not any(name.startswith("access-control") for name in refused.headers)


async def test_options_that_asks_nothing_beforehand_is_an_ordinary_request() -> None:
    exchange = await ask("OPTIONS", STREAM_PATH, origin=LISTED, host=OWN)
    assert (exchange.status, exchange.headers["allow"]) == (200, "POST")
    exchange = await ask("OPTIONS", STREAM_PATH, host=OWN, access_control_request_method="POST")
    assert (exchange.status, exchange.headers["allow"]) == (200, "POST")


def test_the_check_takes_few_steps() -> None:
    fields = {"accept": "*/*", "user_agent": "x", "content_type": "application/json", "content_length": "9"}
    assert steps(lambda: check(host="127.0.0.1:9510", **fields)) < 500


@pytest.mark.parametrize("piece", [".", "[", ":", "a.", "1:"])
def test_the_check_of_a_host_of_any_length_ends(piece: str) -> None:
    """Were it quadratic, it would take longer than any test may."""
    with pytest.raises(MisdirectedRequest):
        check(host=piece * 500_000)


async def test_where_every_caller_logs_in_any_host_will_do() -> None:
    sidecar = Sidecar(ScriptedPredictions())
    exchange = await send_request(sidecar.application, "GET", "/", headers={"Host": "rebound.example"})
    assert exchange.status == 421
    sidecar.gate.asks_for_login = True
    exchange = await send_request(sidecar.application, "GET", "/", headers={"Host": "rebound.example"})
    assert exchange.status != 421
