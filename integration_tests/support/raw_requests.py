"""Requests as bytes, for tests that read no more of the response than they want, or send several at once."""

import asyncio
import json

from integration_tests.support.sidecars import Sidecar


def predict_request(model_id: str, question: str, path: str = "_predict/stream", close: bool = False) -> bytes:
    """A POST of `question` to the model; `close`: the last one of its connection."""
    body = json.dumps({"parameters": {"inputs": question}}).encode()
    lines = [
        f"POST /_plugins/_ml/models/{model_id}/{path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *(["Connection: close"] if close else []),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def connected(sidecar: Sidecar) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection that takes little of a response until it is read."""
    return await asyncio.open_connection("127.0.0.1", int(sidecar.url.rpartition(":")[2]), limit=2**12)
