"""The simple form of `query_string`: words, "phrases", AND, OR, NOT, + and -.

An operator works as in Lucene's classic parser: AND makes the clauses on both its sides required, NOT and - forbid one,
+ requires one; there are no precedences. Fields, groups, ranges, fuzziness and boosts in the text are not supported.
"""

import re
from dataclasses import dataclass

from opensearch_ml_stream.connectors.errors import InvalidRequest

MAX_CLAUSES = 1024  # OpenSearch's default for indices.query.bool.max_clause_count
MAX_QUERY_STRING_CHARS = 32_000  # search.query.max_query_string_length

_TOKEN = re.compile(r'([+\-!]?)(?:"([^"]*)"|([^\s"]+))')
_UNSUPPORTED = re.compile(r"[(){}\[\]^~:/\\<>=]")
_AND, _OR = ("AND", "&&"), ("OR", "||")
_OPERATORS = (*_AND, *_OR, "NOT")
_SIGNS = ("+", "-", "!")
_SHOWN_CHARS = 200


@dataclass(slots=True)
class Clause:
    """A word or phrase, and how it occurs: must, should or must_not."""

    text: str
    is_phrase: bool
    occurs: str


def parse_query_string(query: object, default_operator: str = "or") -> list[Clause]:
    """Return the clauses of a query string. InvalidRequest names what is not supported."""
    text = _checked_text(query)
    if default_operator.lower() not in ("or", "and"):
        raise InvalidRequest(f"default_operator of [query_string] must be or, and; not [{default_operator}]")
    usual = "must" if default_operator.lower() == "and" else "should"
    clauses: list[Clause] = []
    operator, negated = "", False
    for sign, phrase, word in _TOKEN.findall(text):
        if not sign and word in _OPERATORS:
            if negated or (word != "NOT" and (operator or not clauses)):
                raise _unreadable(text, f"nothing stands before [{word}]")
            negated = word == "NOT"
            operator = operator or ("" if negated else word)
            continue
        _check_word(text, word)
        _join(clauses, operator, usual)
        clauses.append(Clause(phrase or word, not word, _occurs("-" if negated else sign, operator, usual)))
        operator, negated = "", False
    if operator or negated:
        raise _unreadable(text, f"nothing stands behind [{operator or 'NOT'}]")
    if len(clauses) > MAX_CLAUSES:
        raise InvalidRequest(f"[query_string] may have {MAX_CLAUSES} clauses", type="too_many_clauses")
    return clauses


def _checked_text(query: object) -> str:
    if not isinstance(query, str):
        raise InvalidRequest("[query_string] needs its [query], a string")
    if len(query) > MAX_QUERY_STRING_CHARS:
        raise InvalidRequest(
            f"Query string length exceeds max allowed length {MAX_QUERY_STRING_CHARS}; actual length: {len(query)}",
            type="parse_exception",
        )
    if query.count('"') % 2:
        raise _unreadable(query, "a quotation mark is not closed")
    return query


def _check_word(text: str, word: str) -> None:
    if word in _SIGNS:
        raise _unreadable(text, f"nothing stands behind [{word}]")
    if found := _UNSUPPORTED.search(word):
        raise InvalidRequest(
            f'[query_string] with [{found[0]}] is not supported here; it takes words, "phrases", AND, OR, NOT'
        )


def _occurs(sign: str, operator: str, usual: str) -> str:
    """Return how the clause behind an operator occurs."""
    if sign in ("-", "!"):
        return "must_not"
    if sign == "+" or operator in _AND:
        return "must"
    return "should" if operator in _OR else usual


def _unreadable(query: str, reason: str) -> InvalidRequest:
    return InvalidRequest(f"Failed to parse query [{query[:_SHOWN_CHARS]}]: {reason}", type="query_shard_exception")


def _join(clauses: list[Clause], operator: str, usual: str) -> None:
    """Let an operator change the clause before it."""
    if not clauses or clauses[-1].occurs == "must_not":
        return
    if operator in _AND:
        clauses[-1].occurs = "must"
    elif operator in _OR and usual == "must":
        clauses[-1].occurs = "should"
