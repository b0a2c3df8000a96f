"""Management services that note how they are called and return, or raise, what a test wants."""

from collections.abc import Sequence
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
        self.connectors = RecordingConnectors(self)
        self.models = RecordingModels(self)
        self.model_groups = RecordingModelGroups(self)
        self.tasks = RecordingTasks(self)
        self.controllers = RecordingControllers(self)
        self.configs = RecordingConfigs(self)


class RecordingConnectors:
    def __init__(self, recorder: Recorder) -> None:
        self._record = recorder.record

    async def create(self, caller: Caller, body: Json) -> Json:
        return self._record("connectors.create", caller, body)

    async def get(self, caller: Caller, connector_id: str, *, dashboards: bool) -> Json:
        return self._record("connectors.get", caller, connector_id, dashboards=dashboards)

    async def update(self, caller: Caller, connector_id: str, body: Json) -> Json:
        return self._record("connectors.update", caller, connector_id, body)

    async def delete(self, caller: Caller, connector_id: str) -> Json:
        return self._record("connectors.delete", caller, connector_id)

    async def search(self, caller: Caller, body: Json, *, dashboards: bool) -> Json:
        return self._record("connectors.search", caller, body, dashboards=dashboards)


class RecordingModels:
    def __init__(self, recorder: Recorder) -> None:
        self._record = recorder.record

    async def register(self, caller: Caller, body: Json, *, deploy: bool) -> Json:
        return self._record("models.register", caller, body, deploy=deploy)

    async def get(self, caller: Caller, model_id: str, *, dashboards: bool) -> Json:
        return self._record("models.get", caller, model_id, dashboards=dashboards)

    async def update(self, caller: Caller, model_id: str, body: Json) -> Json:
        return self._record("models.update", caller, model_id, body)

    async def delete(self, caller: Caller, model_id: str) -> Json:
        return self._record("models.delete", caller, model_id)

    async def search(self, caller: Caller, body: Json, *, dashboards: bool) -> Json:
        return self._record("models.search", caller, body, dashboards=dashboards)

    async def deploy(self, caller: Caller, model_id: str, body: Json) -> Json:
        return self._record("models.deploy", caller, model_id, body)

    async def undeploy(self, caller: Caller, model_id: str) -> Json:
        return self._record("models.undeploy", caller, model_id)

    async def undeploy_many(self, caller: Caller, body: Json) -> Json:
        return self._record("models.undeploy_many", caller, body)


class RecordingModelGroups:
    def __init__(self, recorder: Recorder) -> None:
        self._record = recorder.record

    async def register(self, caller: Caller, body: Json) -> Json:
        return self._record("model_groups.register", caller, body)

    async def get(self, caller: Caller, group_id: str) -> Json:
        return self._record("model_groups.get", caller, group_id)

    async def update(self, caller: Caller, group_id: str, body: Json) -> Json:
        return self._record("model_groups.update", caller, group_id, body)

    async def delete(self, caller: Caller, group_id: str) -> Json:
        return self._record("model_groups.delete", caller, group_id)

    async def search(self, caller: Caller, body: Json, *, dashboards: bool) -> Json:
        return self._record("model_groups.search", caller, body, dashboards=dashboards)


class RecordingTasks:
    def __init__(self, recorder: Recorder) -> None:
        self._record = recorder.record

    async def get(self, caller: Caller, task_id: str) -> Json:
        return self._record("tasks.get", caller, task_id)

    async def delete(self, caller: Caller, task_id: str) -> Json:
        return self._record("tasks.delete", caller, task_id)

    async def cancel(self, caller: Caller, task_id: str) -> Json:
        return self._record("tasks.cancel", caller, task_id)

    async def search(self, caller: Caller, body: Json, *, dashboards: bool) -> Json:
        return self._record("tasks.search", caller, body, dashboards=dashboards)


class RecordingControllers:
    def __init__(self, recorder: Recorder) -> None:
        self._record = recorder.record

    async def create(self, caller: Caller, model_id: str, body: Json) -> Json:
        return self._record("controllers.create", caller, model_id, body)

    async def get(self, caller: Caller, model_id: str) -> Json:
        return self._record("controllers.get", caller, model_id)

    async def update(self, caller: Caller, model_id: str, body: Json) -> Json:
        return self._record("controllers.update", caller, model_id, body)

    async def delete(self, caller: Caller, model_id: str) -> Json:
        return self._record("controllers.delete", caller, model_id)


class RecordingConfigs:
    def __init__(self, recorder: Recorder) -> None:
        self._record = recorder.record

    async def get(self, caller: Caller, config_id: str) -> Json:
        return self._record("configs.get", caller, config_id)


class RecordingProfiles(Recorder):
    async def get(self, caller: Caller, body: Json, *, view: str) -> Json:
        return self.record("profiles.get", caller, body, view=view)


class RecordingStats(Recorder):
    async def named(self, caller: Caller, names: Sequence[str], node_ids: Sequence[str]) -> Json:
        return self.record("stats.named", caller, names, node_ids)

    async def selected(self, caller: Caller, body: Json) -> Json:
        return self.record("stats.selected", caller, body)
