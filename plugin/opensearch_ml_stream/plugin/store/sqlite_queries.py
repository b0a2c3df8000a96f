"""Queries of the embedded store: each OpenSearch query is compiled to a predicate on documents.

Term queries (term, terms, prefix, wildcard, range) compare whole values, or the words of a `text` field. Full-text
queries (match, match_phrase, query_string) split their text into words first.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax.regex import compile_regex
from opensearch_ml_stream.plugin.store.query_string import Clause, parse_query_string
from opensearch_ml_stream.plugin.store.sqlite_dates import DEFAULT_FORMAT
from opensearch_ml_stream.plugin.store.sqlite_fields import (
    Bounds,
    Candidate,
    Field,
    Kind,
    Types,
    check_pattern,
    check_searchable,
    find_field,
    phrase,
    read_bounds,
    read_limit,
    read_value,
    words,
)
from opensearch_ml_stream.plugin.store.sqlite_search_body import (
    flag_of,
    list_of,
    object_of,
    options_of,
    single,
    unsupported,
)
from opensearch_ml_stream.plugin.store.sqlite_search_bounds import (
    MAX_PATTERN_CHARS,
    MAX_TERMS,
    Counted,
    check_depth,
    counted_clauses,
)

Predicate = Callable[[Candidate], bool]

_CLAUSES = ("must", "filter", "should", "must_not")
_SCORE_MODES = ("avg", "sum", "min", "max", "none")
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "gt": lambda value, limit: value > limit,
    "gte": lambda value, limit: value >= limit,
    "lt": lambda value, limit: value < limit,
    "lte": lambda value, limit: value <= limit,
}
_ROUNDED_UP = ("gt", "lte")
_REGEX_SPECIAL = frozenset(r"\.+*?()[]{}|^$")
_STEPS_A_MATCH = 3
_PREFIXES_A_STEP = 3
_PATTERN_CHARS_A_CLAUSE = 50


@dataclass(frozen=True, slots=True)
class Scope:
    """The context of a query: the fields that it can name, and the counters of the whole search."""

    types: Types
    now: datetime
    clauses: Counted
    depth: int = 0

    def field(self, name: str) -> Field:
        """Return a field that queries may look for values in."""
        field = find_field(self.types, name)
        check_searchable(field)
        return field

    def compile(self, query: object) -> Predicate:
        """Return the predicate of a query within this one."""
        check_depth(self.depth + 1)
        self.clauses.add()
        kind, clause = single(query, "query")
        if kind not in _QUERIES:
            raise InvalidRequest(unsupported(f"query [{kind}]", tuple(_QUERIES)))
        return _QUERIES[kind](replace(self, depth=self.depth + 1), clause)


def compile_query(types: Types, query: object, now: datetime) -> Predicate:
    """Return the predicate of a search's query; InvalidRequest names what is not supported or malformed."""
    return Scope(types, now, counted_clauses()).compile(query)


def has_score(query: Any) -> bool:
    """Whether a query that `compile_query` knows gives its hits a score, or only filters them."""
    kind, clause = single(query, "query")
    if kind != "bool":
        return True
    scoring = [part for name in ("must", "should") for part in _parts(clause, name)]
    return any(map(has_score, scoring)) if scoring else not any(_parts(clause, name) for name in _CLAUSES)


def _match_all(scope: Scope, clause: object) -> Predicate:
    options_of(clause, "match_all", ("boost",))
    return lambda candidate: True


def _term(scope: Scope, clause: object) -> Predicate:
    name, value = single(clause, "term")
    if isinstance(value, Mapping):
        options_of(value, "term", ("value", "boost"))
        value = value.get("value")
    return _any_of(scope, name, [value])


def _terms(scope: Scope, clause: object) -> Predicate:
    fields = {key: value for key, value in object_of(clause, "terms").items() if key != "boost"}
    name, values = single(fields, "terms")
    if not isinstance(values, list):
        raise InvalidRequest(f"[terms] query needs an array of values for [{name}]")
    if len(values) > MAX_TERMS:
        raise InvalidRequest(
            f"failed to create query: The number of terms [{len(values)}] used in the Terms Query request has exceeded "
            f"the allowed maximum of [{MAX_TERMS}]",
            type="query_shard_exception",
        )
    return _any_of(scope, name, values)


