"""docs/performance.md: its generated parts stand between markers, `<!-- bench:NAME -->` and `<!-- /bench -->`."""

import json
import os
import platform
import re
import subprocess
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.relays import peers

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "performance.md"
RESULTS = DOCS / "performance.json"
PLOT = DOCS / "performance.svg"


def fill(page: Path, block: str, text: str) -> bool:
    """Replaces the page's block of that name by the text; whether the page has such a block."""
    before = page.read_text()
    marked = re.compile(rf"(<!-- bench:{re.escape(block)} -->\n).*?(<!-- /bench -->)", re.DOTALL)
    after, blocks = marked.subn(lambda match: f"{match[1]}{text.rstrip()}\n{match[2]}", before)
    if blocks:
        page.write_text(after)
    return bool(blocks)


def save(name: str, value: object) -> None:
    """Writes one part of the results file."""
    parts = load()
    parts[name] = value
    RESULTS.write_text(json.dumps(parts, indent=1, sort_keys=True) + "\n")


def load() -> dict[str, Any]:
    """All parts of the results file, by name."""
    if not RESULTS.exists():
        return {}
    parts: dict[str, Any] = json.loads(RESULTS.read_text())
    return parts


def conditions(rounds: int, systems: Collection[str]) -> str:
    """Where, when and of what versions these systems were measured, in a line."""
    cpus = len(os.sched_getaffinity(0))
    how = "1 round" if rounds == 1 else f"{rounds} interleaved rounds, medians"
    parts = [f"{datetime.now(UTC):%Y-%m-%d}", how, f"{_cpu_model()}, {cpus} cores"]
    parts += [f"Linux {platform.release().split('-')[0]}", f"Python {platform.python_version()}"]
    if "nginx" in systems:
        parts.append(_nginx_version())
    return "; ".join([*parts, *(_plain(names[0]) for peer, names in peers.PACKAGES.items() if peer in systems)])


def commit() -> str:
    """The commit of this checkout, shortened; empty if it is none."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, cwd=DOCS.parent).stdout.strip()


def _plain(requirement: str) -> str:
    """`litellm 1.106.2` of `litellm[proxy]==1.106.2`."""
    return re.sub(r"(\[\w+\])?==", " ", requirement)


def _cpu_model() -> str:
    match = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return match[1].split("@")[0].strip() if match else platform.machine()


def _nginx_version() -> str:
    version = subprocess.run(["nginx", "-v"], capture_output=True, text=True, check=True).stderr
    return version.strip().rpartition(" ")[2].replace("/", " ")
