"""No path, pattern or chain of processors takes more time than its size allows, or fails with an unexpected error."""

import json

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, UpstreamError
from opensearch_ml_stream.connectors.processors.chain import compile_processors
from opensearch_ml_stream.connectors.syntax.filter_path import filter_path
from opensearch_ml_stream.connectors.syntax.jsonpath import MISSING, compile_path
from tests.slow_inputs.grammars import FIELDS, PATH, PROCESSORS, parse
from tests.slow_inputs.search import Subject, check

pytestmark = pytest.mark.slow

_REFUSALS = (InvalidRequest, UpstreamError)


def _filter_fields(patterns: str, body: str) -> None:
    filter_path(parse(body), patterns.split(","))


def _read_path(path: str, document: str) -> None:
    found = compile_path(path).read(parse(document))
    json.dumps(None if found is MISSING else found)


def _process(processors: str, text: str) -> None:
    compile_processors(processors, "input_processors").run_on_text(text)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "subject",
    [
        Subject("filter_path", FIELDS, ("patterns", "value"), _filter_fields, _REFUSALS),
        Subject("JSONPath", PATH, ("path", "value"), _read_path, _REFUSALS),
        Subject("processors", PROCESSORS, ("chain", "value"), _process, _REFUSALS),
    ],
    ids=lambda subject: subject.name,
)
def test_nothing_is_slow(subject: Subject, seed: int) -> None:
    check(subject, seed)
