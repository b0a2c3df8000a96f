"""What the processors of one run share: the work limit, and reading values as text and as documents."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.syntax.jsonpath import MISSING, Missing, Node
from opensearch_ml_stream.connectors.syntax.work_limit import WorkLimit

_STEPS_A_COPY = 5  # beside those for its length

Config = Mapping[str, Any]


class Document:
    """A JSON value that is edited in place; `root` is replaced if the path is that of the whole document."""

    __slots__ = ("root",)

    def __init__(self, root: Any) -> None:
        self.root = root

    def replace(self, node: Node, value: Any) -> None:
        """Put another value in the place of a node."""
        if node.container is None:
            self.root = value
        else:
            node.container[node.key] = value


class Processing:
    """One run of a chain. Every parse, print and copy counts as work, whose limit also bounds what comes out."""

    __slots__ = ("_own", "work")

    def __init__(self, work: WorkLimit) -> None:
        self.work = work
        self._own: Any = None

    def text(self, value: Any) -> str:
        """Return a string as it is, any other value as compact JSON."""
        if isinstance(value, str):
            return value
        try:
            text = jsontext.dumps(value)
        except InvalidRequest:
            self.work.refuse("meet JSON that is nested too deeply, or a number that JSON cannot hold")
            raise
        self.work.spend_on_json(text)
        return text

    def parse(self, value: Any) -> Any | Missing:
        """Return a value to read from: what a string holds as JSON (MISSING if it is none), any other as it is."""
        if not isinstance(value, str):
            return value
        self.work.spend_on_json(value)
        try:
            return json.loads(value)
        except json.JSONDecodeError:
            return MISSING
        except (ValueError, RecursionError):
            self.work.refuse("meet JSON that is nested too deeply, or has a number of thousands of digits")
            raise

    def document(self, value: Any) -> Document | None:
        """Return a copy of the value for edits in place, None if it is a string that is not JSON.

        The result of the edit before needs no copy.
        """
        if isinstance(value, dict | list) and value is self._own:
            return Document(value)
        self.work.spend(_STEPS_A_COPY)
        root = self.parse(self.text(value))
        return None if root is MISSING else Document(root)

    def keep(self, document: Document) -> Any:
        """Return the edited document, which the next edit may change. Nothing else may refer to parts of it."""
        self._own = document.root
        return document.root

    def give_away(self) -> None:
        """Say that the last edited document is referred to by others from here on."""
        self._own = None


Processor = Callable[[Any, Processing], Any]


def required_string(config: Config, key: str, config_path: str) -> str:
    """Return the value of a key. InvalidRequest, beginning with the config's path, if it is no string with content."""
    value = config.get(key)
    if not isinstance(value, str) or not value.strip():
        raise InvalidRequest(f"{config_path}.{key} must be a string that is not empty")
    return value


def default_value(config: Config) -> Callable[[Any, Processing], Any]:
    """Return the function that gives a processor's `default`, and the value itself if there is none."""
    default = config.get("default")
    text = jsontext.dumps(default)

    def value_or_default(value: Any, processing: Processing) -> Any:
        if default is None:
            return value
        processing.work.spend_on_json(text)
        return default

    return value_or_default
