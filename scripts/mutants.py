"""Mutation testing: break the code in one small place, and see whether a test of its room notices.

    .venv/bin/python scripts/mutants.py                            # the sample of all modules
    .venv/bin/python scripts/mutants.py --only decoding --sample 200
    .venv/bin/python scripts/mutants.py --list                     # only show the mutants

A mutant is one change to one module: a comparison turned, a number raised by one, a statement left out. Most changes
are mutmut's; those of `_own_mutations` come on top. Annotations, imports, decorators, `__slots__` and messages in
prose are left alone; outside functions only literals change. Out of all possible mutants, SAMPLE are drawn by a hash
of their own text, so that an edit elsewhere in the module leaves the sample as it is.

Each mutant is tested in a copy of the tree, never in the checkout: first the test files that mirror the module's
path, then all tests of the room. A failed test kills it, and so does a run that exceeds its time or memory.

Results are kept in `.mutants/`, so an interrupted run goes on where it stopped. A result counts again while its
module is unchanged, and a survivor's while the room's tests are too. `--fresh` forgets all results.

scripts/mutants.md lists the accepted survivors: mutants that no test can kill, since they do not change behaviour.
An entry is a heading `### path: function`, the reason, and the changed lines as a diff; line numbers play no part.
Exit status: 0 if at least 85 % of the mutants that are not in that list are killed, 1 if fewer, 2 on a wrong usage.
"""

import argparse
import hashlib
import json
import os
import queue
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

from pytest import ExitCode

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for a run as a file, not as a module

from scripts.mutations import Mutant, changed_line, read_keys, sample_of

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("connectors", "rest_handlers", "plugin", "extensions")
MODULES = tuple(
    f"{room}/opensearch_ml_stream/{room}/{pattern}"
    for room, patterns in {
        "connectors": ("decoding/**/*.py", "wire_format.py", "chunks.py", "rendering/template.py"),
        "rest_handlers": ("http/response_lifecycle.py", "routes/predict_stream.py"),
        "plugin": (
            "server/http1/*.py", "limits/rate_limits.py",
            "upstream/http1/*.py", "upstream/retries.py", "upstream/target.py",
            "upstream/addresses.py", "upstream/trusted_endpoints.py",
        ),
    }.items()
    for pattern in patterns
)  # fmt: skip
SAMPLE = 400
REQUIRED_SHARE = 0.85
MEMORY_BYTES = 4 * 1024**3
TEST_SECONDS = 15  # of one test; the slowest takes about two
PLUGINS = ("asyncio", "timeout", "randomly", "_hypothesis_pytestplugin", "no:cacheprovider")
NOT_COPIED = (".git", ".venv", ".opensearch", ".peers", ".mutants", ".hypothesis", ".*_cache", "__pycache__", "dist")
STATE = ROOT / ".mutants"
ACCEPTED = Path(__file__).with_name("mutants.md")


