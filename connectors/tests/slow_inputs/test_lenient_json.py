"""Search for slow bodies among those that only a lenient parser reads: with comments, blanks and empty strings."""

from collections.abc import Callable

import pytest

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.predict.inputs import read_predict_input
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.extensions.v2.protocol.json_requests import read_request
from tests.slow_inputs.derivations import Grammar
from tests.slow_inputs.search import Subject, check

pytestmark = pytest.mark.slow

_BODY: Grammar = {
    "body": ["<o>{<o><members><o>}<o>", '{"parameters":{<members>}}<o>', "\ufeff<o>{<members>}<chars>",
             '{"text_docs":[<items>],"parameters":{<o>}}', '{"inputs":[<items>]}<o>', "<o>"],
    "members": ['<name><o>:<o><value>', "<members><o>,<o><members>"],
    "name": ['"<chars>"', '""', '"a"', "<o><name>"],
    "value": ['""', '"<chars>"', "1", "-0.5e3", "null", "[<items>]", "{<members>}", "[<o>]", "{<o>}", "<o><value>"],
    "items": ["<value>", "<items><o>,<o><items>", "<items>,<items>"],
    "o": ["", " ", "\n", "/**/", "//\n", "/*<chars>*/", "//<chars>\n", "/", "/*", "//", "<o><o>"],
    "chars": ["", "a", "é", "*", "/", " ", '"', r"\"", r"\\", "\\", ",", "[", "{", ":", "7", "<chars><chars>"],
}  # fmt: skip


_SECONDS = 0.07  # the most values that a mebibyte may hold take some 55 ms
_READERS = pytest.mark.parametrize(
    "read",
    [read_predict_input, jsontext.load_object, jsontext.loads, read_request],
    ids=lambda read: f"{read.__module__}.{read.__name__}",
)


def _repeated(text: str) -> bytes:
    """Return a body of a mebibyte that holds the text again and again: what costs a little each time shows."""
    times = (1 << 20) // (len(text) + 1)
    return ('{"inputs":[' + ",".join([text] * times) + "]}").encode("utf-8", "surrogatepass")


@_READERS
def test_no_lenient_body_takes_more_than_its_time(read: Callable[[bytes], object]) -> None:
    check(Subject(f"lenient JSON of {read.__module__}", _BODY, ("body",), read, (MLStreamError,), str.encode))


@_READERS
def test_nothing_lenient_takes_more_than_its_time_again_and_again(read: Callable[[bytes], object]) -> None:
    name = f"repeated JSON of {read.__module__}"
    check(Subject(name, _BODY, ("value",), read, (MLStreamError,), _repeated, _SECONDS, 1 << 10))
