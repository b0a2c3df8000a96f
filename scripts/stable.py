"""Run `make test` many times beside two busy loops, each time in another order, and compare what the runs say.

    .venv/bin/python scripts/stable.py [--rounds 10] [--loops 2] [-- PYTEST_ARGUMENT...]

Prints a table for each round: its seed, seconds, and counts. Exit status: 0 if all rounds passed with the same counts,
1 if not.
"""

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
_COUNTS = re.compile(r"^(?=.*\d+ (?:passed|failed|error))(.*) in [\d.]+s.*$", re.MULTILINE)
_FAILURES = re.compile(r"^=+ (?:FAILURES|ERRORS) =+$", re.MULTILINE)


def main() -> int:
    """Run the rounds and print their table."""
    arguments = _arguments()
    outcomes: list[tuple[int, str]] = []
    print("| round | seed | seconds | exit | outcome |\n|---|---|---|---|---|", flush=True)
    with _busy_loops(arguments.loops):
        for number in range(1, arguments.rounds + 1):
            seed = arguments.seed + number
            began = time.monotonic()
            ended = _run(seed, arguments.pytest)
            counts = _COUNTS.findall(ended.stdout)
            outcomes.append((ended.returncode, counts[-1] if counts else "no result"))
            seconds = time.monotonic() - began
            print(f"| {number} | {seed} | {seconds:.0f} | {outcomes[-1][0]} | {outcomes[-1][1]} |", flush=True)
            if ended.returncode:
                print(_why(ended.stdout), flush=True)
    return 0 if set(outcomes) == {(0, outcomes[0][1])} else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--loops", type=int, default=2)
    parser.add_argument("--seed", type=int, default=100, help="the rounds have the seeds after this one")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    return parser.parse_args()


def _run(seed: int, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    options = " ".join([f"--randomly-seed={seed}", *arguments])
    return subprocess.run(["make", "test", f"ARGS={options}"], cwd=CHECKOUT, capture_output=True, text=True)


def _why(output: str) -> str:
    """Return what pytest says of the tests that failed, or all of it if it says that otherwise."""
    failures = _FAILURES.search(output)
    return output[failures.start() :] if failures else output


@contextmanager
def _busy_loops(count: int) -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


if __name__ == "__main__":
    sys.exit(main())
