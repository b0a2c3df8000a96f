"""The JSONPath library with its regular expressions on RE2: paths come from callers, and Python's can hang."""

import re

import jsonpath
from jsonpath.function_extensions import Match, Search

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.regex import compile_regex


class _Match(Match):
    def __call__(self, value: object, pattern: object) -> bool:
        return isinstance(value, str) and isinstance(pattern, str) and bool(compile_regex(pattern).fullmatch(value))


class _Search(Search):
    def __call__(self, value: object, pattern: object) -> bool:
        return isinstance(value, str) and isinstance(pattern, str) and bool(compile_regex(pattern).search(value))


class _Environment(jsonpath.JSONPathEnvironment):
    def setup_function_extensions(self) -> None:
        super().setup_function_extensions()
        self.function_extensions["match"] = _Match()
        self.function_extensions["search"] = _Search()

    def compare(self, left: object, operator: str, right: object) -> bool:
        if operator != "=~":
            return super().compare(left, operator, right)
        pattern, flags = getattr(right, "pattern", None), getattr(right, "flags", 0)
        if not isinstance(left, str) or not isinstance(pattern, str):
            return False
        regex = compile_regex(pattern, dot_all=bool(flags & re.DOTALL), ignore_case=bool(flags & re.IGNORECASE))
        return bool(regex.fullmatch(left))


def parse_path(source: str) -> jsonpath.JSONPath:
    """The path; InvalidRequest says what is wrong with it."""
    try:
        path = _ENVIRONMENT.compile(source)
    except jsonpath.JSONPathError as error:
        reason = str(error).splitlines()[0]
        raise InvalidRequest(f"[{source}] is not a JSONPath that is understood here: {reason}") from None
    if not isinstance(path, jsonpath.JSONPath):
        raise InvalidRequest(f"[{source}] joins several JSONPaths; give one")
    return path


_ENVIRONMENT = _Environment()
