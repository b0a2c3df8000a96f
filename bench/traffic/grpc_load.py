"""The load generator for V2 over gRPC: as load.py, by `inference.GRPCInferenceService/ModelStreamInfer`.

    python -m bench.traffic.grpc_load < plan.json        prints a report as JSON

The prompt is the plan's `body`. Messages are not parsed: markers are found in their bytes.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import grpc
import grpc.aio
import uvloop

from bench.traffic.load import LoadPlan, Tally, quantiles
from bench.traffic.stream_plan import MARKER
from opensearch_ml_stream.extensions.v2.grpc import inference_messages as messages

_METHOD = f"/{messages.INFERENCE_SERVICE}/ModelStreamInfer"
_CHANNELS = 8  # each a connection of its own
_OWN_CONNECTION = (("grpc.use_local_subchannel_pool", 1),)


def request(prompt: str) -> bytes:
    message = messages.ModelInferRequest(model_name="bench")
    tensor = message.inputs.add(name="prompt", datatype="BYTES", shape=[1])
    tensor.contents.bytes_contents.append(prompt.encode())
    return bytes(message.SerializeToString())


async def measure(plan: LoadPlan) -> dict[str, object]:
    """The report of load.py."""
    began, cpu, tally = time.monotonic(), time.process_time(), Tally()
    ends = began + plan.seconds if plan.seconds else float("inf")
    left = iter(range(plan.streams or sys.maxsize))
    message = request(plan.body)

    async def stream_on(channel: Any, number: int) -> None:
        await asyncio.sleep(plan.ramp * number / plan.connections)
        while time.monotonic() < ends and next(left, None) is not None:
            await _stream(channel, message, plan, tally)

    async with asyncio.timeout(plan.timeout), AsyncExitStack() as stack:
        address = f"{plan.host}:{plan.port}"
        opened = [grpc.aio.insecure_channel(address, options=_OWN_CONNECTION) for _ in range(_CHANNELS)]
        channels = [await stack.enter_async_context(channel) for channel in opened]
        await asyncio.gather(*[stream_on(channels[at % _CHANNELS], at) for at in range(plan.connections)])
    seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    return {
        "seconds": seconds,
        "streams": tally.streams,
        "cancelled": 0,
        "chunks": tally.chunks,
        "first_ms": quantiles(tally.first),
        "added_ms": quantiles(tally.added),
        "errors": dict(tally.errors),
        "cpu_seconds": cpu,
    }


async def _stream(channel: Any, message: bytes, plan: LoadPlan, tally: Tally) -> None:
    async def requests() -> AsyncIterator[bytes]:
        yield message

    began, expected, last = time.monotonic_ns(), 0, b""
    try:
        async for last in channel.stream_stream(_METHOD)(requests()):
            now = time.monotonic_ns()
            for match in MARKER.finditer(last):
                if int(match[1]) != expected:
                    tally.errors["chunks out of order"] += 1
                    return
                if not expected:
                    tally.first.append(now - began)
                expected += 1
                tally.added.append(now - int(match[2]))
    except grpc.aio.AioRpcError as error:
        tally.errors[error.code().name] += 1
        return
    finally:
        tally.chunks += expected
    if expected != plan.chunks or plan.done.encode() not in last:
        tally.errors["chunks missing"] += 1
    else:
        tally.streams += 1


if __name__ == "__main__":
    sys.stdout.write(json.dumps(uvloop.run(measure(LoadPlan(**json.load(sys.stdin))))))
