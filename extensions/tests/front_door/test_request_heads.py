"""The head that the cluster gets: below the path of the store's URL, and with nothing that names another user."""

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.front_door.request_heads import RequestHead, RequestHeads

UPWARDS = [
    b"/../secretapp/x", b"/..", b"/a/../../x", b"/%2e%2e/x", b"/%2E./x", b"/.%2e", b"/a/..%2f..%2fx", b"/..%5cx",
    b"/..\\x", b"/%252e%252e/x", b"/%25252e%25252e%25252fx", b"/..;a=b/x", b"/%2e%2e%3bx/y", b"/..%20/x", b"*", b"",
    b"x", b"/" + b"%25" * 9 + b"2e",
]  # fmt: skip


def head_of(prefix: bytes, path: bytes) -> RequestHead:
    scope = {"method": "GET", "raw_path": path, "query_string": b"q=/../", "headers": []}
    return RequestHeads(prefix, None, frozenset()).head_of(scope)


@pytest.mark.parametrize("path", UPWARDS[:-1])
def test_no_path_leads_out_of_that_of_the_stores_url(path: bytes) -> None:
    with pytest.raises(InvalidRequest, match="leads out of"):
        head_of(b"/search", path)


@pytest.mark.parametrize(
    "path",
    [b"/", b"//x", b"/./x", b"/...", b"/a..b/..c", b"/.x", b"/%3Clogs-%7Bnow%2Fd%7D%3E/_doc", b"/a%25b", b"/a%2fb"],
)
def test_any_other_path_goes_on_as_it_came(path: bytes) -> None:
    assert head_of(b"/search", path).line == b"GET /search" + path + b"?q=/../ HTTP/1.1\r\n"


@pytest.mark.parametrize("path", UPWARDS)
def test_where_the_store_has_no_path_there_is_nothing_to_leave(path: bytes) -> None:
    assert head_of(b"", path).line == b"GET " + path + b"?q=/../ HTTP/1.1\r\n"


def test_no_trailer_names_a_user() -> None:
    heads = RequestHeads(b"", None, frozenset({b"x-user"}))
    named = [(b"x-user", b"a"), (b"x-proxy-user", b"a"), (b"x-proxy-ext-a", b"a"), (b"x-forwarded-for", b"::1")]
    assert heads.trailers_of([*named, (b"x-sum", b"7")]) == [(b"x-sum", b"7")]
