"""The simple form of `query_string`: words, "phrases", AND, OR, NOT, + and -.

An operator works as in Lucene's classic parser: AND makes the clauses on both its sides required, NOT and - forbid one,
+ requires one; there are no precedences. Fields, groups, ranges, fuzziness and boosts in the text are not supported.
"""

import re
from dataclasses import dataclass

from opensearch_ml_stream.connectors.errors import InvalidRequest

MAX_CLAUSES = 1024  # OpenSearch's default for indices.query.bool.max_clause_count

_TOKEN = re.compile(r'([+\-!]?)(?:"([^"]*)"|([^\s"]+))')
_UNSUPPORTED = re.compile(r"[(){}\[\]^~:/\\<>=]")
_AND, _OR = ("AND", "&&"), ("OR", "||")
_OPERATORS = (*_AND, *_OR, "NOT")


@dataclass(slots=True)
class Clause:
    """A word or phrase, and how it occurs: must, should or must_not."""

    text: str
    is_phrase: bool
    occurs: str


def parse_query_string(query: object, default_operator: str = "or") -> list[Clause]:
    """Return the clauses of a query string. InvalidRequest names what is not supported."""
    if not isinstance(query, str):
        raise InvalidRequest("[query_string] needs its [query], a string")
    if default_operator.lower() not in ("or", "and"):
        raise InvalidRequest(f"default_operator of [query_string] must be or, and; not [{default_operator}]")
    usual = "must" if default_operator.lower() == "and" else "should"
    clauses: list[Clause] = []
    operator, negated = "", False
    for sign, phrase, word in _TOKEN.findall(query):
        if not sign and word in _OPERATORS:
            negated = word == "NOT"
            operator = operator or ("" if negated else word)
            continue
        if found := _UNSUPPORTED.search(word):
            raise InvalidRequest(
                f'[query_string] with [{found[0]}] is not supported here; it takes words, "phrases", AND, OR, NOT'
            )
        _join(clauses, operator, usual)
        occurs = "must_not" if negated or sign in ("-", "!") else "must" if sign == "+" else usual
        if operator in _AND and occurs == "should":
            occurs = "must"
        elif operator in _OR and occurs == "must" and sign != "+":
            occurs = "should"
        clauses.append(Clause(phrase or word, not word, occurs))
        operator, negated = "", False
        if len(clauses) > MAX_CLAUSES:
            raise InvalidRequest(f"[query_string] may have {MAX_CLAUSES} clauses")
    return clauses


def _join(clauses: list[Clause], operator: str, usual: str) -> None:
    """Let an operator change the clause before it."""
    if not clauses or clauses[-1].occurs == "must_not":
        return
    if operator in _AND:
        clauses[-1].occurs = "must"
    elif operator in _OR and usual == "must":
        clauses[-1].occurs = "should"
