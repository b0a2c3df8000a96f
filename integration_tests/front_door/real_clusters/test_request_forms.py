"""The forms that HTTP requests have: a cluster behind the front door responds to each as it does directly."""

import gzip
import http.client
import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from integration_tests.front_door.real_clusters.compared_responses import Exchange, differences
from integration_tests.front_door.real_clusters.front_doors import CLUSTER_SECONDS, FrontDoor

JSON = {"Content-Type": "application/json"}
SEARCH = b'{"query": {"match_all": {}}, "size": 1}'


@dataclass(frozen=True)
class Form:
    """A request as it stands on the wire; `chunks` is a body that is sent in HTTP chunks."""

    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    chunks: tuple[bytes, ...] = ()


FORMS = {
    "HEAD": Form("HEAD", "/{index}/_doc/1"),
    "HEAD of nothing": Form("HEAD", "/{index}/_doc/none"),
    "HEAD of the root": Form("HEAD", "/"),
    "OPTIONS": Form("OPTIONS", "/{index}/_search"),
    "a method that a path has not": Form("PUT", "/{index}/_search"),
    "a method that the root has not": Form("PATCH", "/"),
    "GET with a body": Form("GET", "/{index}/_search", JSON, SEARCH),
    "a body in the query": Form(
        "GET", "/{index}/_search?source_content_type=application/json&source=%7B%22size%22:0%7D"
    ),
    "a body in chunks": Form("POST", "/{index}/_search", JSON, chunks=(SEARCH[:9], SEARCH[9:])),
    "a body in gzip": Form("POST", "/{index}/_search", {**JSON, "Content-Encoding": "gzip"}, gzip.compress(SEARCH)),
    "a broken gzip": Form("POST", "/{index}/_search", {**JSON, "Content-Encoding": "gzip"}, b"no gzip"),
    "no content type": Form("POST", "/{index}/_search", {}, SEARCH),
    "an unknown content type": Form("POST", "/{index}/_search", {"Content-Type": "text/csv"}, b"a,b"),
    "YAML": Form("POST", "/{index}/_search", {"Content-Type": "application/yaml"}, b"---\nsize: 0\n"),
    "YAML as the response": Form("GET", "/{index}/_count", {"Accept": "application/yaml"}),
    "CBOR as the response": Form("GET", "/{index}/_count?format=cbor"),
    "gzip as the response": Form("GET", "/{index}/_search", {"Accept-Encoding": "gzip"}),
    "an empty body": Form("POST", "/{index}/_refresh", JSON, b""),
    "a broken body": Form("POST", "/{index}/_search", JSON, b'{"query": '),
    "text that is no UTF-8": Form("POST", "/{index}/_search", JSON, b'{"q\xff": 1}'),
    "an id with an encoded slash": Form("GET", "/{index}/_doc/a%2Fb%20c%25?pretty"),
    "date math": Form("GET", "/%3C{index}-%7Bnow%2Fd%7D%3E/_search?ignore_unavailable=true&allow_no_indices=true"),
    "text beyond ASCII": Form("GET", "/{index}/_search?q=title:na%C3%AFve%20%E2%98%83"),
    "a plus in the query": Form("GET", "/{index}/_search?q=title:one+two"),
    "an unknown parameter": Form("GET", "/{index}/_search?no_such_parameter=1"),
    "a parameter twice": Form("GET", "/{index}/_search?size=0&size=1"),
    "an empty query": Form("GET", "/{index}/_count?"),
    "two slashes": Form("GET", "//{index}//_count"),
    "a slash at the end": Form("GET", "/{index}/_count/"),
    "an opaque id": Form("GET", "/{index}/_count", {"X-Opaque-Id": "front door 7"}),
    "a deprecated API": Form("GET", "/_cat/master?h=node", {"X-Opaque-Id": "{fresh}"}),  # it warns each id once
    "filtered": Form("GET", "/?filter_path=version.number"),
    "readable for people": Form("GET", "/{index}/_count?pretty&human"),
    "an error with its trace": Form("GET", "/{index}-none/_search?error_trace=false"),
    "the cluster's 404": Form("GET", "/_no_such_api/at/all"),
    "an icon": Form("GET", "/favicon.ico"),
    "a line of 4 KB": Form("GET", "/{index}/_search?q=" + "x" * 4000 + "&size=0"),
    "a line that is too long for the cluster": Form("GET", "/{index}/_search?q=" + "x" * 5000),
    "a long header": Form("GET", "/{index}/_count", {"X-Opaque-Id": "y" * 3000}),
    "100-continue": Form("POST", "/{index}/_search", {**JSON, "Expect": "100-continue"}, SEARCH),
}


@pytest.fixture(scope="module")
def documents(front_door: FrontDoor) -> Iterator[str]:
    """An index with two documents, for requests that change nothing."""
    name = "door-forms"
    lines = [{"index": {"_id": "1"}}, {"title": "one two"}, {"index": {"_id": "a/b c%"}}, {"title": "naïve ☃"}]
    body = "".join(json.dumps(line) + "\n" for line in lines)
    front_door.direct.put(f"/{name}", json={"settings": {"number_of_replicas": 0}})
    front_door.direct.post(f"/{name}/_bulk?refresh", content=body, headers=JSON).raise_for_status()
    yield name
    front_door.direct.delete(f"/{name}").raise_for_status()


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_request_of_any_form_is_responded_to_as_by_the_cluster(
    front_door: FrontDoor, documents: str, form: Form
) -> None:
    direct, through = (_send(url, form, documents) for url in front_door.urls)
    assert differences([direct], [through]) == []


def _send(url: str, form: Form, index: str) -> Exchange:
    """The response as it stands on the wire: neither decompressed, nor redirected."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=CLUSTER_SECONDS)
    path = form.path.replace("{index}", index)
    body = iter(form.chunks) if form.chunks else form.body
    try:
        fresh = f"ID-{secrets.token_hex(16)}"
        headers = {name: value.replace("{fresh}", fresh) for name, value in form.headers.items()}
        connection.request(form.method, path, body, headers, encode_chunked=bool(form.chunks))
        response = connection.getresponse()
        received = [(name.lower(), value) for name, value in response.getheaders()]
        content = response.read()
    finally:
        connection.close()
    if response.headers.get("content-encoding") == "gzip":
        content = gzip.decompress(content)
    return Exchange(f"{form.method} {path[:80]}", response.status, received, content)
