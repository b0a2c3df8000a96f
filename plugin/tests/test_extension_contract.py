"""The contract of extensions: declarations made by hand, opened over a whole sidecar in memory."""

import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from opensearch_ml_stream.connectors.documents import Connector
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.providers.ollama import OLLAMA
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec
from opensearch_ml_stream.plugin.app import Sidecar, open_sidecar
from opensearch_ml_stream.plugin.connector_protocol import ModelProtocol
from opensearch_ml_stream.plugin.extension import PLAIN_ERRORS, Contribution, Core, Extension, Handler
from opensearch_ml_stream.plugin.observation import Observation, Observer
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.rest_handlers.operation_description import OperationDescription

SETTINGS = Settings(store="sqlite:///:memory:")
STREAM = StreamSpec("acme/words", Enable(body={"stream": True}), OLLAMA.framing, OLLAMA.reader)
WORDS = Provider(
    (Interface(("acme/words",), STREAM, (r"/words\?",)),), trusted_endpoints=(r"^https://words\.example/.*$",)
)
AN_OLD_NAME = Provider((Interface((OLLAMA.name,), StreamSpec(OLLAMA.name, Enable(), OLLAMA.framing, OLLAMA.reader)),))
CONNECTOR = {
    "name": "c",
    "version": "1",
    "protocol": "http",
    "parameters": {"_llm_interface": "Acme/Words"},
    "credential": {"k": "v"},
    "actions": [
        {"action_type": "predict", "method": "POST", "url": "https://api.openai.com/v1/x", "request_body": "{}"}
    ],
}

Opening = Callable[[Core], AbstractAsyncContextManager[Contribution]]
Declare = Callable[..., Extension]


@pytest.fixture
def declare(monkeypatch: pytest.MonkeyPatch) -> Declare:
    """A function that declares an extension whose opening is given."""
    module = ModuleType("acme_openings")
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def declare_extension(name: str, opening: Opening | None = None, **parts: Any) -> Extension:
        setattr(module, name, opening)
        if opening is not None:
            parts["open"] = f"{module.__name__}:{name}"
        return Extension(name, "Made by hand.", **parts)

    return declare_extension


def contributing(**parts: Any) -> Opening:
    @asynccontextmanager
    async def open_extension(core: Core) -> AsyncIterator[Contribution]:
        yield Contribution(**parts)

    return open_extension


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@asynccontextmanager
async def client_of(folder: Path, *extensions: Extension) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        open_sidecar(SETTINGS, folder, extensions=extensions) as sidecar,
        httpx.AsyncClient(transport=httpx.ASGITransport(sidecar.app), base_url="http://localhost") as client,
    ):
        yield client


def responding(text: str, error: Exception | None = None) -> Callable[[Request], Any]:
    async def respond(request: Request) -> Response:
        """Say a text."""
        if error is not None:
            raise error
        return PlainTextResponse(text)

    return respond


