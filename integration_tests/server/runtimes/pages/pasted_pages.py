"""The indented blocks of a page of docs/, pasted into a shell in a folder of the reader's own."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from integration_tests.cli.commands import environment

DOCS = Path(__file__).parents[4] / "docs"
# Lines of four blanks and more; empty ones belong to a block only inside of a here-document.
_HERE_DOCUMENT = r" {4}[^\n]*<<'END'\n(?:(?: {4}[^\n]*)?\n)*? {4}END\n"
_BLOCK = re.compile(rf"(?:{_HERE_DOCUMENT}| {{4}}[^\n]*\n)+")


def blocks_of(page: str) -> list[str]:
    """The blocks of the page, without their indentation."""
    text = (DOCS / page).read_text("utf-8")
    blocks = [match[0] for match in re.finditer(rf"(?<=\n)\n({_BLOCK.pattern})", text)]
    return ["\n".join(line[4:] for line in block.strip("\n").splitlines()) for block in blocks]


@dataclass
class Reader:
    """Someone who pastes blocks into a shell. `replaced` are the addresses that are others here."""

    folder: Path
    page: str
    replaced: dict[str, str] = field(default_factory=dict)
    pasted: list[str] = field(default_factory=list)

    def block(self, words: str) -> str:
        """The only block with these words, which counts as read from now on."""
        (block,) = [block for block in blocks_of(self.page) if words in block]
        self.pasted.append(block)
        for documented, actual in self.replaced.items():
            block = block.replace(documented, actual)
        return block

    def paste(self, words: str, **variables: str) -> str:
        """What the block with these words prints; it must succeed."""
        return self.run(self.block(words), **variables)

    def run(self, command: str, **variables: str) -> str:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        ended = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            env=environment(PATH=path, **variables), cwd=self.folder, capture_output=True, text=True, timeout=90,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        return ended.stdout
