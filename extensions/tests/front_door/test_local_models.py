"""Requests for models that run in the cluster go there with their bodies as they came; all others stay."""

import gzip
import json
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from opensearch_ml_stream.connectors.errors import Unauthorized, Unavailable
from opensearch_ml_stream.extensions.front_door import local_models
from opensearch_ml_stream.extensions.front_door.local_models import (
    MAX_MODEL_IDS,
    LocalModels,
    ModelsOfCluster,
    StoredModelKinds,
)
from opensearch_ml_stream.plugin.store import Document, Index
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyMemory
from tests.asgi_exchange import JSON_HEADERS, Exchange, send_request
from tests.front_door.scripted_cluster import ScriptedCluster, ScriptedKinds
from tests.recording_gate import RecordingGate
from tests.scripted_predictions import STREAM_PATH, ScriptedPredictions, Sidecar, stream_request

BASE = "/_plugins/_ml"
LIMIT = 1000
REGISTER = f"{BASE}/models/_register"
UNDEPLOY = f"{BASE}/models/_undeploy"
OF_A_MODEL = [
    "POST /models/ID/_predict", "POST /models/ID/_predict/", "POST /_predict/text_embedding/ID",
    "POST /models/ID/_batch_predict", "POST /models/ID/_deploy", "POST /models/ID/_load", "POST /models/ID/_undeploy",
    "POST /models/ID/_unload", "PUT /models/ID", "DELETE /models/ID", "PUT /controllers/ID", "DELETE /controllers/ID/",
]  # fmt: skip
OF_THE_SIDECAR = [
    "GET /models/ID", "GET /controllers/ID", "GET /models/_search", "POST /models/_search",
    "POST /models/ID/x/_predict", "GET /tasks/ID", "POST /tasks/ID/_cancel", "PUT /connectors/ID",
    "GET /models/ID/_predict",
]  # fmt: skip


class Setup:
    """Local models before an application that notes what it gets; the cluster notes the rest."""

    def __init__(self, gate: RecordingGate | None = None, kinds: ScriptedKinds | None = None) -> None:
        self.cluster, self.own = ScriptedCluster(), ScriptedCluster(response={"of": "sidecar"})
        self.gate, self.kinds = gate or RecordingGate(), kinds or ScriptedKinds()
        self.bodies = BodyMemory(LIMIT, 10 * LIMIT)
        self.application = LocalModels(cast(Any, self.kinds), self.cluster, self.own, self.gate, self.bodies)

    async def send(self, method: str, target: str, body: Any = None) -> str:
        """Send a request; return who has responded, and check that they got it as it was sent."""
        exchange = await send_request(self.application, method, target, body)
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        who = self.cluster if exchange.json()["of"] == "cluster" else self.own
        assert (who.sent[-1].body, self.bodies.reserved) == (data, 0)
        return str(exchange.json()["of"])


@pytest.mark.parametrize("line", OF_A_MODEL)
async def test_a_request_for_a_local_model_goes_to_the_cluster_and_one_for_another_stays(line: str) -> None:
    setup = Setup()
    method, path = line.split(" ")
    for model_id, who in (("local-1", "cluster"), ("remote-1", "sidecar")):
        for _ in range(2):
            assert await setup.send(method, BASE + path.replace("ID", model_id), b"\x00 as it is") == who
    assert setup.kinds.asked == [{"local-1"}, {"remote-1"}]
    assert setup.gate.asked == [(), ()]  # for the first look alone, and of whoever logs in


@pytest.mark.parametrize("line", OF_THE_SIDECAR)
async def test_what_both_read_in_the_same_index_is_the_sidecars(line: str) -> None:
    setup = Setup()
    method, path = line.split(" ")
    assert await setup.send(method, BASE + path.replace("ID", "local-1"), {}) == "sidecar"
    assert setup.kinds.asked == []


async def test_other_paths_are_not_looked_at() -> None:
    setup = Setup()
    for target in ("/models/local-1/_predict", "/_search"):
        assert await setup.send("POST", target, {"function_name": "kmeans"}) == "sidecar"
    assert setup.gate.asked == []


