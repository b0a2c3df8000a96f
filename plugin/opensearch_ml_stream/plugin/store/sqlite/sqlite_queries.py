"""Queries of the embedded store: a query as OpenSearch has it becomes a predicate on documents.

Term queries (term, terms, prefix, wildcard, range) compare whole values, or the words of a `text` field; full-text ones
(match, match_phrase, query_string) take their text apart first.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax.regex import compile_regex
from opensearch_ml_stream.plugin.store import Document
from opensearch_ml_stream.plugin.store.query_string import Clause, parse_query_string
from opensearch_ml_stream.plugin.store.sqlite.sqlite_body import list_of, object_of, options_of, single, unsupported
from opensearch_ml_stream.plugin.store.sqlite.sqlite_field_values import (
    Field,
    Kind,
    Types,
    exact,
    find_field,
    has_value,
    nested_objects,
    words,
)

Predicate = Callable[[Document], bool]

_CLAUSES = ("must", "filter", "should", "must_not")
_SCORE_MODES = ("avg", "sum", "min", "max", "none")
_BOUNDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "gt": lambda value, bound: value > bound,
    "gte": lambda value, bound: value >= bound,
    "lt": lambda value, bound: value < bound,
    "lte": lambda value, bound: value <= bound,
}
_REGEX_SPECIAL = frozenset(r"\.+()[]{}|^$")


def compile_query(types: Types, query: object) -> Predicate:
    """Return the predicate of a query; InvalidRequest names what is not supported or malformed."""
    kind, clause = single(query, "query")
    if kind not in _QUERIES:
        raise InvalidRequest(unsupported(f"query [{kind}]", tuple(_QUERIES)))
    return _QUERIES[kind](types, clause)


def _match_all(types: Types, clause: object) -> Predicate:
    options_of(clause, "match_all", ("boost",))
    return lambda document: True


def _term(types: Types, clause: object) -> Predicate:
    name, value = single(clause, "term")
    if isinstance(value, Mapping):
        options_of(value, "term", ("value", "boost"))
        value = value.get("value")
    return _any_of(types, name, [value])


def _terms(types: Types, clause: object) -> Predicate:
    fields = {key: value for key, value in object_of(clause, "terms").items() if key != "boost"}
    name, values = single(fields, "terms")
    if not isinstance(values, list):
        raise InvalidRequest(f"[terms] query needs an array of values for [{name}]")
    return _any_of(types, name, values)


def _any_of(types: Types, name: str, values: list[Any]) -> Predicate:
    """Match documents whose field has one of the values, which are not analysed: a `text` field has its words."""
    field = find_field(types, name)
    if any(value is None or isinstance(value, Mapping | list) for value in values):
        raise InvalidRequest(f"value for [{name}] must be a string, a number or a boolean")
    terms = {exact(value) for value in values}
    if field.kind is Kind.TEXT:
        return lambda document: any(word in terms for value in field.values(document) for word in words(value))
    return lambda document: any(exact(value) in terms for value in field.values(document))


def _match(types: Types, clause: object) -> Predicate:
    name, value = single(clause, "match")
    needs_all = False
    if isinstance(value, Mapping):
        options_of(value, "match", ("query", "operator", "boost"))
        operator = str(value.get("operator", "or")).lower()
        if operator not in ("or", "and"):
            raise InvalidRequest(f"operator of [match] must be or, and; not [{operator}]")
        needs_all, value = operator == "and", value.get("query")
    field = find_field(types, name)
    if field.kind is not Kind.TEXT:
        return _any_of(types, name, [value])
    terms = set(words(value))
    enough = terms.issubset if needs_all else lambda present: not terms.isdisjoint(present)
    return lambda document: bool(terms) and enough({word for text in field.values(document) for word in words(text)})


def _ids(types: Types, clause: object) -> Predicate:
    values = options_of(clause, "ids", ("values", "boost")).get("values")
    ids = {str(value) for value in list_of(values)} if values is not None else set()
    return lambda document: document.id in ids


def _exists(types: Types, clause: object) -> Predicate:
    name = options_of(clause, "exists", ("field", "boost")).get("field")
    if not isinstance(name, str):
        raise InvalidRequest("[exists] query needs the name of a [field]")
    field = find_field(types, name)
    return lambda document: has_value(field.values(document))


def _bool(types: Types, clause: object) -> Predicate:
    options = options_of(clause, "bool", (*_CLAUSES, "minimum_should_match", "boost"))
    must, filters, should, must_not = (
        [compile_query(types, query) for query in list_of(options.get(name, []))] for name in _CLAUSES
    )
    required = [*must, *filters]
    minimum = options.get("minimum_should_match", 0 if required or not should else 1)
    if not str(minimum).isdigit():
        raise InvalidRequest(unsupported(f"minimum_should_match [{minimum}]", ("integers",)))
    needed = int(minimum)

    def matches(document: Document) -> bool:
        if not all(query(document) for query in required) or any(query(document) for query in must_not):
            return False
        return needed == 0 or sum(query(document) for query in should) >= needed

    return matches


def _nested(types: Types, clause: object) -> Predicate:
    """Match documents of whose nested objects at `path` one matches `query`, each looked at by itself.

    A nested object has its own fields alone, under their full names, and the id of its document.
    """
    options = options_of(clause, "nested", ("path", "query", "ignore_unmapped", "score_mode", "boost"))
    path, query, score_mode = options.get("path"), options.get("query"), options.get("score_mode", "avg")
    if not isinstance(path, str) or query is None:
        raise InvalidRequest("[nested] query needs a [path] and a [query]")
    if score_mode not in _SCORE_MODES:
        raise InvalidRequest(f"No score mode for child query [{score_mode}] found; it may be {', '.join(_SCORE_MODES)}")
    inner = compile_query({name: kind for name, kind in types.items() if name.startswith(f"{path}.")}, query)
    if types.get(path) == "nested":
        return lambda document: any(inner(nested) for nested in nested_objects(document, path))
    if str(options.get("ignore_unmapped", False)).lower() == "true":
        return lambda document: False
    raise InvalidRequest(f"[nested] failed to find nested object under path [{path}]", type="query_shard_exception")


def _prefix(types: Types, clause: object) -> Predicate:
    name, value, ignores_case = _pattern(clause, "prefix")
    return _matching_terms(types, name, f"{_escaped(value)}.*", ignores_case)


def _wildcard(types: Types, clause: object) -> Predicate:
    """`*` stands for any characters, `?` for one; a backslash in front of either makes it an ordinary character."""
    name, value, ignores_case = _pattern(clause, "wildcard")
    pattern, escaped = "", False
    for character in value:
        if escaped or character not in "*?\\":
            pattern, escaped = pattern + _escaped(character, ordinary=escaped), False
        elif character == "\\":
            escaped = True
        else:
            pattern += ".*" if character == "*" else "."
    return _matching_terms(types, name, pattern, ignores_case)


def _pattern(clause: object, kind: str) -> tuple[str, str, bool]:
    """Return field, pattern, and whether case is ignored."""
    name, value = single(clause, kind)
    ignores_case = False
    if isinstance(value, Mapping):
        options = options_of(value, kind, ("value", kind, "case_insensitive", "rewrite", "boost"))
        ignores_case = str(options.get("case_insensitive", False)).lower() == "true"
        value = options.get("value", options.get(kind))
    if not isinstance(value, str):
        raise InvalidRequest(f"[{kind}] query needs a string for [{name}]")
    return name, value, ignores_case


def _escaped(text: str, *, ordinary: bool = True) -> str:
    """Return the text as a pattern of RE2 that matches it."""
    special = _REGEX_SPECIAL | {"*", "?"} if ordinary else _REGEX_SPECIAL
    return "".join(f"\\{character}" if character in special else character for character in text)


def _matching_terms(types: Types, name: str, pattern: str, ignores_case: bool) -> Predicate:
    field = find_field(types, name)
    matches = compile_regex(pattern, dot_all=True, ignore_case=ignores_case).fullmatch
    return lambda document: any(matches(term) for term in _terms_of(field, document))


def _terms_of(field: Field, document: Document) -> list[str]:
    values = field.values(document)
    if field.kind is Kind.TEXT:
        return [word for value in values for word in words(value)]
    return [exact(value) for value in values if not isinstance(value, Mapping)]


def _range(types: Types, clause: object) -> Predicate:
    name, bounds = single(clause, "range")
    options = options_of(bounds, "range", (*_BOUNDS, "boost", "format", "relation"))
    field = find_field(types, name)
    limits = [(_BOUNDS[kind], _comparable(value)) for kind, value in options.items() if kind in _BOUNDS]

    def is_within(value: object) -> bool:
        comparable = _comparable(value)
        return all(type(comparable) is type(bound) and holds(comparable, bound) for holds, bound in limits)

    return lambda document: any(is_within(value) for value in field.values(document))


def _comparable(value: object) -> float | str:
    """Return a number, or a date in epoch milliseconds, for what can be read as one; any other value as a string."""
    text = exact(value)
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text).timestamp() * 1000
    except (ValueError, OverflowError):
        return text


def _match_phrase(types: Types, clause: object) -> Predicate:
    name, value = single(clause, "match_phrase")
    if isinstance(value, Mapping):
        value = options_of(value, "match_phrase", ("query", "boost")).get("query")
    return _phrase(types, name, value)


def _phrase(types: Types, name: str, value: object) -> Predicate:
    """Match a field in which the words of the value follow one another."""
    field = find_field(types, name)
    if field.kind is not Kind.TEXT:
        return _any_of(types, name, [value])
    phrase = words(value)
    size = len(phrase)

    def has_phrase(text: object) -> bool:
        found = words(text)
        return any(found[start : start + size] == phrase for start in range(len(found) - size + 1))

    return lambda document: size > 0 and any(has_phrase(text) for text in field.values(document))


def _query_string(types: Types, clause: object) -> Predicate:
    options = options_of(clause, "query_string", ("query", "fields", "default_field", "default_operator", "boost"))
    fields = list_of(options.get("fields") or options.get("default_field"))
    if not all(isinstance(name, str) and name and "*" not in name for name in fields):
        raise InvalidRequest("[query_string] needs the names of its [fields], each in full")
    clauses = parse_query_string(options.get("query"), str(options.get("default_operator", "or")))
    return compile_query(types, {"bool": {
        name: [_clause_query(clause, fields) for clause in clauses if clause.occurs == name]
        for name in ("must", "should", "must_not")
    }}) if clauses else lambda document: False  # fmt: skip


def _clause_query(clause: Clause, fields: list[str]) -> Mapping[str, Any]:
    if clause.is_phrase:
        return {"bool": {"should": [{"match_phrase": {name: clause.text}} for name in fields]}}
    if "*" in clause.text or "?" in clause.text:
        wildcard = {"value": clause.text, "case_insensitive": True}
        return {"bool": {"should": [{"wildcard": {name: wildcard}} for name in fields]}}
    return {"bool": {"should": [{"match": {name: clause.text}} for name in fields]}}


_QUERIES: Mapping[str, Callable[[Types, object], Predicate]] = {
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
