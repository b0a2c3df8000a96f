"""OpenSearch's own REST tests (YAML, from Maven Central), as lists of requests.

A test is a list of steps. Those with `do` name an API, whose path and method are in the suite's specification
(`rest-api-spec/api`); `set` keeps a value of the last response for later steps. What else steps say about responses is
left out: they are compared with each other.
"""

import json
import re
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
import yaml

_SCRIPT = Path(__file__).parents[4] / "scripts" / "opensearch.sh"
_OPTIONS = ("catch", "headers", "warnings", "allowed_warnings", "node_selector", "warnings_regex")
_STASHED = re.compile(r"\$\{(\w+)\}|\$(\w+)")

Steps = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class RestCall:
    """One request of a test. `may_fail` is what the suite says of its response."""

    method: str
    path: str
    body: bytes | None
    headers: dict[str, str]
    may_fail: bool


@dataclass(frozen=True, slots=True)
class RestTest:
    """One test of the suite: the file's setup, its own steps, the file's teardown."""

    name: str
    steps: Steps


class RestSuite:
    """The suite in its jar file, that scripts/opensearch.sh fetches."""

    def __init__(self, jar: Path) -> None:
        self._jar = zipfile.ZipFile(jar)
        self._apis: dict[str, dict[str, Any]] = {}

    def files(self) -> list[str]:
        """The tests' files, as `search/20_default_values`."""
        names = [name.removeprefix("rest-api-spec/test/") for name in self._jar.namelist()]
        return sorted(name.removesuffix(".yml") for name in names if name.endswith(".yml"))

    def tests(self, file: str, version: str) -> Iterator[RestTest]:
        """The tests of a file that are made for that version of OpenSearch, as `3.6.0`."""
        text = self._jar.read(f"rest-api-spec/test/{file}.yml").decode()
        named: dict[str, Steps] = {}
        for document in yaml.safe_load_all(text):
            named |= document or {}
        setup, teardown = named.pop("setup", []), named.pop("teardown", [])
        for name, steps in named.items():
            if not _is_skipped([*setup, *steps], version):
                yield RestTest(f"{file}: {name}", [*setup, *steps, *teardown])

    def call(self, step: Mapping[str, Any], stash: Mapping[str, Any]) -> RestCall:
        """The request of a `do` step, with `stash` for its `$name`s."""
        options = {name: step[name] for name in _OPTIONS if name in step}
        [(api, given)] = [(name, value) for name, value in step.items() if name not in _OPTIONS]
        arguments = _filled(dict(given or {}), stash)
        body = arguments.pop("body", None)
        ignored = arguments.pop("ignore", None)
        method, path = self._route(api, arguments, body is not None)
        if arguments:
            path += "?" + urlencode({name: _text(value) for name, value in arguments.items()})
        headers = {str(name).lower(): str(value) for name, value in options.get("headers", {}).items()}
        if body is not None and "content-type" not in headers:
            headers["content-type"] = "application/json"
        may_fail = "catch" in options or ignored is not None
        return RestCall(method, path, None if body is None else _encoded(body), headers, may_fail)

    def _route(self, api: str, arguments: dict[str, Any], has_body: bool) -> tuple[str, str]:
        """Takes the parts of the path out of the arguments."""
        if api not in self._apis:
            self._apis[api] = json.loads(self._jar.read(f"rest-api-spec/api/{api}.json"))[api]
        paths = [path for path in self._apis[api]["url"]["paths"] if set(path.get("parts", ())) <= set(arguments)]
        chosen = max(paths, key=lambda path: len(path.get("parts", ())))
        template: str = chosen["path"]
        for part in chosen.get("parts", ()):
            template = template.replace(f"{{{part}}}", quote(_text(arguments.pop(part)), safe=",*"))
        methods: list[str] = chosen["methods"]
        return "POST" if has_body and "POST" in methods and "PUT" not in methods else methods[0], template


def fetched_suite() -> RestSuite:
    """The suite, fetched once for a machine."""
    fetched = subprocess.run([_SCRIPT, "rest-tests"], capture_output=True, text=True, check=False)
    if fetched.returncode != 0:
        pytest.fail(f"OpenSearch's REST tests could not be had:\n{fetched.stderr}")
    return RestSuite(Path(fetched.stdout.strip()))


def keep_values(step: Mapping[str, str], response: object, stash: dict[str, Any]) -> None:
    """Carries out a `set` step: path into the last response, name of the stashed value."""
    for path, name in step.items():
        value: Any = response
        for part in re.split(r"(?<!\\)\.", path):
            key = part.replace("\\.", ".")
            if isinstance(value, list):
                value = value[int(key)]
            else:
                value = value[next(iter(value)) if key == "_arbitrary_key_" else key]
        stash[name] = value


def _is_skipped(steps: Steps, version: str) -> bool:
    """Whether a test is not for this version, or waits for all indices, those of others too."""
    waits = (step["do"].get("cluster.health") or {} for step in steps if "do" in step)
    return any(_covers(str(step["skip"].get("version", "")), version) for step in steps if "skip" in step) or any(
        "wait_for_status" in health and "index" not in health for health in waits
    )


def _covers(ranges: str, version: str) -> bool:
    """Whether `all`, ` - 2.99.99` or `1.0.0 - 2.1.0, 3.0.0 - ` has the version in it."""
    number = _number(version)
    for each in filter(None, (part.strip() for part in ranges.split(","))):
        if each == "all":
            return True
        low, _, high = each.partition("-")
        if _number(low) <= number and (not high.strip() or number <= _number(high)):
            return True
    return False


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.strip().split(".") if part.isdigit())


def _filled(value: Any, stash: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return {_filled(key, stash): _filled(member, stash) for key, member in value.items()}
    if isinstance(value, list):
        return [_filled(member, stash) for member in value]
    if not isinstance(value, str) or "$" not in value:
        return value
    whole = _STASHED.fullmatch(value)
    if whole and (name := whole[1] or whole[2]) in stash:
        return stash[name]
    return _STASHED.sub(lambda match: str(stash.get(match[1] or match[2], match[0])), value)


def _text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(_text(member) for member in value)
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: ""}[value]
    return str(value)


def _encoded(body: object) -> bytes:
    """JSON, or for a list (bulk, msearch) a JSON text in each line."""
    if isinstance(body, list):
        lines = (part if isinstance(part, str) else json.dumps(part) for part in body)
        return "".join(line.strip() + "\n" for line in lines).encode()
    return (body if isinstance(body, str) else json.dumps(body, default=str)).encode()
