"""One prediction that is not streamed: one call of the provider, or several beside each other, results in order."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.predict import post_process, pre_process
from opensearch_ml_stream.connectors.predict.inputs import PredictInput
from opensearch_ml_stream.connectors.predict.painless import PainlessCall
from opensearch_ml_stream.connectors.rendering import CompiledAction, ProviderRequest
from opensearch_ml_stream.plugin.deployments import Deployment
from opensearch_ml_stream.plugin.store import Store

MAX_PARALLEL_CALLS = 8  # of one prediction; a connector's max_connection may allow fewer

Fetch = Callable[[ProviderRequest], Awaitable[bytes]]
Result = dict[str, Any]


async def predict_whole(
    store: Store, deployment: Deployment, action: CompiledAction, given: PredictInput, fetch: Fetch
) -> list[Result]:
    """One `{"output": [...], "status_code": 200}` for each call; any call that fails fails all of them.

    `fetch` sends a request and gives the body of a good answer.
    """
    connector = deployment.connector
    steps = pre_process.steps(action.action, connector.parameters, given)

    async def call(step: pre_process.Step | pre_process.ScriptStep) -> Result:
        if isinstance(step, pre_process.ScriptStep):
            step = pre_process.after_script(step, await _run(store, step.call))
        body = await fetch(action.render(step.parameters))
        if not body.strip():
            raise UpstreamError("Remote service returned empty response body")
        parameters = {**connector.parameters, **given.parameters}
        output = post_process.output(action.action, parameters, body)
        if isinstance(output, PainlessCall):
            output = post_process.after_script(parameters, body, await _run(store, output))
        return {"output": output, "status_code": 200}

    parallel = min(MAX_PARALLEL_CALLS, connector.client_config.max_connection)
    return await _in_order([partial(call, step) for step in steps], parallel)


async def _run(store: Store, script: PainlessCall) -> str | None:
    return await store.run_painless(script.source, script.params)


async def _in_order(calls: Sequence[Callable[[], Awaitable[Result]]], parallel: int) -> list[Result]:
    """The results of all calls, at most `parallel` of them at a time; the first failure ends the others."""
    if len(calls) == 1:
        return [await calls[0]()]
    free = asyncio.Semaphore(parallel)

    async def one(call: Callable[[], Awaitable[Result]]) -> Result:
        async with free:
            return await call()

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(call)) for call in calls]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
