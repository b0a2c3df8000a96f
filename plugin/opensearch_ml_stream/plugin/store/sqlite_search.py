"""Search of the SQLite store: the part of OpenSearch's search body that it supports.

    query    match_all, term, terms, match, ids, bool (must, filter, should, must_not, minimum_should_match), exists
    sort     "field", {"field": "desc"}, {"field": {"order": "desc"}}
    from, size, _source (false, patterns, includes and excludes); version, seq_no_primary_term, track_total_hits

Anything else is an InvalidRequest that names it. Hits are in the order they were written in, unless sorted.
"""

import fnmatch
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.store import Document, Index
from opensearch_ml_stream.plugin.store.sqlite_field_values import Kind, exact, find_field, words

Predicate = Callable[[Document], bool]

_KEYS = ("query", "sort", "from", "size", "_source", "version", "seq_no_primary_term", "track_total_hits")
_CLAUSES = ("must", "filter", "should", "must_not")
_MAX_RESULT_WINDOW = 10_000  # OpenSearch's default for index.max_result_window


def search(index: Index, index_name: str, documents: Iterable[Document], body: Mapping[str, Any]) -> dict[str, Any]:
    """Return OpenSearch's response to a search of these documents; `took` is 0."""
    for key in body:
        if key not in _KEYS:
            raise InvalidRequest(_unsupported(f"search key [{key}]", _KEYS))
    start, size = _count(body, "from", 0), _count(body, "size", 10)
    if start + size > _MAX_RESULT_WINDOW:
        raise InvalidRequest(
            f"Result window is too large, from + size must be less than or equal to: [{_MAX_RESULT_WINDOW}]"
        )
    select = _source_filter(body.get("_source", True))
    matches = compile_query(index, body.get("query", {"match_all": {}}))
    order = [_sort_key(index, entry) for entry in _list(body.get("sort", []))]
    matching = [document for document in documents if matches(document)]
    for key, descending in reversed(order):
        matching.sort(key=key, reverse=descending)
    score = None if order or not matching else 1.0
    hits = [_hit(document, index_name, score, select) for document in matching[start : start + size]]
    return {
        "took": 0,
        "timed_out": False,
        "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
        "hits": {"total": {"value": len(matching), "relation": "eq"}, "max_score": score, "hits": hits},
    }


def compile_query(index: Index, query: object) -> Predicate:
    """Return the predicate of a query; InvalidRequest names what is not supported or malformed."""
    kind, clause = _single(query, "query")
    if kind not in _QUERIES:
        raise InvalidRequest(_unsupported(f"query [{kind}]", tuple(_QUERIES)))
    return _QUERIES[kind](index, clause)


def _match_all(index: Index, clause: object) -> Predicate:
    _options(clause, "match_all", ("boost",))
    return lambda document: True


def _term(index: Index, clause: object) -> Predicate:
    name, value = _single(clause, "term")
    if isinstance(value, Mapping):
        _options(value, "term", ("value", "boost"))
        value = value.get("value")
    return _any_of(index, name, [value])


def _terms(index: Index, clause: object) -> Predicate:
    fields = {key: value for key, value in _object(clause, "terms").items() if key != "boost"}
    name, values = _single(fields, "terms")
    if not isinstance(values, list):
        raise InvalidRequest(f"[terms] query needs an array of values for [{name}]")
    return _any_of(index, name, values)


def _any_of(index: Index, name: str, values: list[Any]) -> Predicate:
    """Match documents whose field has one of the values, which are not analysed: a `text` field has its words."""
    field = find_field(index, name)
    if any(value is None or isinstance(value, Mapping | list) for value in values):
        raise InvalidRequest(f"value for [{name}] must be a string, a number or a boolean")
    terms = {exact(value) for value in values}
    if field.kind is Kind.TEXT:
        return lambda document: any(word in terms for value in field.values(document) for word in words(value))
    return lambda document: any(exact(value) in terms for value in field.values(document))


def _match(index: Index, clause: object) -> Predicate:
    name, value = _single(clause, "match")
    needs_all = False
    if isinstance(value, Mapping):
        _options(value, "match", ("query", "operator", "boost"))
        operator = str(value.get("operator", "or")).lower()
        if operator not in ("or", "and"):
            raise InvalidRequest(f"operator of [match] must be or, and; not [{operator}]")
        needs_all, value = operator == "and", value.get("query")
    field = find_field(index, name)
    if field.kind is not Kind.TEXT:
        return _any_of(index, name, [value])
    terms = set(words(value))
    enough = terms.issubset if needs_all else lambda present: not terms.isdisjoint(present)
    return lambda document: bool(terms) and enough({word for text in field.values(document) for word in words(text)})


def _ids(index: Index, clause: object) -> Predicate:
    values = _options(clause, "ids", ("values", "boost")).get("values")
    ids = {str(value) for value in _list(values)} if values is not None else set()
    return lambda document: document.id in ids


def _exists(index: Index, clause: object) -> Predicate:
    name = _options(clause, "exists", ("field", "boost")).get("field")
    if not isinstance(name, str):
        raise InvalidRequest("[exists] query needs the name of a [field]")
    field = find_field(index, name)
    return lambda document: bool(field.values(document))


