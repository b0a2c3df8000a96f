"""A command on a terminal of its own."""

import os
import subprocess
import sys
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from integration_tests.cli.commands import COMMAND, environment
from integration_tests.support.conditions import PATIENCE_SECONDS, eventually

CTRL_C, CTRL_D, ENTER, UP = "\x03", "\x04", "\r", "\x1b[A"


class Terminal:
    """A command on a terminal, which `output` is a copy of; `unread` is what no `read_until` has come to yet."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.output = ""
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._read = 0

    @property
    def unread(self) -> str:
        return self.output[self._read :]

    def read_until(self, words: str) -> str:
        """What comes up to these words, and they."""
        assert self._process.stdout is not None
        while words not in self.unread:
            data = os.read(self._process.stdout.fileno(), 4096)
            assert data, self.output
            self.output += self._decoder.decode(data)  # a character may come in two reads
        begin, self._read = self._read, self.output.index(words, self._read) + len(words)
        return self.output[begin : self._read]

    def press(self, keys: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(keys.encode())
        self._process.stdin.flush()

    def interrupt(self) -> None:
        """Presses Ctrl-C once the command waits for keys: one that comes before that is seen with the next key."""
        spawn = self._process.pid
        (command,) = Path(f"/proc/{spawn}/task/{spawn}/children").read_text().split()
        eventually(lambda: Path(f"/proc/{command}/stat").read_text().rpartition(")")[2].split()[0] == "S")
        self.press(CTRL_C)

    def type(self, line: str) -> None:
        self.press(f"{line}\n")


@contextmanager
def on_a_terminal(*arguments: str, **variables: str) -> Iterator[Terminal]:
    spawn = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"
    command = [sys.executable, "-c", spawn, *COMMAND, *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment(**variables)) as process:
        try:
            yield Terminal(process)
            assert process.wait(PATIENCE_SECONDS) == 0
        finally:
            process.kill()
