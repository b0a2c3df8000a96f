"""A demo in a process of its own, as `make run` starts it."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from integration_tests.support.conditions import PATIENCE_SECONDS

LAST_LINE = "Ctrl-C ends the sidecar"


class Demo:
    """A running demo; `output` is what it has shown so far."""

    def __init__(self, process: subprocess.Popen[bytes], url: str) -> None:
        self.process = process
        self.url = url
        self.output = ""

    def read_until(self, words: str) -> str:
        assert self.process.stdout is not None
        while words not in self.output:
            data = os.read(self.process.stdout.fileno(), 65536)
            assert data, self.output
            self.output += data.decode()
        return self.output

    def stop(self, number: int) -> None:
        self.process.send_signal(number)
        assert self.process.wait(PATIENCE_SECONDS) == 0


@contextmanager
def running_demo(
    folder: Path, port: int, variables: Mapping[str, str] | None = None, scheme: str = "http"
) -> Iterator[Demo]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MLSTREAM_")}
    command = [sys.executable, "-m", "opensearch_ml_stream.plugin", "demo", "--port", str(port)]
    with subprocess.Popen(
        command,
        env={**environment, "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), **(variables or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            yield Demo(process, f"{scheme}://127.0.0.1:{port}")
        finally:
            if process.poll() is None:
                process.terminate()