def _bool(index: Index, clause: object) -> Predicate:
    options = _options(clause, "bool", (*_CLAUSES, "minimum_should_match", "boost"))
    must, filters, should, must_not = (
        [compile_query(index, query) for query in _list(options.get(name, []))] for name in _CLAUSES
    )
    required = [*must, *filters]
    minimum = options.get("minimum_should_match", 0 if required or not should else 1)
    if not str(minimum).isdigit():
        raise InvalidRequest(_unsupported(f"minimum_should_match [{minimum}]", ("integers",)))
    needed = int(minimum)

    def matches(document: Document) -> bool:
        if not all(query(document) for query in required) or any(query(document) for query in must_not):
            return False
        return needed == 0 or sum(query(document) for query in should) >= needed

    return matches


_QUERIES: Mapping[str, Callable[[Index, object], Predicate]] = {
    "match_all": _match_all,
    "term": _term,
    "terms": _terms,
    "match": _match,
    "ids": _ids,
    "bool": _bool,
    "exists": _exists,
}


def _sort_key(index: Index, entry: object) -> tuple[Callable[[Document], tuple[bool, bool, Any]], bool]:
    """Return the key to sort by and whether the order is descending; documents without the field always come last."""
    name, options = (entry, {}) if isinstance(entry, str) else _single(entry, "sort")
    if isinstance(options, str):
        options = {"order": options}
    order = str(_options(options, "sort", ("order", "unmapped_type")).get("order", "asc")).lower()
    if order not in ("asc", "desc"):
        raise InvalidRequest(f"order of [sort] must be asc or desc, not [{order}]")
    descending = order == "desc"
    if name in ("_doc", "_score"):
        return (lambda document: (False, False, document.seq_no)), descending and name == "_doc"
    field = find_field(index, name)

    def key(document: Document) -> tuple[bool, bool, Any]:
        values = field.values(document)
        if not values:
            return (not descending, False, 0)
        kinds = [(isinstance(value, str), value) for value in values if not isinstance(value, Mapping)]
        if field.kind is Kind.TEXT and any(is_text for is_text, _ in kinds):
            raise InvalidRequest(
                f"Text fields are not optimised for sorting: sort by [{name}.keyword] instead of [{name}]"
            )
        return (descending, *(max(kinds) if descending else min(kinds)))

    return key, descending


def _source_filter(spec: object) -> Callable[[Mapping[str, Any]], Mapping[str, Any] | None]:
    """Return the function that applies `_source` to a document; it returns None for `false`."""
    if spec is False:
        return lambda source: None
    if spec is True:
        return lambda source: source
    if isinstance(spec, Mapping):
        options = _options(spec, "_source", ("includes", "excludes"))
        includes, excludes = _patterns(options.get("includes", [])), _patterns(options.get("excludes", []))
    else:
        includes, excludes = _patterns(spec), []
    return lambda source: _filtered(source, includes, excludes, "")


def _patterns(value: object) -> list[str]:
    return [str(pattern) for pattern in _list(value)]


def _filtered(value: Any, includes: list[str], excludes: list[str], path: str) -> Any:
    """Return the object with its included and without its excluded fields.

    A pattern names a field and everything in it; `*` stands for any characters. `path` is the object's own, with a dot.
    """
    if isinstance(value, list):
        return [_filtered(entry, includes, excludes, path) if isinstance(entry, Mapping) else entry for entry in value]
    kept: dict[str, Any] = {}
    for name, entry in value.items():
        entry_path = f"{path}{name}"
        if any(fnmatch.fnmatchcase(entry_path, pattern) for pattern in excludes):
            continue
        included = not includes or any(fnmatch.fnmatchcase(entry_path, pattern) for pattern in includes)
        if _holds_objects(entry):
            inner = _filtered(entry, [] if included else includes, excludes, f"{entry_path}.")
            if included or any(inner):
                kept[name] = inner
        elif included:
            kept[name] = entry
    return kept


def _holds_objects(entry: object) -> bool:
    return isinstance(entry, Mapping) or (isinstance(entry, list) and any(isinstance(item, Mapping) for item in entry))


def _hit(
    document: Document,
    index_name: str,
    score: float | None,
    select: Callable[[Mapping[str, Any]], Mapping[str, Any] | None],
) -> dict[str, Any]:
    hit: dict[str, Any] = {
        "_index": index_name,
        "_id": document.id,
        "_version": document.version,
        "_seq_no": document.seq_no,
        "_primary_term": document.primary_term,
        "_score": score,
    }
    source = select(document.source)
    return hit if source is None else {**hit, "_source": source}


def _single(value: object, what: str) -> tuple[str, Any]:
    """Return the only name in an object, and its value."""
    members = _object(value, what)
    if len(members) != 1:
        raise InvalidRequest(f"[{what}] must name exactly one thing, not {len(members)}")
    return next(iter(members.items()))


def _options(value: object, what: str, supported: tuple[str, ...]) -> Mapping[str, Any]:
    members = _object(value, what)
    for name in members:
        if name not in supported:
            raise InvalidRequest(_unsupported(f"[{name}] in [{what}]", supported))
    return members


def _object(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"[{what}] must be an object")
    return value


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _count(body: Mapping[str, Any], name: str, default: int) -> int:
    value = body.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidRequest(f"[{name}] must be an integer of at least 0")
    return value


def _unsupported(what: str, supported: tuple[str, ...]) -> str:
    return f"{what} is not supported by the embedded store; it knows {', '.join(supported)}"
