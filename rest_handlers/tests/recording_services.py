"""Management services that note how they are called and return, or raise, what a test wants."""

from collections.abc import Sequence
from typing import Any

from opensearch_ml_stream.rest_handlers.service_protocols import Json


class Recorder:
    """`calls` are the name of each method that was called, with its arguments."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.response: Json = {"done": True}
        self.error: Exception | None = None

    def record(self, method: str, *arguments: object, **options: object) -> Json:
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

    async def create(self, body: Json) -> Json:
        return self._record("connectors.create", body)

    async def get(self, connector_id: str, *, dashboards: bool) -> Json:
        return self._record("connectors.get", connector_id, dashboards=dashboards)

    async def update(self, connector_id: str, body: Json) -> Json:
        return self._record("connectors.update", connector_id, body)

    async def delete(self, connector_id: str) -> Json:
        return self._record("connectors.delete", connector_id)

    async def search(self, body: Json, *, dashboards: bool) -> Json:
        return self._record("connectors.search", body, dashboards=dashboards)


class RecordingModels:
    def __init__(self, recorder: Recorder) -> None:
        self._record = recorder.record

    async def register(self, body: Json, *, deploy: bool) -> Json:
        return self._record("models.register", body, deploy=deploy)

    async def get(self, model_id: str, *, dashboards: bool) -> Json:
        return self._record("models.get", model_id, dashboards=dashboards)

    async def update(self, model_id: str, body: Json) -> Json:
        return self._record("models.update", model_id, body)

    async def delete(self, model_id: str) -> Json:
        return self._record("models.delete", model_id)

    async def search(self, body: Json, *, dashboards: bool) -> Json:
        return self._record("models.search", body, dashboards=dashboards)

    async def deploy(self, model_id: str, body: Json) -> Json:
        return self._record("models.deploy", model_id, body)

    async def undeploy(self, model_id: str) -> Json:
        return self._record("models.undeploy", model_id)

    async def undeploy_many(self, body: Json) -> Json:
        return self._record("models.undeploy_many", body)


class RecordingModelGroups:
    def __init__(self, recorder: Recorder) -> None:
        self._record = recorder.record

    async def register(self, body: Json) -> Json:
        return self._record("model_groups.register", body)

    async def get(self, group_id: str) -> Json:
        return self._record("model_groups.get", group_id)

    async def update(self, group_id: str, body: Json) -> Json:
        return self._record("model_groups.update", group_id, body)

    async def delete(self, group_id: str) -> Json:
        return self._record("model_groups.delete", group_id)

    async def search(self, body: Json, *, dashboards: bool) -> Json:
        return self._record("model_groups.search", body, dashboards=dashboards)


class RecordingTasks:
    def __init__(self, recorder: Recorder) -> None:
        self._record = recorder.record

    async def get(self, task_id: str) -> Json:
        return self._record("tasks.get", task_id)

    async def delete(self, task_id: str) -> Json:
        return self._record("tasks.delete", task_id)

    async def cancel(self, task_id: str) -> Json:
        return self._record("tasks.cancel", task_id)

    async def search(self, body: Json, *, dashboards: bool) -> Json:
        return self._record("tasks.search", body, dashboards=dashboards)


class RecordingControllers:
    def __init__(self, recorder: Recorder) -> None:
        self._record = recorder.record

    async def create(self, model_id: str, body: Json) -> Json:
        return self._record("controllers.create", model_id, body)

    async def get(self, model_id: str) -> Json:
        return self._record("controllers.get", model_id)

    async def update(self, model_id: str, body: Json) -> Json:
        return self._record("controllers.update", model_id, body)

    async def delete(self, model_id: str) -> Json:
        return self._record("controllers.delete", model_id)


class RecordingConfigs:
    def __init__(self, recorder: Recorder) -> None:
        self._record = recorder.record

    async def get(self, config_id: str) -> Json:
        return self._record("configs.get", config_id)


class RecordingProfiles(Recorder):
    async def get(self, body: Json, *, view: str) -> Json:
        return self.record("profiles.get", body, view=view)


class RecordingStats(Recorder):
    async def named(self, names: Sequence[str], node_ids: Sequence[str]) -> Json:
        return self.record("stats.named", names, node_ids)

    async def selected(self, body: Json) -> Json:
        return self.record("stats.selected", body)
