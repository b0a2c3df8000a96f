"""Exchanges about `response_filter`: the JSONPath of ML Commons' library, read from one response of a provider."""

from integration_tests.interop.parity.exchanges import Exchanges
from integration_tests.interop.parity.inline_models import MODEL

SHARED = {"@data": [("POST /models/_register", MODEL)]}
_PATHS = (
    "$", "$.s", "@.s", "s", "$.null", "$.absent", "$.e", "$.e[0]",
    "$['s','n']", "$['s','l']", "$.a[0]['s','n']", "$.a[*]['s','t']", "$.a[*].s", "$..s", "$.o.*",
    "$.l[0,2]", "$.l[-1]", "$.l[0:2]",
    "$.l.length()", "$.a.length()", "$.length()", "$.l.max()", "$.l.min()", "$.l.sum()", "$.l.avg()", "$.l.stddev()",
    "$.o.keys()", "$.l.first()", "$.l.last()", "$.l.index(1)", "$.s.concat('y')", "$.l.append(4)",
    "$.a[?(@.s > 1)]", "$.a[?(@.s nin [1])]", "$.a[?(@.s in [1])]", "$.l[?(@ > 1)]", "$.a[?(@.n empty false)]",
    "$.a[?(@.n size 1)]", "$.a[?(@.n =~ /v/)]", "$.a[?(@.t == 2 && @.s == 1)]",
)  # fmt: skip

EXCHANGES: Exchanges = {
    f"response_filter {path}": [
        ("POST /models/@data/_predict", {"parameters": {"m": "x", "response_filter": path}}),
    ]
    for path in _PATHS
}
