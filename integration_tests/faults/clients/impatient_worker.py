"""A worker with short times, run as a program: `python impatient_worker.py FOLDER SETTINGS LIMITS` (JSON objects)."""

import asyncio
import json
import logging
import socket
import sys
from pathlib import Path
from typing import Any

from opensearch_ml_stream.plugin.app import open_sidecar
from opensearch_ml_stream.plugin.server import worker
from opensearch_ml_stream.plugin.server.http1.limits import ConnectionLimits
from opensearch_ml_stream.plugin.settings import Settings


async def main(folder: Path, settings: Settings, limits: ConnectionLimits) -> None:
    async with open_sidecar(settings, folder) as sidecar:
        with socket.create_server(("127.0.0.1", 0), backlog=4096) as listener:
            logging.info("listening on http://127.0.0.1:%s", listener.getsockname()[1])
            await worker.Server(sidecar, 1, limits).serve([listener])


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    worker.SWEEP_SECONDS = 0.1
    given, times = (json.loads(argument) for argument in sys.argv[2:])
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    asyncio.run(main(Path(sys.argv[1]), Settings(**values), ConnectionLimits(**times)))
