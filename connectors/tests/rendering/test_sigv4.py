"""Signatures of AWS requests, against botocore's."""

from datetime import UTC, datetime, timedelta, timezone
from urllib.parse import quote

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given, settings
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.connectors.rendering.sigv4 import sign

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
KEYS = {"access_key": "AKIDEXAMPLE", "secret_key": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
URL = "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse"


def botocore_authorization(request: ProviderRequest, keys: dict[str, str], region: str, service: str) -> str:
    """What botocore writes for the same request at NOW; its own clock is left out by giving the time to its parts."""
    signer = SigV4Auth(Credentials(keys["access_key"], keys["secret_key"], keys.get("session_token")), service, region)
    theirs = AWSRequest(request.method, request.url, headers=dict(request.headers), data=request.body)
    theirs.context["timestamp"] = NOW.strftime("%Y%m%dT%H%M%SZ")
    del theirs.headers["Authorization"]
    text = signer.string_to_sign(theirs, signer.canonical_request(theirs))
    signed = ";".join(sorted(name.strip().lower() for name in set(signer.headers_to_sign(theirs).keys())))
    return (
        f"AWS4-HMAC-SHA256 Credential={signer.scope(theirs)}, SignedHeaders={signed}, "
        f"Signature={signer.signature(text, theirs)}"
    )


segments = st.text(
    st.characters(codec="ascii", categories=["L", "N"]) | st.sampled_from(":.-_~@!$&'()*+,;= é世/%"), max_size=12
).map(lambda text: quote(text, safe=":@!$&'()*+,;=~"))
queries = st.lists(st.tuples(st.text("abcAB-", min_size=1, max_size=3), st.text("xyz%20-_", max_size=3)), max_size=4)
header_names = st.text("abcdefXY-", min_size=1, max_size=8).map(lambda name: f"x-{name}")
header_texts = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=12).map(str.strip)


@settings(max_examples=150, deadline=None)
@given(
    method=st.sampled_from(["POST", "GET"]),
    path=st.lists(segments, max_size=5).map(lambda parts: "/" + "/".join(parts)),
    query=queries,
    host=st.sampled_from(["bedrock-runtime.us-east-1.amazonaws.com", "localhost:8080", "h:443"]),
    headers=st.dictionaries(header_names, header_texts, max_size=3),
    body=st.binary(max_size=50),
    token=st.sampled_from([None, "IQoJb3JpZ2luX2VjEJ//"]),
    hashed=st.booleans(),
)
def test_signatures_are_botocores(
    method: str,
    path: str,
    query: list[tuple[str, str]],
    host: str,
    headers: dict[str, str],
    body: bytes,
    token: str | None,
    hashed: bool,
) -> None:
    url = f"https://{host}{path}" + ("?" + "&".join(f"{name}={value}" for name, value in query) if query else "")
    given_headers = {name.lower(): value for name, value in headers.items()}
    if hashed:
        given_headers["x-amz-content-sha256"] = "required"
    keys = KEYS if token is None else {**KEYS, "session_token": token}
    signed = sign(ProviderRequest(method, url, given_headers, body), keys, "us-east-1", "bedrock", NOW)
    assert signed.headers["Authorization"] == botocore_authorization(signed, keys, "us-east-1", "bedrock")
    assert signed.headers.get("X-Amz-Security-Token") == token


def test_blanks_inside_a_header_count_once_as_with_botocore() -> None:
    request = ProviderRequest("POST", URL, {"x-note": "  a   b  "}, b"{}")
    signed = sign(request, KEYS, "us-east-1", "bedrock", NOW)
    assert signed.headers["Authorization"] == botocore_authorization(signed, KEYS, "us-east-1", "bedrock")


def test_the_colon_of_a_model_id_is_encoded_in_the_url_and_twice_in_the_signature() -> None:
    url = "https://h/model/us.anthropic.claude-3-7-sonnet-20250219-v1:0/converse-stream"
    signed = sign(ProviderRequest("POST", url, {}, b"{}"), KEYS, "us-east-1", "bedrock", NOW)
    assert signed.url == url.replace("v1:0", "v1%3A0")
    assert sign(signed, KEYS, "us-east-1", "bedrock", NOW) == signed


def test_required_is_replaced_by_the_hash_of_the_body() -> None:
    request = ProviderRequest("POST", URL, {"x-amz-content-sha256": "required"}, b"")
    signed = sign(request, KEYS, "us-east-1", "bedrock", NOW)
    assert signed.headers["x-amz-content-sha256"] == (
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )


def test_a_signature_of_the_template_is_replaced() -> None:
    request = ProviderRequest("POST", URL, {"authorization": "Bearer x", "x-amz-date": "then"}, b"")
    signed = sign(request, KEYS, "us-east-1", "bedrock", NOW)
    assert [name for name in signed.headers if name.lower() == "authorization"] == ["Authorization"]
    assert [value for name, value in signed.headers.items() if name.lower() == "x-amz-date"] == ["20260102T030405Z"]


def signed_names(signed: ProviderRequest) -> list[str]:
    return signed.headers["Authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")


