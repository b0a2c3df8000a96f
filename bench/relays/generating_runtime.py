"""A runtime that makes its chunks itself, as a model in the same process does; runs in MLServer and here, unchanged.

Copied beside the settings that start it. A prompt says what is made, as those of the benchmark's provider do.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator

from mlserver import MLModel
from mlserver.codecs import StringCodec
from mlserver.types import InferenceRequest, InferenceResponse

_PLAN = re.compile(r"\[\[chunks=(\d+) every=([\d.]+) text=(\d+) piece=\d+\]\]")  # see traffic/stream_plan.py
_MARKER_LENGTH = 28


class Generator(MLModel):  # type: ignore[misc]
    async def predict_stream(self, payloads: AsyncIterator[InferenceRequest]) -> AsyncIterator[InferenceResponse]:
        async for payload in payloads:
            plan = _PLAN.search(StringCodec.decode_input(payload.inputs[0])[0])
            assert plan is not None
            pause, padding = float(plan[2]), "x" * (int(plan[3]) - _MARKER_LENGTH)
            for number in range(int(plan[1])):
                if pause:
                    await asyncio.sleep(pause)
                text = f"~{number:06d}t{time.monotonic_ns():019d}~{padding}"
                output = StringCodec.encode_output("text", [text], use_bytes=False)
                yield InferenceResponse(model_name=self.name, outputs=[output])
