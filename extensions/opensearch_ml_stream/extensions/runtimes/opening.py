"""Open runtimes in a worker: the protocol that calls their models, custom handlers, metrics."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

from opensearch_ml_stream.extensions.runtimes.service.control import RuntimeControl
from opensearch_ml_stream.extensions.runtimes.service.custom_handlers import CustomHandlers, HandlerCalls
from opensearch_ml_stream.extensions.runtimes.service.engine_calls import EngineCalls
from opensearch_ml_stream.extensions.runtimes.service.runtime_calls import RuntimeCalls
from opensearch_ml_stream.extensions.runtimes.service.runtime_metrics import ModelMetrics, RuntimeMetrics
from opensearch_ml_stream.extensions.runtimes.service.runtime_models import RuntimeModels
from opensearch_ml_stream.extensions.runtimes.service.runtime_protocol import RuntimeProtocol
from opensearch_ml_stream.extensions.runtimes.service.status import ModelStatus, runtimes_folder
from opensearch_ml_stream.plugin.extension import BEHIND_THE_ROUTER, Contribution, Core, Handler


@asynccontextmanager
async def open_runtimes(core: Core) -> AsyncIterator[Contribution]:
    """Contribute the models' protocol, their own routes behind the router, and their metrics."""
    folder = runtimes_folder(core.folder)
    models = RuntimeModels(folder)
    async with RuntimeCalls(models) as calls, EngineCalls(models, core.live.current) as engine_calls:
        handler_calls = HandlerCalls(models, core.models, core.calls, core.observations)
        handlers = CustomHandlers(handler_calls, core.in_flight, core.gate, core.paths)

        def profiles() -> Mapping[str, Mapping[str, Any]]:
            return {status.model_id: {"runtime": _profile(status)} for status in models.current().values()}

        yield Contribution(
            protocols=(RuntimeProtocol(calls, engine_calls, RuntimeControl(folder)),),
            handlers=(Handler(BEHIND_THE_ROUTER, handlers.before),),
            collectors=(RuntimeMetrics(models.current), ModelMetrics(models.current)),
            profiles=profiles,
        )


def _profile(status: ModelStatus) -> dict[str, Any]:
    """Return the part of `/profile` on a model's processes."""
    processes = [{name: value for name, value in asdict(each).items() if name != "socket"} for each in status.processes]
    return {"state": status.state, "reason": status.reason, "processes": processes}
