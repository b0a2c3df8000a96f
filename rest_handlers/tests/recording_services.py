"""Management services that note how they are called and return, or raise, what a test wants."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from opensearch_ml_stream.rest_handlers.callers import Caller
from opensearch_ml_stream.rest_handlers.service_protocols import Json


class Recorder:
    """`calls` are the name of each method that was called, with its arguments but the caller; `callers` are these."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.callers: list[Caller] = []
        self.response: Json = {"done": True}
        self.error: Exception | None = None

    def record(self, method: str, caller: Caller, *arguments: object, **options: object) -> Json:
        self.callers.append(caller)
        self.calls.append((method, *arguments, options) if options else (method, *arguments))
        if self.error is not None:
            raise self.error
        return self.response


class RecordingServices(Recorder):
    """ManagementServices over one record."""

    def __init__(self) -> None:
        super().__init__()
        self.connectors: Any = RecordingService("connectors", self)
        self.models: Any = RecordingService("models", self)
        self.model_groups: Any = RecordingService("model_groups", self)
        self.tasks: Any = RecordingService("tasks", self)
        self.controllers: Any = RecordingService("controllers", self)
        self.configs: Any = RecordingService("configs", self)


class RecordingService:
    """A service whose methods are all noted, whatever their names."""

    def __init__(self, name: str, recorder: Recorder) -> None:
        self._name = name
        self._recorder = recorder

    def __getattr__(self, method: str) -> Callable[..., Awaitable[Json]]:
        async def call(caller: Caller, *arguments: object, **options: object) -> Json:
            return self._recorder.record(f"{self._name}.{method}", caller, *arguments, **options)

        return call


class RecordingProfiles(Recorder):
    async def get(self, caller: Caller, body: Json, *, view: str) -> Json:
        return self.record("profiles.get", caller, body, view=view)


class RecordingStats(Recorder):
    async def named(self, caller: Caller, names: Sequence[str], node_ids: Sequence[str]) -> Json:
        return self.record("stats.named", caller, names, node_ids)

    async def selected(self, caller: Caller, body: Json) -> Json:
        return self.record("stats.selected", caller, body)