@dataclass(frozen=True, slots=True)
class Tree:
    """A copy of the checkout in which one mutant at a time is tested. `limits`: seconds for the tests of a room."""

    folder: Path
    limits: dict[str, float]

    @classmethod
    def of_checkout(cls, folder: Path) -> "Tree":
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*NOT_COPIED))
        return cls(folder, {})

    def copy(self, folder: Path) -> "Tree":
        """Return another such tree, with the compiled modules and the limits of this one."""
        shutil.copytree(self.folder, folder)
        return Tree(folder, self.limits)

    def measure(self, room: str) -> None:
        """Run the room's tests on the unchanged code; they must pass, and their time sets the mutants' limit."""
        begun = time.monotonic()
        output = self.folder / "output.txt"
        status = self._pytest([f"{room}/tests"], None, output)
        if status != 0:
            raise SystemExit(f"The tests of {room} fail without a mutant:\n{output.read_text('utf-8', 'replace')}")
        self.limits[room] = 10 + 3 * (time.monotonic() - begun)

    def outcome(self, mutant: Mutant) -> str:
        """Return `killed`, `timeout` or `survived`."""
        room = mutant.module.partition("/")[0]
        file = self.folder / mutant.module
        original = file.read_bytes()
        Path(cache_from_source(str(file))).unlink(missing_ok=True)  # one of the same size and second would count
        shutil.rmtree(self.folder / "hypothesis" / "examples", ignore_errors=True)  # found with other mutants
        file.write_text(mutant.code, "utf-8")
        nearest = self._nearest_tests(mutant.module)
        try:
            for tests in (nearest, [f"{room}/tests", *(f"--ignore={path}" for path in nearest)]):
                status = self._pytest(tests, self.limits[room])
                if status is None:
                    return "timeout"
                if status not in (ExitCode.OK, ExitCode.NO_TESTS_COLLECTED):
                    return "killed"
            return "survived"
        finally:
            file.write_bytes(original)

    def _nearest_tests(self, module: str) -> list[str]:
        """The test files named like the module in the folder that mirrors its own, or all of that folder."""
        room, _, _, *folders, name = module.split("/")
        folder = self.folder / room / "tests" / Path(*folders)
        while not folder.is_dir():
            folder = folder.parent
        files = sorted(folder.rglob(f"test_*{Path(name).stem}*.py")) or [folder]
        return [file.relative_to(self.folder).as_posix() for file in files]

    def _pytest(self, tests: list[str], limit: float | None, output: Path | None = None) -> int | None:
        """Return the exit status, or None if the run exceeded `limit` seconds."""
        path = os.pathsep.join(str(self.folder / room) for room in ROOMS)
        environment = {
            **os.environ,
            "PYTHONPATH": path,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # it takes half the time of a short run
            "HYPOTHESIS_STORAGE_DIRECTORY": str(self.folder / "hypothesis"),
        }
        if limit is not None:
            environment["PYTHONDONTWRITEBYTECODE"] = "1"
        options = [*(f"-p{plugin}" for plugin in PLUGINS), "-x", "--hypothesis-seed=1", "--no-header", "--tb=short"]
        if limit is not None:
            options.append(f"--timeout={TEST_SECONDS}")
        with open(output or os.devnull, "wb") as sink:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *options, *tests],
                cwd=self.folder, env=environment, stdout=sink, stderr=sink, start_new_session=True,
                preexec_fn=_limit_memory,
            )  # fmt: skip
            try:
                return process.wait(limit)
            except subprocess.TimeoutExpired:
                return None
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


class Results:
    """Outcomes that were found before, a JSON line each: those that still count."""

    def __init__(self, *, fresh: bool) -> None:
        STATE.mkdir(exist_ok=True)
        (STATE / ".gitignore").write_text("*\n")
        self._file = STATE / "results.jsonl"
        if fresh:
            self._file.unlink(missing_ok=True)
        lines = self._file.read_text("utf-8").splitlines() if self._file.exists() else []
        self._outcomes: dict[str, list[str]] = dict(json.loads(line) for line in lines)
        self._tests = {room: _digest(sorted((ROOT / room / "tests").rglob("*.py"))) for room in ROOMS}

    def get(self, mutant: Mutant) -> str | None:
        code, tests, outcome = self._outcomes.get(mutant.rank, ("", "", ""))
        still_counts = code == self._code(mutant) and (outcome != "survived" or tests == self._room(mutant))
        return outcome if still_counts else None

    def add(self, mutant: Mutant, outcome: str) -> None:
        entry = [self._code(mutant), self._room(mutant), outcome]
        self._outcomes[mutant.rank] = entry
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps([mutant.rank, entry]) + "\n")

    def _code(self, mutant: Mutant) -> str:
        return hashlib.sha256(mutant.code.encode()).hexdigest()

    def _room(self, mutant: Mutant) -> str:
        return self._tests[mutant.module.partition("/")[0]]