def _any_of(scope: Scope, name: str, values: list[Any]) -> Predicate:
    """Match documents whose field has one of the values, which are not analysed: a `text` field has its words."""
    field = scope.field(name)
    exactly: set[Any] = set()
    between: list[Bounds] = []
    for value in values:
        if field.type == "date" and isinstance(value, str):
            scope.clauses.add()
        low, high = read_bounds(field, value, scope.now)
        if low == high:
            exactly.add(low)
        else:
            between.append((low, high))
    if field.kind is Kind.TEXT:
        return lambda candidate: not exactly.isdisjoint(candidate.terms(field))

    def is_one(value: Any) -> bool:
        return value in exactly or any(low <= value <= high for low, high in between if value is not None)

    def matches(candidate: Candidate) -> bool:
        found = candidate.values(field)
        candidate.work.spend(len(found) * len(between))
        return any(is_one(read_value(field, value)) for value in found)

    return matches


def _match(scope: Scope, clause: object) -> Predicate:
    name, value = single(clause, "match")
    needs_all = False
    if isinstance(value, Mapping):
        options_of(value, "match", ("query", "operator", "boost"))
        operator = str(value.get("operator", "or")).lower()
        if operator not in ("or", "and"):
            raise InvalidRequest(f"operator of [match] must be or, and; not [{operator}]")
        needs_all, value = operator == "and", value.get("query")
    return _words(scope, name, value, needs_all=needs_all)


def _words(scope: Scope, name: str, value: object, *, needs_all: bool = False) -> Predicate:
    """Match a field that has one of the value's words, or all of them."""
    field, found = _analysed(scope, name, value, "match")
    if field.kind is not Kind.TEXT:
        return _any_of(scope, name, [value])
    terms = set(found)
    if needs_all:
        return lambda candidate: bool(terms) and terms.issubset(candidate.terms(field))
    return lambda candidate: not terms.isdisjoint(candidate.terms(field))


def _analysed(scope: Scope, name: str, value: object, kind: str) -> tuple[Field, list[str]]:
    """Return a field, and the words of the value, each of which counts as a clause."""
    if value is None or isinstance(value, Mapping | list):
        raise InvalidRequest(f"[{kind}] query needs a text for [{name}]")
    found = words(value)
    scope.clauses.add(max(len(found) - 1, 0))
    return scope.field(name), found


def _ids(scope: Scope, clause: object) -> Predicate:
    values = list_of(options_of(clause, "ids", ("values", "boost")).get("values", []))
    if not all(isinstance(value, str | int) for value in values):
        raise InvalidRequest("[ids] query needs [values], an array of ids")
    ids = {str(value) for value in values}

    def matches(candidate: Candidate) -> bool:
        candidate.work.spend(1)
        return candidate.document.id in ids

    return matches


def _exists(scope: Scope, clause: object) -> Predicate:
    name = options_of(clause, "exists", ("field", "boost")).get("field")
    if not isinstance(name, str) or not name:
        raise InvalidRequest("[exists] query needs the name of a [field]")
    if "*" in name:
        raise InvalidRequest(f"[exists] query needs the name of its [field] in full, not [{name}]")
    field = find_field(scope.types, name)
    return lambda candidate: candidate.has_value(field)


def _bool(scope: Scope, clause: object) -> Predicate:
    options = options_of(clause, "bool", (*_CLAUSES, "minimum_should_match", "boost"))
    must, filters, should, must_not = ([scope.compile(query) for query in _parts(options, name)] for name in _CLAUSES)
    required = [*filters, *must]  # what a caller may not see is left out first
    minimum = options.get("minimum_should_match", 0 if required or not should else 1)
    if not str(minimum).isdecimal() or len(str(minimum)) > 9:
        raise InvalidRequest(unsupported(f"minimum_should_match [{minimum}]", ("integers",)))
    needed = int(minimum)

    def matches(candidate: Candidate) -> bool:
        candidate.work.spend(1)
        if not all(query(candidate) for query in required) or any(query(candidate) for query in must_not):
            return False
        return _at_least(needed, should, candidate)

    return matches


