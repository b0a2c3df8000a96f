"""What a server does now: over a window, for those who may see the models."""

from pathlib import Path
from typing import Any

from opensearch_ml_stream.extensions.playground.service.live_figures import MAX_MODELS, WINDOW_SECONDS, LiveFigures
from opensearch_ml_stream.plugin.metrics import Metrics
from opensearch_ml_stream.plugin.monitoring.statistics import Statistics, open_statistics
from opensearch_ml_stream.plugin.observation import Observations
from opensearch_ml_stream.plugin.registry.document_access import VisibleDocuments
from opensearch_ml_stream.plugin.security.access_control import owner_of
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller
from tests.registry.registry_setup import closing

NOTHING: dict[str, Any] = {"streams": 0, "requests_per_second": 0.0, "tokens_per_second": None, "models": []}


class Server:
    """Figures over statistics, a clock and counts of tokens that the test moves."""

    def __init__(self, statistics: Statistics, store: SQLiteStore, **settings: Any) -> None:
        self.observations = Observations(Metrics(), statistics)
        self.now = 1000.0
        self.tokens: dict[str, float] = {}
        visible = VisibleDocuments.of(store, LiveSettings(Settings(**settings)))
        self.figures = LiveFigures(statistics, visible, lambda: dict(self.tokens), lambda: self.now)

    def predict(self, model_id: str, times: int = 1) -> None:
        for _ in range(times):
            with self.observations.whole(ANYONE) as observed:
                observed.set_model(model_id)

    async def after(self, seconds: float, caller: Caller = ANYONE) -> Any:
        self.now += seconds
        return await self.figures.current(caller)


async def test_rates_are_means_over_the_last_seconds(tmp_path: Path) -> None:
    async with closing(SQLiteStore(":memory:")) as store:
        with open_statistics(tmp_path) as statistics:
            server = Server(statistics, store)
            assert await server.after(0) == NOTHING
            server.predict("a", 3)
            server.tokens["a"] = 50
            with server.observations.whole(ANYONE) as running:
                running.set_model("b")
                found = await server.after(2)
            assert found == {
                "streams": 1,
                "requests_per_second": 1.5,
                "tokens_per_second": 25.0,
                "models": [{"id": "b", "streams": 1, "requests": 0}, {"id": "a", "streams": 0, "requests": 3}],
            }
            later = await server.after(WINDOW_SECONDS)
            assert (later["streams"], later["requests_per_second"], later["tokens_per_second"]) == (0, 0.1, 0.0)
            assert (await server.after(WINDOW_SECONDS))["requests_per_second"] == 0.0


async def test_whoever_asks_within_a_second_gets_the_same_sample(tmp_path: Path) -> None:
    async with closing(SQLiteStore(":memory:")) as store:
        with open_statistics(tmp_path) as statistics:
            server = Server(statistics, store)
            await server.after(0)
            first = await server.after(1)
            server.predict("a")
            assert await server.after(0.5) == first
            assert (await server.after(0.5))["requests_per_second"] == 0.5


async def test_counts_that_begin_anew_are_no_negative_rate(tmp_path: Path) -> None:
    async with closing(SQLiteStore(":memory:")) as store:
        with open_statistics(tmp_path) as statistics:
            server = Server(statistics, store)
            server.predict("a", 5)
            await server.after(0)
            statistics.forget("a")
            server.predict("a")
            assert (await server.after(1))["requests_per_second"] == 0.0


async def test_a_caller_gets_the_figures_of_the_models_that_they_may_see(tmp_path: Path) -> None:
    ann, bob = Caller("ann"), Caller("bob")
    async with closing(SQLiteStore(":memory:")) as store:
        with open_statistics(tmp_path) as statistics:
            server = Server(statistics, store, model_access_control_enabled=True)
            await store.create(Index.MODEL_GROUP, {"access": "private", "owner": owner_of(ann)}, "g")
            await store.create(Index.MODEL, {"model_group_id": "g", "algorithm": "REMOTE"}, "m")
            await server.after(0)
            server.predict("m", 2)
            server.tokens["m"] = 8
            with server.observations.whole(ann) as running:
                running.set_model("m")
                seen = await server.after(1, ann)
                hidden = await server.after(0, bob)
            assert (seen["streams"], seen["requests_per_second"], seen["tokens_per_second"]) == (1, 2.0, 8.0)
            assert seen["models"] == [{"id": "m", "streams": 1, "requests": 2}]
            assert hidden == NOTHING


async def test_so_many_models_are_told_and_no_more(tmp_path: Path) -> None:
    async with closing(SQLiteStore(":memory:")) as store:
        with open_statistics(tmp_path) as statistics:
            server = Server(statistics, store)
            for number in range(MAX_MODELS + 5):
                server.predict(f"m{number}")
            server.predict("m104")
            models = (await server.after(0))["models"]
            assert (len(models), models[0]) == (MAX_MODELS, {"id": "m104", "streams": 0, "requests": 2})
