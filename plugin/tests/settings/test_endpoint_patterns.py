"""A pattern's host part never matches a path, and a pattern that cannot be split is refused where it is set."""

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.settings.endpoint_patterns import compile_endpoint
from opensearch_ml_stream.plugin.settings.values import read_value

ENDPOINTS = "plugins.ml_commons.trusted_connector_endpoints_regex"
# As ML Commons 3.8 has them: `.*` between service and domain.
SAGEMAKER = r"^https://runtime\.sagemaker\..*[a-z0-9-]\.amazonaws\.com/.*$"
OUTSIDE = "write :// and the first / after it outside of any group"
AS_IT_IS = "write the / between host and path as it is, not in [...] or \\Q...\\E"
ALTERNATIVES = "give each alternative an entry of its own"
TEXTRACT = r"^https://textract\..*[a-z0-9-]\.amazonaws\.com$"


@pytest.mark.parametrize(
    ("pattern", "origin", "path"),
    [
        (SAGEMAKER, "https://runtime.sagemaker.us-east-1.amazonaws.com", "/endpoints/x/invocations"),
        (SAGEMAKER, "https://runtime.sagemaker.cn-north-1.vpce.amazonaws.com", "/"),
        (TEXTRACT, "https://textract.eu-west-1.amazonaws.com", "/"),
        (r"^https?://(a|b)\.c/.*$", "http://b.c", "/x"),
        (r"^https://[^/]*\.example\.com/v1/.*$", "https://a.b.example.com", "/v1/x"),
        (r"^https://h(:[0-9]+)?/?$", "https://h:81", "/"),
        (r"^https:\/\/h\/v1$", "https://h", "/v1"),
        (r"^https://h/(a|b)$", "https://h", "/b"),
        (r"(?i)^https://h/v1$", "https://h", "/V1"),
        (r"^HTTPS://API\.example/Path$", "https://api.example", "/Path"),
        ("https://[a-z]", "https://h", "/anything?at=all"),
        (".*", "http://h:80", "/"),
    ],
)
def test_a_url_is_allowed_if_both_of_its_parts_match(pattern: str, origin: str, path: str) -> None:
    assert compile_endpoint(pattern).matches(origin, path)


@pytest.mark.parametrize(
    ("pattern", "origin", "path"),
    [
        (SAGEMAKER, "https://runtime.sagemaker.evil.example", "/x.amazonaws.com/y"),
        (SAGEMAKER, "http://127.0.0.1:1", "/runtime.sagemaker.x.amazonaws.com/"),
        (r"^http://.*\.trusted\.example/.*$", "http://127.0.0.1:1", "/x.trusted.example/"),
        (r"^http://.*\.trusted\.example/.*$", "http://127.0.0.1:1", "/?x.trusted.example/"),
        (r"^https://h/v1$", "https://h", "/v1?x=1"),
        (r"^https://h/v1$", "https://h", "/V1"),
        (r"https://h", "https://hx", "/"),
        (r"https://h", "xhttps://h", "/"),
        (r"^https://h$/x", "https://h", "/"),
    ],
)
def test_a_part_that_does_not_match_as_a_whole_is_not_allowed(pattern: str, origin: str, path: str) -> None:
    assert not compile_endpoint(pattern).matches(origin, path)


@pytest.mark.parametrize(
    ("pattern", "advice"),
    [
        (r"^https://x(/.*)?$", OUTSIDE),
        (r"^(https://a|http://b)/.*$", OUTSIDE),
        (r"^(?:https?://)x", OUTSIDE),
        (r"^https://a/.*$|^https://b/.*$", ALTERNATIVES),
        (r"^https://a|https://b$", ALTERNATIVES),
        (r"^https://(a|b)[:/].*$", AS_IT_IS),
        (r"^\Qhttps://a/\E.*$", AS_IT_IS),
        (r".*\.amazonaws\.com/.*", "begin it with the scheme, such as ^https://"),
    ],
)
def test_a_pattern_that_cannot_be_split_is_refused_with_what_to_write(pattern: str, advice: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read_value(Settings().definitions()[ENDPOINTS], ["^https://fine/.*$", pattern])
    assert raised.value.reason == (
        f"Failed to parse the value of setting [{ENDPOINTS}]: expected regular expressions for URLs, such as "
        rf"^https://host\.example/.*$: the regex [{pattern}] cannot be split into a URL's origin and path: " + advice
    )


@pytest.mark.parametrize("pattern", ["(a", r"(a)\1", "(?=a)"])
def test_a_pattern_that_is_not_re2_is_named(pattern: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        compile_endpoint(pattern)
    assert raised.value.reason.startswith(f"The regular expression [{pattern}] cannot be used: ")


def test_a_pattern_of_more_than_256_characters_is_refused() -> None:
    compile_endpoint("a" * 256)
    with pytest.raises(InvalidRequest, match="more than 256 characters"):
        compile_endpoint("a" * 257)
