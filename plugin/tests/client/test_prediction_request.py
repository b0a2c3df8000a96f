"""The request of a prediction, opensearch-py's exception for an error status, and a connection to the sidecar's url."""

from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from opensearchpy.exceptions import ImproperlyConfigured, NotFoundError, TransportError

from opensearch_ml_stream.client.prediction_request import connection_options, http_error, predict_body, predict_path

JSON = "application/json; charset=UTF-8"
ERROR = {"error": {"type": "status_exception", "reason": "Failed to find model"}, "status": 404}


def transport(hosts: list[dict[str, Any]], **kwargs: Any) -> Any:
    return SimpleNamespace(hosts=hosts, kwargs=kwargs)


@pytest.mark.parametrize(
    ("stream", "path"),
    [(True, "/_plugins/_ml/models/a%2Fb/_predict/stream"), (False, "/_plugins/_ml/models/a%2Fb/_predict")],
)
def test_a_model_id_is_one_segment_of_the_path_whatever_it_holds(stream: bool, path: str) -> None:
    assert predict_path("a/b", stream=stream) == path


def test_parameters_are_sent_as_json() -> None:
    assert orjson.loads(predict_body({"inputs": "é"})) == {"parameters": {"inputs": "é"}}


def test_an_opensearch_error_becomes_the_exception_of_its_status_with_its_type_and_body() -> None:
    error = http_error(404, orjson.dumps(ERROR), JSON)
    assert isinstance(error, NotFoundError)
    assert (error.status_code, error.error, error.info) == (404, "status_exception", ERROR)


@pytest.mark.parametrize(
    ("body", "content_type", "error", "info"),
    [
        (b"<html>", "text/html", "<html>", None),
        (b"<html>", JSON, "<html>", None),
        (b"\xff", "text/plain", "\ufffd", None),
        (b"[1]", JSON, "[1]", [1]),
        (b'{"a": 1}', JSON, '{"a": 1}', {"a": 1}),
        (b'{"error": "no"}', JSON, "no", {"error": "no"}),
        (b'{"error": {"reason": "no"}}', JSON, {"reason": "no"}, {"error": {"reason": "no"}}),
    ],
)
def test_any_other_error_body_is_told_as_far_as_it_can_be_read(
    body: bytes, content_type: str, error: object, info: object
) -> None:
    raised = http_error(599, body, content_type)
    assert type(raised) is TransportError
    assert (raised.status_code, raised.error, raised.info) == (599, error, info)


def test_a_connection_to_the_sidecar_has_the_clients_login_and_headers_but_not_its_host_or_prefix() -> None:
    hosts = [{"host": "cluster", "port": 9200, "http_auth": "me:pass", "use_ssl": True, "url_prefix": "os"}]
    options = connection_options(transport(hosts, headers={"x": "y"}, scheme="https"), "http://sidecar:9510")
    assert options == {"host": "sidecar", "port": 9510, "http_auth": "me:pass", "headers": {"x": "y"}}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://sidecar", {"host": "sidecar", "port": 80}),
        ("https://sidecar", {"host": "sidecar", "port": 443, "use_ssl": True}),
        ("http://sidecar:1/a/b", {"host": "sidecar", "port": 1, "url_prefix": "/a/b"}),
        ("http://sidecar:1/", {"host": "sidecar", "port": 1}),
        ("http://a%40b:p%3Aw@[::1]:1", {"host": "::1", "port": 1, "http_auth": ("a@b", "p:w")}),
        ("http://me@sidecar:1", {"host": "sidecar", "port": 1, "http_auth": ("me", "")}),
    ],
)
def test_the_sidecars_url_gives_host_port_tls_prefix_and_login(url: str, expected: dict[str, Any]) -> None:
    assert connection_options(transport([]), url) == expected


@pytest.mark.parametrize(("url", "scheme"), [("sidecar:9510", "sidecar"), ("", "empty"), ("http://", "http")])
def test_a_url_that_is_not_one_of_http_is_refused_without_repeating_it(url: str, scheme: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=rf"must be http\(s\)://host\[:port\], not {scheme}"):
        connection_options(transport([]), url)