class Log:
    """Openings that write down what happens to them."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def opening(self, name: str, faces: Mapping[type, Any] | None = None, needs: type | None = None) -> Opening:
        @asynccontextmanager
        async def open_extension(core: Core) -> AsyncIterator[Contribution]:
            self.lines.append(f"open {name}" if needs is None else f"open {name} with {core.face(needs)}")
            try:
                yield Contribution(faces=faces or {})
            finally:
                self.lines.append(f"close {name}")

        return open_extension


async def test_what_is_off_is_neither_opened_nor_imported(folder: Path, declare: Declare) -> None:
    off = Extension(
        "off", "Off.", open="no_such_module:open", providers=("no_such_module:SPEC",), is_on=lambda _: False
    )
    async with client_of(folder, off) as client:
        assert (await client.get("/_health/ready")).status_code == 200


async def test_each_is_opened_behind_those_that_it_requires_gets_their_faces_and_is_closed_before_them(
    folder: Path, declare: Declare
) -> None:
    log = Log()
    giver = declare("giver", log.opening("giver", faces={str: "a face"}))
    taker = declare("taker", log.opening("taker", needs=str), requires=("giver",))
    async with client_of(folder, taker, giver):
        assert log.lines == ["open giver", "open taker with a face"]
    assert log.lines[2:] == ["close taker", "close giver"]


async def test_one_that_cannot_be_opened_is_named_and_the_others_are_closed(
    folder: Path, declare: Declare, caplog: pytest.LogCaptureFixture
) -> None:
    log = Log()

    def failing(core: Core) -> AbstractAsyncContextManager[Contribution]:
        raise ValueError("no such word")

    with pytest.raises(ValueError, match="no such word"):
        async with client_of(folder, declare("good", log.opening("good")), declare("bad", failing)):
            pass
    assert log.lines == ["open good", "close good"]
    assert "the extension bad cannot be opened" in caplog.messages


async def test_it_is_opened_with_the_settings_and_the_use_cases_of_the_core(folder: Path, declare: Declare) -> None:
    seen: list[Core] = []

    @asynccontextmanager
    async def opening(core: Core) -> AsyncIterator[Contribution]:
        seen.append(core)
        yield Contribution()

    async with client_of(folder, declare("mine", opening, paths=("/mine",))):
        (core,) = seen
        assert (core.settings, core.folder) == (SETTINGS, folder)
        assert core.paths.is_reserved("/mine/x") and not core.paths.is_reserved("/yours")
        assert (await core.registry.models.search(await core.gate.admit({}), {}))["hits"]["hits"] == []


async def test_its_routes_are_served_and_described(folder: Path, declare: Declare) -> None:
    routes = (Route("/mine/x", responding("hello")), Route("/_plugins/_ml/mine", responding("there")))
    async with client_of(folder, declare("mine", contributing(routes=routes), paths=("/mine",))) as client:
        assert [(await client.get(route.path)).text for route in routes] == ["hello", "there"]
        described = (await client.get("/_plugins/_ml/openapi.json")).json()["paths"]
    assert described["/_plugins/_ml/mine"]["get"]["summary"] == "Say a text."


async def test_a_route_at_a_path_that_is_not_declared_is_refused(folder: Path, declare: Declare) -> None:
    stray = declare("stray", contributing(routes=(Route("/stray", responding("hello")),)))
    with pytest.raises(ValueError, match="an extension declares its paths"):
        async with client_of(folder, stray):
            pass


@pytest.mark.parametrize(("form", "shape"), [(PLAIN_ERRORS, str), ("", dict)])
async def test_errors_at_its_paths_have_the_form_that_it_names(
    folder: Path, declare: Declare, form: str, shape: type
) -> None:
    route = Route("/mine/x", responding("", InvalidRequest("a reason")))
    mine = declare("mine", contributing(routes=(route,)), paths=("/mine",), error_form=form)
    async with client_of(folder, mine) as client:
        response = await client.get("/mine/x")
    assert (response.status_code, type(response.json()["error"])) == (400, shape)
    assert "a reason" in response.text


def marking(mark: str, seen: list[str]) -> Callable[[ASGIApp], ASGIApp]:
    """Return what stands before an application and notes that a request has come."""

    def wrap(following: ASGIApp) -> ASGIApp:
        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            seen.append(mark)
            await following(scope, receive, send)

        return application

    return wrap


async def test_handlers_stand_before_the_router_and_behind_it_by_their_order(folder: Path, declare: Declare) -> None:
    seen: list[str] = []
    orders = ((5, "behind"), (-1, "before"), (-7, "first"), (9, "last"))
    handlers = [Handler(order, marking(mark, seen)) for order, mark in orders]
    one = declare("one", contributing(handlers=handlers[:2]))
    two = declare("two", contributing(handlers=handlers[2:]))
    async with client_of(folder, one, two) as client:
        assert (await client.get("/_health/ready")).status_code == 200
        assert seen == ["first", "before"]
        assert (await client.get("/nothing/here")).status_code == 400
    assert seen[2:] == ["first", "before", "behind", "last"]


async def test_what_its_handlers_take_is_described_by_its_operations(folder: Path, declare: Declare) -> None:
    operations = {"/mine/{id}": {"GET": OperationDescription("Do mine.")}}
    async with client_of(folder, declare("mine", contributing(operations=operations), paths=("/mine",))) as client:
        described = (await client.get("/_plugins/_ml/openapi.json")).json()["paths"]
    assert described["/mine/{id}"]["get"]["summary"] == "Do mine."


class Gauge(Collector):
    """Figures of an extension."""

    def collect(self) -> Sequence[Metric]:
        gauge = GaugeMetricFamily("acme_greetings", "Greetings.")
        gauge.add_metric([], 3)
        return [gauge]


async def test_its_figures_profile_and_page_are_shown(folder: Path, declare: Declare) -> None:
    profiles: dict[str, Any] = {}
    mine = declare("mine", contributing(collectors=(Gauge(),), page="mine/", profiles=lambda: profiles))
    async with client_of(folder, mine) as client:
        assert "acme_greetings 3.0" in (await client.get("/metrics")).text
        model_id = await made_model(client)
        await client.post(f"/_plugins/_ml/models/{model_id}/_deploy")
        profiles[model_id] = {"acme": {"greetings": 3}}
        (node,) = (await client.get("/_plugins/_ml/profile")).json()["nodes"].values()
        assert node["models"][model_id]["acme"] == {"greetings": 3}
        assert (await client.get("/", headers={"Accept": "text/html"})).headers["location"] == "mine/"


class Names(Observer):
    """An observer that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def refused(self, prediction: Observation) -> None:
        self.told.append(f"refused: {prediction.outcome}")