def _parts(options: Mapping[str, Any], name: str) -> list[Any]:
    """Return the queries of a clause of a bool query, which may be one."""
    return list_of(options.get(name, []))


def _at_least(needed: int, queries: list[Predicate], candidate: Candidate) -> bool:
    """Whether at least so many of the queries match; no more are tried than needed."""
    if needed > len(queries):
        return False
    for query in queries if needed else ():
        needed -= query(candidate)
        if not needed:
            break
    return not needed


def _nested(scope: Scope, clause: object) -> Predicate:
    """Match documents in which one nested object at `path` matches `query`.

    Each nested object is matched alone: it has only its own fields, under their full names, and the id of its document.
    """
    options = options_of(clause, "nested", ("path", "query", "ignore_unmapped", "score_mode", "boost"))
    path, query, score_mode = options.get("path"), options.get("query"), options.get("score_mode", "avg")
    if not isinstance(path, str) or query is None:
        raise InvalidRequest("[nested] query needs a [path] and a [query]")
    if score_mode not in _SCORE_MODES:
        raise InvalidRequest(f"No score mode for child query [{score_mode}] found; it may be {', '.join(_SCORE_MODES)}")
    inside = f"{path}."
    own = {name: kind for name, kind in scope.types.items() if name.startswith(inside)}
    inner = replace(scope, types=own).compile(query)
    if scope.types.get(path) == "nested":
        return lambda candidate: any(inner(nested) for nested in candidate.nested(path))
    if flag_of(options, "ignore_unmapped"):
        return lambda candidate: False
    raise InvalidRequest(f"[nested] failed to find nested object under path [{path}]", type="query_shard_exception")


