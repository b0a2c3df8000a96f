"""Which URLs a connector may be made with, and which are called."""

import pytest

from opensearch_ml_stream.connectors.documents import MAX_URL_LENGTH
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.upstream.target import parse_target
from opensearch_ml_stream.plugin.upstream.trusted_endpoints import (
    check_connector_url,
    check_endpoint,
    fill_url,
    is_trusted,
)

DEFAULTS = Settings()
NOT_TRUSTED = (
    r"^Connector URL is not matching the trusted connector endpoint regex"
    r"(\. If (\S+) is to be trusted: opensearch-ml-stream endpoints allow \2)?$"
)


def trusting(*patterns: str) -> Settings:
    return Settings(trusted_connector_endpoints_regex=patterns)


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com/v1/chat/completions",
        "https://api.openai.com:443/v1/chat/completions",
        "HTTPS://API.OpenAI.com/v1/chat/completions",
        "https://bedrock-runtime.us-east-1.amazonaws.com/model/x/converse",
        "https://runtime.sagemaker.us-east-1.amazonaws.com/endpoints/x/invocations",
        "https://textract.us-east-1.amazonaws.com",
        "https://textract.us-east-1.amazonaws.com/",
    ],
)
def test_the_well_known_providers_are_trusted(url: str) -> None:
    check_endpoint(url, DEFAULTS)


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/v1/chat/completions",
        "http://api.openai.com/v1/chat/completions",
        "https://api.openai.com.evil.example/",
        "https://runtime.sagemaker.evil.example/x.amazonaws.com/y",
        "https://api.openai.com:8443/v1",
        "https://api.openai.com./v1",
    ],
)
def test_any_other_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest, match=NOT_TRUSTED):
        check_endpoint(url, DEFAULTS)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/x.trusted.example/",
        "http://127.0.0.1:1?x.trusted.example/",
        "http://127.0.0.1:1#x.trusted.example/",
        "http://127.0.0.1:1\\x.trusted.example/",
        "http://127.0.0.1:1@x.trusted.example/",
        "http://x.trusted.example@127.0.0.1/",
        "http://x.trusted.example:80@127.0.0.1:80/",
        "http://127.0.0.1%2f.trusted.example/",
        "http://127.0.0.1\t.trusted.example/",
        "http://127.0.0.1:1:x.trusted.example/",
        "http://[::1].trusted.example/",
        "http://[::1]x:80.trusted.example/",
        "http://127.0.0.1\u3000.trusted.example/",
        "//x.trusted.example/",
        "",
    ],
)
def test_no_form_of_a_url_passes_for_a_trusted_host(url: str) -> None:
    loose = trusting(r"^http://.*\.trusted\.example/.*$")
    check_endpoint("http://x.trusted.example/", loose)
    with pytest.raises(InvalidRequest):
        check_endpoint(url, loose)
    with pytest.raises(InvalidRequest):
        check_connector_url(url, {}, loose)


def test_a_pattern_with_the_port_of_the_scheme_matches_with_and_without_it() -> None:
    for url in ("https://h/x", "https://h:443/x", "https://h:/x"):
        check_endpoint(url, trusting("^https://h:443/.*$"))
        check_endpoint(url, trusting("^https://h/.*$"))
    with pytest.raises(InvalidRequest, match=NOT_TRUSTED):
        check_endpoint("http://h:443/x", trusting("^https?://h/.*$"))


def test_without_a_path_in_the_pattern_every_path_is_allowed() -> None:
    check_endpoint("https://good.example/x?y", trusting("https://good.example"))
    with pytest.raises(InvalidRequest, match=NOT_TRUSTED):
        check_endpoint("https://good.example/x?y", trusting("https://good.example/x"))


def test_what_is_matched_is_what_is_sent() -> None:
    check_endpoint("https://bücher.example/ü", trusting(r"^https://xn--bcher-kva\.example/%C3%BC$"))
    with pytest.raises(InvalidRequest, match="path that leads upwards"):
        check_endpoint("https://h/v1/%2e%2e/admin", trusting("^https://h/v1/.*$"))


def test_a_connector_may_leave_parts_of_its_host_to_requests() -> None:
    settings = trusting(r"^https://.*\.example/.*$")
    check_connector_url("https://${parameters.tenant}.example/v1", {}, settings)
    check_connector_url("https://${parameters.host}/v1", {"host": "h.example"}, settings)
    check_connector_url("${parameters.endpoint}/v1", {}, trusting(".*"))
    for url in ("https://${parameters.tenant}.evil/x.example/", "https://u@${parameters.tenant}.example/"):
        with pytest.raises(InvalidRequest, match=NOT_TRUSTED):
            check_connector_url(url, {}, settings)
    with pytest.raises(InvalidRequest):
        check_connector_url("https://${parameters.host}/v1", {"host": "127.0.0.1/x.example"}, settings)


def test_a_url_that_is_too_long_is_refused_and_not_kept() -> None:
    is_trusted.cache_clear()
    parse_target.cache_clear()
    url = "https://api.openai.com/" + "x" * MAX_URL_LENGTH
    with pytest.raises(InvalidRequest, match="more than 16384 characters"):
        check_endpoint(url, DEFAULTS)
    with pytest.raises(InvalidRequest, match="more than 16384 characters"):
        check_connector_url(url, {}, DEFAULTS)
    assert is_trusted.cache_info().currsize == parse_target.cache_info().currsize == 0


@pytest.mark.parametrize(
    ("url", "filled"),
    [
        ("https://${parameters.host}/v1", "https://h.example/v1"),
        ("https://${parameters.base}/v1", "https://h.example:80/v1"),
        ("https://${parameters.host}/${parameters.unknown}", "https://h.example/${parameters.unknown}"),
        ("https://${parameters.host}/${parameters.late}", "https://h.example/x-${parameters.unknown}"),
        ("https://${parameters.host}/${parameters.unknown:-default}", "https://h.example/default"),
    ],
)
def test_a_url_is_filled_with_what_the_connector_knows(url: str, filled: str) -> None:
    parameters = {"host": "h.example", "base": "${parameters.host}:80", "late": "x-${parameters.unknown}"}
    assert fill_url(url, parameters) == filled