@pytest.mark.parametrize("error", [Unauthorized(), Unavailable("down")])
async def test_who_is_not_let_in_makes_nobody_look_and_hears_why_from_the_sidecar(error: Any) -> None:
    for setup in (Setup(gate=RecordingGate(error)), Setup(kinds=ScriptedKinds(error))):
        assert await setup.send("POST", f"{BASE}/models/local-1/_predict", {}) == "sidecar"
        assert await setup.send("POST", UNDEPLOY, {"model_ids": ["local-1"]}) == "sidecar"
    assert Setup(gate=RecordingGate(error)).kinds.asked == []


@pytest.mark.parametrize(
    ("body", "who"),
    [
        ({"function_name": "TEXT_EMBEDDING", "name": "m"}, "cluster"),
        ({"function_name": "text_embedding"}, "cluster"),
        ({"function_name": "no-such"}, "cluster"),
        ({"name": "huggingface/x", "version": "1.0.1", "model_format": "TORCH_SCRIPT"}, "cluster"),
        ({"function_name": "remote", "connector_id": "c"}, "sidecar"),
        ({"function_name": "REMOTE"}, "sidecar"),
        ({"name": "m", "connector_id": "c"}, "sidecar"),
        ({"name": "m", "connector": {}}, "sidecar"),
        ({"function_name": 1}, "sidecar"),
        ([], "sidecar"),
        (b"{", "sidecar"),
        (b"", "sidecar"),
        (b"[" * 900, "sidecar"),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "path", ["/models/_register", "/models/_upload/", "/models/m/1/_register", "/models/m/1/_upload"]
)
async def test_a_model_that_is_not_remote_is_registered_in_the_cluster(path: str, body: Any, who: str) -> None:
    assert await Setup().send("POST", BASE + path, body) == who


@pytest.mark.parametrize(
    ("protocol", "who"),
    [("mcp_sse", "cluster"), ("mcp_streamable_http", "cluster"), ("http", "sidecar"), (None, "sidecar")],
)
async def test_a_connector_that_agents_alone_use_is_created_in_the_cluster(protocol: str | None, who: str) -> None:
    assert await Setup().send("POST", f"{BASE}/connectors/_create", {"name": "c", "protocol": protocol}) == who


@pytest.mark.parametrize(
    ("ids", "who"),
    [
        (["local-1", "local-2"], "cluster"), (["local-1"], "cluster"), (["remote-1", "remote-2"], "sidecar"),
        ([], "sidecar"),
        (None, "sidecar"), ("local-1", "sidecar"), ([1], "sidecar"), (["local-1"] * (MAX_MODEL_IDS + 1), "sidecar"),
    ],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
async def test_models_that_are_all_local_are_undeployed_together_in_the_cluster(ids: Any, who: str) -> None:
    setup = Setup()
    setup.bodies.max_body_size = setup.bodies.max_total_body_size = 1_000_000
    assert await setup.send("POST", UNDEPLOY, {"model_ids": ids}) == who


async def test_models_here_and_there_are_undeployed_in_two_requests() -> None:
    setup = Setup()
    exchange = await send_request(
        setup.application, "POST", UNDEPLOY, {"model_ids": ["remote-1", "local-1", "local-2"]}
    )
    assert exchange.status == 400
    assert "in two requests. In the cluster runs, for one, local-1" in exchange.reason()
    assert (setup.cluster.sent, setup.own.sent, setup.bodies.reserved) == ([], [], 0)


async def test_a_body_in_pieces_and_compressed_goes_on_as_it_came() -> None:
    setup = Setup()
    data = gzip.compress(b'{"function_name": "kmeans"}')
    pieces = [data[:7], data[7:15], data[15:]]
    exchange = Exchange("POST", REGISTER, pieces, {**JSON_HEADERS, "content-encoding": "gzip"})
    await exchange.run(setup.application)
    (sent,) = setup.cluster.sent
    assert (sent.body, sent.headers["content-encoding"]) == (data, "gzip")


@pytest.mark.parametrize(
    "exchange",
    [
        Exchange("POST", REGISTER, b"x" * (LIMIT + 1), JSON_HEADERS),
        Exchange("POST", REGISTER, [b"x" * LIMIT, b"x"], JSON_HEADERS),
        Exchange("POST", REGISTER, b'{"function_name": "kmeans"}', {"content-type": "text/plain"}),
    ],
)
async def test_a_body_that_cannot_be_read_is_for_the_sidecar_to_refuse(exchange: Exchange) -> None:
    setup = Setup()
    await exchange.run(setup.application)
    assert (len(setup.own.sent), setup.cluster.sent, setup.bodies.reserved) == (1, [], 0)


async def test_a_client_that_disconnects_within_its_body_is_seen_to_by_the_sidecar() -> None:
    seen: dict[str, int] = defaultdict(int)

    async def own(scope: Scope, receive: Receive, send: Send) -> None:
        for _ in range(3):
            seen[(await receive())["type"]] += 1
        await JSONResponse({})(scope, receive, send)

    setup = Setup()
    application = LocalModels(cast(Any, setup.kinds), setup.cluster, own, setup.gate, setup.bodies)
    await Exchange("POST", REGISTER, [b"{"], JSON_HEADERS, cut=True).run(application)
    assert seen == {"http.request": 1, "http.disconnect": 2}


async def test_a_stream_of_a_local_model_goes_to_the_cluster() -> None:
    setup = Setup()
    sidecar = Sidecar(
        ScriptedPredictions([Chunk("a")], Ending("stop")),
        relay_if_elsewhere=ModelsOfCluster(cast(Any, setup.kinds), setup.cluster, setup.gate).takes,
    )
    exchange = await stream_request(f"{BASE}/models/local-1/_predict/stream").run(sidecar.application)
    assert exchange.json() == {"of": "cluster"}
    assert setup.cluster.lines == [f"POST {BASE}/models/local-1/_predict/stream"]
    exchange = await stream_request(STREAM_PATH).run(sidecar.application)
    assert (exchange.complete, len(setup.cluster.sent)) == (True, 1)
    exchange = await send_request(sidecar.application, "GET", f"{BASE}/models/local-1/_predict/stream")
    assert (exchange.status, len(setup.cluster.sent)) == (405, 1)


STORED = {"kmeans": {"algorithm": "KMEANS"}, "remote": {"algorithm": "REMOTE"}, "old": {"name": "without one"}}


class CountingStore(SQLiteStore):
    """A store in memory that counts what it is asked."""

    reads = searches = 0

    async def get(self, index: Index, id: str) -> Document | None:
        """Return the document."""
        self.reads += 1
        return await super().get(index, id)

    async def search(self, index: Index, body: Any) -> dict[str, Any]:
        """Search."""
        self.searches += 1
        return await super().search(index, body)


@pytest.fixture
async def store() -> AsyncIterator[CountingStore]:
    store = CountingStore(":memory:")
    for id, source in STORED.items():
        await store.create(Index.MODEL, source, id)
    yield store
    await store.close()


@pytest.mark.parametrize(("id", "is_local"), [("kmeans", True), ("remote", False), ("old", False)])
async def test_the_store_is_asked_once_about_a_model(store: CountingStore, id: str, is_local: bool) -> None:
    kinds = StoredModelKinds(store)
    assert kinds.known(id) is None
    for _ in range(3):
        assert (await kinds.local_among([id]) == {id}) is is_local
        assert kinds.known(id) is is_local
    assert (store.reads, store.searches) == (1, 0)


async def test_a_model_that_is_not_stored_is_looked_for_again(store: CountingStore) -> None:
    kinds = StoredModelKinds(store)
    assert await kinds.local_among(["new"]) == frozenset()
    assert kinds.known("new") is None
    await store.create(Index.MODEL, {"algorithm": "KMEANS"}, "new")
    assert await kinds.local_among(["new"]) == {"new"}


async def test_many_models_are_asked_about_together(store: CountingStore) -> None:
    kinds = StoredModelKinds(store)
    ids = {"kmeans", "remote", "old", *(f"absent-{number}" for number in range(2000))}
    assert await kinds.local_among(ids) == {"kmeans"}
    assert (store.reads, store.searches) == (0, 3)
    assert await kinds.local_among(["kmeans", "remote"]) == {"kmeans"}
    assert store.searches == 3


async def test_no_more_models_are_held_than_fit(store: CountingStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_models, "_MAX_MODELS", 2)
    kinds = StoredModelKinds(store)
    for id in STORED:
        await kinds.local_among([id])
    assert [kinds.known(id) for id in STORED] == [None, False, False]