def _prefix(scope: Scope, clause: object) -> Predicate:
    name, value, ignores_case = _pattern(clause, "prefix")
    field = _field_of_texts(scope, name, "prefix")
    wanted = value.lower() if ignores_case else value

    def has_match(candidate: Candidate) -> bool:
        terms = candidate.terms(field)
        candidate.work.spend(len(terms) // _PREFIXES_A_STEP)
        return any((term.lower() if ignores_case else term).startswith(wanted) for term in terms)

    return has_match


def _wildcard(scope: Scope, clause: object) -> Predicate:
    name, value, ignores_case = _pattern(clause, "wildcard")
    return _wildcards(scope, name, value, ignores_case=ignores_case)


def _wildcards(scope: Scope, name: str, value: str, *, ignores_case: bool) -> Predicate:
    """`*` stands for any characters, `?` for one; a backslash in front of either makes it an ordinary character."""
    if len(value) > MAX_PATTERN_CHARS:
        raise InvalidRequest(
            f"The length of a pattern [{len(value)}] has exceeded the allowed maximum of [{MAX_PATTERN_CHARS}]"
        )
    scope.clauses.add(len(value) // _PATTERN_CHARS_A_CLAUSE)
    field = _field_of_texts(scope, name, "wildcard")
    pattern: list[str] = []
    escaped = False
    for character in value:
        if escaped or character not in "*?\\":
            pattern.append(f"\\{character}" if character in _REGEX_SPECIAL else character)
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == "?" or pattern[-1:] != [".*"]:
            pattern.append(".*" if character == "*" else ".")
    regex = compile_regex("".join(pattern), dot_all=True, ignore_case=ignores_case)

    def has_match(candidate: Candidate) -> bool:
        for term in candidate.terms(field):
            candidate.work.spend(_STEPS_A_MATCH + regex.search_steps(term))
            if regex.fullmatch(term):
                return True
        return False

    return has_match


def _pattern(clause: object, kind: str) -> tuple[str, str, bool]:
    """Return field, pattern, and whether case is ignored."""
    name, value = single(clause, kind)
    ignores_case = False
    if isinstance(value, Mapping):
        options = options_of(value, kind, ("value", kind, "case_insensitive", "rewrite", "boost"))
        ignores_case = flag_of(options, "case_insensitive")
        value = options.get("value", options.get(kind))
    if not isinstance(value, str):
        raise InvalidRequest(f"[{kind}] query needs a string for [{name}]")
    return name, value, ignores_case


def _field_of_texts(scope: Scope, name: str, kind: str) -> Field:
    field = scope.field(name)
    check_pattern(field, kind)
    return field


def _range(scope: Scope, clause: object) -> Predicate:
    name, given = single(clause, "range")
    options = options_of(given, "range", (*_COMPARISONS, "boost", "format", "relation"))
    date_format = options.get("format", DEFAULT_FORMAT)
    if not isinstance(date_format, str):
        raise InvalidRequest("[format] in [range] must be a string")
    field = scope.field(name)
    if field.type == "_id":
        raise InvalidRequest("Field [_id] of type [_id] does not support range queries", type="query_shard_exception")
    limits = [
        (_COMPARISONS[kind], read_limit(field, value, scope.now, date_format, round_up=kind in _ROUNDED_UP))
        for kind, value in options.items()
        if kind in _COMPARISONS and value is not None
    ]

    def is_within(value: Any) -> bool:
        return value is not None and all(holds(value, limit) for holds, limit in limits)

    if field.kind is Kind.TEXT:
        return lambda candidate: any(map(is_within, candidate.terms(field)))
    return lambda candidate: any(is_within(read_value(field, value)) for value in candidate.values(field))


def _match_phrase(scope: Scope, clause: object) -> Predicate:
    name, value = single(clause, "match_phrase")
    if isinstance(value, Mapping):
        value = options_of(value, "match_phrase", ("query", "boost")).get("query")
    return _phrase(scope, name, value)


def _phrase(scope: Scope, name: str, value: object) -> Predicate:
    """Match a field in which the words of the value follow one another."""
    field, found = _analysed(scope, name, value, "match_phrase")
    if field.kind is not Kind.TEXT:
        return _any_of(scope, name, [value])
    wanted = phrase(found)
    return lambda candidate: bool(found) and any(wanted in text for text in candidate.phrases(field))


def _query_string(scope: Scope, clause: object) -> Predicate:
    options = options_of(clause, "query_string", ("query", "fields", "default_field", "default_operator", "boost"))
    fields = list_of(options.get("fields") or options.get("default_field"))
    if not all(isinstance(name, str) and name and "*" not in name for name in fields):
        raise InvalidRequest("[query_string] needs the names of its [fields], each in full")
    names = [name.partition("^")[0] for name in fields]
    found: dict[str, list[Predicate]] = {"must": [], "should": [], "must_not": []}
    for part in parse_query_string(options.get("query"), str(options.get("default_operator", "or"))):
        found[part.occurs].append(_in_any_field(scope, part, names))
    needs_one = bool(found["should"]) and not found["must"]
    if not any(found.values()):
        return lambda candidate: False
    return lambda candidate: (
        all(query(candidate) for query in found["must"])
        and not any(query(candidate) for query in found["must_not"])
        and (not needs_one or any(query(candidate) for query in found["should"]))
    )


def _in_any_field(scope: Scope, part: Clause, names: list[str]) -> Predicate:
    queries: list[Predicate] = []
    for name in names:
        scope.clauses.add()
        if part.is_phrase:
            queries.append(_phrase(scope, name, part.text))
        elif "*" in part.text or "?" in part.text:
            queries.append(_wildcards(scope, name, part.text, ignores_case=True))
        else:
            queries.append(_words(scope, name, part.text))
    return lambda candidate: any(query(candidate) for query in queries)


_QUERIES: Mapping[str, Callable[[Scope, object], Predicate]] = {
    "match_all": _match_all,
    "term": _term,
    "terms": _terms,
    "match": _match,
    "ids": _ids,
    "bool": _bool,
    "exists": _exists,
    "nested": _nested,
    "prefix": _prefix,
    "wildcard": _wildcard,
    "range": _range,
    "match_phrase": _match_phrase,
    "query_string": _query_string,
}
