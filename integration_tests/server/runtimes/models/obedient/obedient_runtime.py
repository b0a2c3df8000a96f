"""Does what its input says: `count 200 0.01`, `block FILE`, `leak 64`, `print`, `exit`, `state`."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator

from mlserver import MLModel
from mlserver.codecs import StringCodec
from mlserver.types import InferenceRequest, InferenceResponse

PADDING = "." * 1000


class Obedient(MLModel):
    async def load(self) -> bool:
        self._leaked: list[bytes] = []
        self._yielded = self._closed = self._open = 0
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        words = _words(payload)
        if words[0] == "block":
            open(f"{words[1]}.waits", "w").close()  # noqa: ASYNC230
            while not os.path.exists(words[1]):  # noqa: ASYNC240 - the fault that is tested
                time.sleep(0.01)  # noqa: ASYNC251
        elif words[0] == "wait":
            await asyncio.sleep(float(words[1]))
        elif words[0] == "leak":
            self._leaked.append(os.urandom(int(words[1]) * 2**20))
        elif words[0] == "exit":
            os._exit(3)
        elif words[0] == "state":
            return self._say(f"{self._yielded} {self._closed} {self._open}")
        return self._say(" ".join(words))

    async def predict_stream(self, payloads: AsyncIterator[InferenceRequest]) -> AsyncIterator[InferenceResponse]:
        async for payload in payloads:
            words = _words(payload)
            self._open += 1
            try:
                async for text in _texts(words):
                    self._yielded += 1
                    yield self._say(text)
            except (GeneratorExit, asyncio.CancelledError):
                self._closed += 1
                raise
            finally:
                self._open -= 1

    def _say(self, text: str) -> InferenceResponse:
        output = StringCodec.encode_output("output", [text], use_bytes=False)
        return InferenceResponse(model_name=self.name, outputs=[output])


async def _texts(words: list[str]) -> AsyncIterator[str]:
    """`count` numbers with a pause between them; `fill` the same with long texts; `print` with all that prints."""
    for number in range(int(words[1])):
        await asyncio.sleep(float(words[2]))
        if words[0] == "print":
            print("printed by the model", flush=True)  # noqa: T201 - the fault that is tested
            sys.stdout.buffer.write(b"\x00\x01\xff")
            sys.stdout.flush()
            os.write(1, b"{}\n" * 1000)
            await (await asyncio.create_subprocess_shell("echo printed by a child")).wait()
        yield f"{number} {PADDING}" if words[0] == "fill" else f"{number} "


def _words(payload: InferenceRequest) -> list[str]:
    return StringCodec.decode_input(payload.inputs[0])[0].split(" ")