@pytest.mark.parametrize(
    "name", ["User-Agent", "connection", "Expect", "Transfer-Encoding", "X-Amzn-Trace-Id", "x-amzn-trace-id"]
)
def test_a_header_that_changes_on_the_way_is_sent_but_not_signed(name: str) -> None:
    request = ProviderRequest("POST", URL, {"x-note": "a", name: "b"}, b"{}")
    signed = sign(request, KEYS, "us-east-1", "bedrock", NOW)
    assert signed.headers[name] == "b"
    assert signed_names(signed) == ["host", "x-amz-date", "x-note"]
    without = sign(ProviderRequest("POST", URL, {"x-note": "a"}, b"{}"), KEYS, "us-east-1", "bedrock", NOW)
    assert signed.headers["Authorization"] == without.headers["Authorization"]


@pytest.mark.parametrize("name", ["user-agent", "expect", "transfer-encoding", "x-amzn-trace-id"])
def test_what_is_not_signed_is_what_botocore_does_not_sign(name: str) -> None:
    request = ProviderRequest("POST", URL, {name: "b"}, b"{}")
    signed = sign(request, KEYS, "us-east-1", "bedrock", NOW)
    assert signed.headers["Authorization"] == botocore_authorization(signed, KEYS, "us-east-1", "bedrock")


@pytest.mark.parametrize(
    "headers", [{}, {"Content-Type": "application/json"}, {"X-B": "1", "x-a": "2", "Content-Type": "text/plain"}]
)
def test_every_other_header_is_signed_and_so_is_the_host(headers: dict[str, str]) -> None:
    signed = sign(ProviderRequest("POST", URL, headers, b"{}"), KEYS, "us-east-1", "bedrock", NOW)
    assert signed_names(signed) == sorted({"host", "x-amz-date", *(name.lower() for name in headers)})
    assert "host" not in {name.lower() for name in signed.headers}


def test_a_host_of_the_template_is_the_host_that_is_signed() -> None:
    other = ProviderRequest("POST", URL.replace("us-east-1", "eu-west-1"), {}, b"{}")
    named = ProviderRequest("POST", other.url, {"Host": "bedrock-runtime.us-east-1.amazonaws.com"}, b"{}")
    signed = [sign(request, KEYS, "us-east-1", "bedrock", NOW).headers["Authorization"] for request in (other, named)]
    direct = sign(ProviderRequest("POST", URL, {}, b"{}"), KEYS, "us-east-1", "bedrock", NOW)
    assert signed[1] == direct.headers["Authorization"] != signed[0]


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://h:443/p", "h"),
        ("https://h:80/p", "h:80"),
        ("http://h:80/p", "h"),
        ("http://h:8080/p", "h:8080"),
        ("https://[::1]:8443/p", "[::1]:8443"),
        ("https://[::1]/p", "[::1]"),
        ("https://User@EXAMPLE.com/p", "example.com"),
    ],
)
def test_the_host_is_signed_with_its_port_where_that_is_not_the_schemes_own(url: str, host: str) -> None:
    by_url = sign(ProviderRequest("POST", url, {}, b""), KEYS, "us-east-1", "bedrock", NOW)
    by_header = sign(ProviderRequest("POST", url, {"host": host}, b""), KEYS, "us-east-1", "bedrock", NOW)
    assert by_url.headers["Authorization"] == by_header.headers["Authorization"]


@pytest.mark.parametrize("path", ["/a/../b/c", "/a/./b", "/a//b/", "/..", "/a/b/..", "/../a", "/"])
def test_dot_segments_are_resolved_in_what_is_signed_and_not_in_what_is_sent(path: str) -> None:
    signed = sign(ProviderRequest("POST", f"https://h{path}", {}, b""), KEYS, "us-east-1", "bedrock", NOW)
    assert signed.url == f"https://h{path}"
    assert signed.headers["Authorization"] == botocore_authorization(signed, KEYS, "us-east-1", "bedrock")


def test_headers_of_an_earlier_signature_are_replaced_however_they_are_written() -> None:
    earlier = {"AUTHORIZATION": "Bearer x", "x-amz-date": "then", "X-Amz-Security-token": "old"}
    keys = {**KEYS, "session_token": "new"}
    signed = sign(ProviderRequest("POST", URL, earlier, b""), keys, "us-east-1", "bedrock", NOW)
    assert dict(signed.headers) == {
        "X-Amz-Date": "20260102T030405Z",
        "X-Amz-Security-Token": "new",
        "Authorization": signed.headers["Authorization"],
    }


def test_a_time_of_any_zone_is_signed_in_utc() -> None:
    request = ProviderRequest("POST", URL, {}, b"")
    elsewhere = NOW.astimezone(timezone(timedelta(hours=-9)))
    assert sign(request, KEYS, "us-east-1", "bedrock", elsewhere) == sign(request, KEYS, "us-east-1", "bedrock", NOW)


@pytest.mark.parametrize("missing", ["access_key", "secret_key"])
def test_a_missing_key_is_named_and_nothing_secret_is(missing: str) -> None:
    keys = {name: value for name, value in KEYS.items() if name != missing}
    with pytest.raises(InvalidRequest) as caught:
        sign(ProviderRequest("POST", URL, {}, b""), keys, "us-east-1", "bedrock", NOW)
    assert missing in caught.value.reason
    assert not any(value in caught.value.reason for value in keys.values())
