import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.upstream.trusted_endpoints import check_endpoint, compile_patterns, fill_url

DEFAULTS = Settings()


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com/v1/chat/completions",
        "https://bedrock-runtime.us-east-1.amazonaws.com/model/x/converse",
        "https://runtime.sagemaker.us-east-1.amazonaws.com/endpoints/x/invocations",
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
        "https://api.openai.com/\nhttps://evil.example/",
        "https://[api.openai.com/",
        "",
    ],
)
def test_any_other_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^Connector URL is not matching the trusted connector endpoint regex$"):
        check_endpoint(url, DEFAULTS)


def test_a_user_name_cannot_hide_the_host_from_a_loose_regex() -> None:
    loose = Settings(trusted_connector_endpoints_regex=(r"^http://127\.0\.0\.1:.*$",))
    check_endpoint("http://127.0.0.1:80/x@y", loose)
    with pytest.raises(InvalidRequest):
        check_endpoint("http://127.0.0.1:80@evil.example/", loose)


def test_a_regex_must_match_the_whole_url() -> None:
    with pytest.raises(InvalidRequest):
        check_endpoint("https://good.example/x", Settings(trusted_connector_endpoints_regex=("https://good.example",)))


@pytest.mark.parametrize("pattern", ["(a", r"(a)\1", "(?=a)"])
def test_a_regex_that_cannot_be_used_is_named_with_its_setting(pattern: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        compile_patterns("plugins.x", (pattern,))
    assert raised.value.reason.startswith(f"plugins.x: The regular expression [{pattern}] cannot be used: ")


def test_a_regex_of_more_than_256_characters_is_refused() -> None:
    compile_patterns("plugins.x", ("a" * 256,))
    with pytest.raises(InvalidRequest, match="more than 256 characters"):
        compile_patterns("plugins.x", ("a" * 257,))


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