async def test_its_observers_are_told_of_predictions(folder: Path, declare: Declare) -> None:
    observer = Names()
    async with client_of(folder, declare("mine", contributing(observers=(observer,)))) as client:
        await client.post("/_plugins/_ml/models/m1/_predict", json={"parameters": {}})
    assert observer.told == ["refused: Failed to find model"]


async def made_model(client: httpx.AsyncClient) -> str:
    connector = (await client.post("/_plugins/_ml/connectors/_create", json=CONNECTOR)).json()
    body = {"name": "m", "function_name": "remote", **connector}
    model_id: str = (await client.post("/_plugins/_ml/models/_register", json=body)).json()["model_id"]
    return model_id


async def test_a_connector_may_name_its_providers_where_it_is_on(folder: Path, declare: Declare) -> None:
    seen: list[Core] = []

    @asynccontextmanager
    async def opening(core: Core) -> AsyncIterator[Contribution]:
        seen.append(core)
        yield Contribution()

    words = declare("words", providers=(f"{__name__}:WORDS",))
    for extensions in ((words,), ()):
        async with client_of(folder, declare("seeing", opening), *extensions) as client:
            core = seen.pop()
            model = await core.models.get(await core.gate.admit({}), await made_model(client))
            if extensions:
                assert model.spec({}) is STREAM
            else:
                with pytest.raises(InvalidRequest, match=r"\[Acme/Words\] is no known _llm_interface"):
                    model.spec({})


class Known:
    """A connector protocol that notes which models it is asked for, and knows none."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def find(self, model_id: str, connector: Connector) -> ModelProtocol | None:
        self.asked.append(model_id)
        return None


async def test_its_protocols_are_asked_for_each_model(folder: Path, declare: Declare) -> None:
    protocol = Known()
    async with client_of(folder, declare("mine", contributing(protocols=(protocol,)))) as client:
        model_id = await made_model(client)
        await client.post(f"/_plugins/_ml/models/{model_id}/_predict", json={"parameters": {}})
    assert model_id in protocol.asked


async def test_a_provider_of_a_name_that_there_is_is_refused(folder: Path, declare: Declare) -> None:
    words = declare("words", providers=(f"{__name__}:AN_OLD_NAME",))
    with pytest.raises(InvalidRequest, match=r"Two providers have an interface named \[ollama/api/chat\]"):
        async with client_of(folder, words):
            pass


class Behind:
    """A server behind this one."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse(f"other server: {scope['path']}")(scope, receive, send)

    async def takes(self, scope: Scope, receive: Receive, send: Send, model_id: str) -> bool:
        if model_id == "theirs":
            await self(scope, receive, send)
        return model_id == "theirs"

    async def add_to(self, own: Mapping[str, Any], request: Any) -> Mapping[str, Any]:
        return {**own, "theirs": {}}


async def test_what_nothing_has_goes_on_to_another_server(folder: Path, declare: Declare) -> None:
    mine = declare("mine", contributing(other_server=Behind()), paths=("/mine",))
    async with client_of(folder, mine) as client:
        assert (await client.get("/_search")).text == "other server: /_search"
        assert (await client.get("/mine/x")).status_code == 400
        assert "theirs" in (await client.get("/_plugins/_ml/stats")).json()
        paths = [f"/_plugins/_ml/models/{model_id}/_predict/stream" for model_id in ("theirs", "ours")]
        statuses = [(await client.post(path, json={"parameters": {}})).status_code for path in paths]
    assert statuses == [200, 404]


async def test_two_that_bring_another_server_are_refused(folder: Path, declare: Declare) -> None:
    two = [declare(name, contributing(other_server=Behind())) for name in ("one", "two")]
    with pytest.raises(InvalidRequest, match="Two extensions forward requests"):
        async with client_of(folder, *two):
            pass


async def test_its_services_and_drains_are_handed_to_the_ports(folder: Path, declare: Declare) -> None:
    drained: list[float] = []

    async def drain(seconds: float) -> None:
        drained.append(seconds)

    module = sys.modules["acme_openings"]
    module.make_service = lambda core: ("service", core.version)  # type: ignore[attr-defined]
    mine = declare("mine", contributing(drain=drain), services=("acme_openings:make_service",))
    sidecar: Sidecar
    async with open_sidecar(SETTINGS, folder, extensions=[mine]) as sidecar:
        assert [make()[0] for make in sidecar.services] == ["service"]  # type: ignore[index]
        for each in sidecar.drains:
            await each(1.5)
    assert drained == [1.5]