def _digest(files: list[Path]) -> str:
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def test_mutants(mutants: list[Mutant], results: Results, jobs: int) -> dict[str, str]:
    """Return the outcome of each mutant by its rank; what `results` has is not tested again."""
    outcomes = {mutant.rank: outcome for mutant in mutants if (outcome := results.get(mutant)) is not None}
    waiting = [mutant for mutant in mutants if mutant.rank not in outcomes]
    if not waiting:
        return outcomes
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        trees: queue.Queue[Tree] = queue.Queue()
        first = Tree.of_checkout(Path(folder, "1"))
        for room in sorted({mutant.module.partition("/")[0] for mutant in waiting}):
            first.measure(room)
        trees.put(first)
        for number in range(2, jobs + 1):
            trees.put(first.copy(Path(folder, str(number))))

        def test(mutant: Mutant) -> tuple[Mutant, str]:
            tree = trees.get()
            try:
                return mutant, tree.outcome(mutant)
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(jobs) as pool:
            try:
                for number, future in enumerate(as_completed([pool.submit(test, mutant) for mutant in waiting]), 1):
                    mutant, outcome = future.result()
                    results.add(mutant, outcome)
                    outcomes[mutant.rank] = outcome
                    _say(f"{number}/{len(waiting)} {outcome:8} {mutant.module}:{mutant.line}")
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    return outcomes


def report(mutants: list[Mutant], outcomes: dict[str, str]) -> bool:
    """Print the table and the survivors; whether enough of the mutants were killed."""
    accepted = read_keys(ACCEPTED.read_text("utf-8") if ACCEPTED.exists() else "")
    counts: dict[str, Counter[str]] = {}
    survivors: list[Mutant] = []
    for mutant in mutants:
        outcome = outcomes[mutant.rank]
        if mutant.key in accepted and outcome == "survived":
            outcome = "accepted"
        elif mutant.key in accepted:
            _say(f"{ACCEPTED.name} has a mutant that is killed:\n{mutant}")
        elif outcome == "survived":
            survivors.append(mutant)
        counts.setdefault(mutant.module, Counter())[outcome] += 1
    whole = sum(counts.values(), Counter())
    for mutant in survivors:
        _say(f"\n{mutant}")
    columns = ("killed", "timeout", "survived", "accepted")
    _say("\n" + " ".join(f"{title:>8}" for title in (*columns, "share")))
    for module, count in [*counts.items(), ("all", whole)]:
        _say(" ".join(f"{count[column]:8}" for column in columns) + f" {_share(count):8.1%} {module}")
    for module, function, removed, _ in accepted:
        lines = {changed_line(line) for line in (ROOT / module).read_text("utf-8").splitlines()}
        if not lines.issuperset(removed):
            _say(f"{ACCEPTED.name} has lines that are no more in {module}: {function}: {' / '.join(removed)}")
    return _share(whole) >= REQUIRED_SHARE


def _share(count: Counter[str]) -> float:
    """The killed ones among those that change behaviour."""
    killed = count["killed"] + count["timeout"]
    return killed / max(1, killed + count["survived"])


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="only modules whose path contains TEXT")
    parser.add_argument("--sample", type=int, default=SAMPLE, help="how many mutants (default: %(default)s)")
    parser.add_argument("--jobs", type=int, choices=(1, 2), default=2, help="processes at a time (default: 2)")
    parser.add_argument("--fresh", action="store_true", help="forget the results of earlier runs")
    parser.add_argument("--list", action="store_true", help="show the mutants and test none")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    paths = [path for pattern in MODULES for path in sorted(ROOT.glob(pattern)) if options.only in path.as_posix()]
    mutants = sample_of(ROOT, paths, options.sample)
    if options.list:
        for mutant in mutants:
            _say(f"{mutant}\n")
        return
    outcomes = test_mutants(mutants, Results(fresh=options.fresh), options.jobs)
    sys.exit(0 if report(mutants, outcomes) else 1)


if __name__ == "__main__":
    main()
