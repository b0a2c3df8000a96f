"""Values of settings are converted from whatever their source gives, and a wrong one is told what was expected."""

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.settings.endpoint_patterns import MAX_PATTERN_LENGTH
from opensearch_ml_stream.plugin.settings.setting_metadata import setting_named
from opensearch_ml_stream.plugin.settings.values import read_value

PORT = "opensearch_ml_stream.port"
WORKERS = "opensearch_ml_stream.workers"
BODY = "opensearch_ml_stream.max_body_size"
GRACE = "opensearch_ml_stream.shutdown_grace_seconds"
HOST = "opensearch_ml_stream.host"
LOG_FORMAT = "opensearch_ml_stream.log_format"
KEY_PASSWORD = "opensearch_ml_stream.tls.key_password"
STREAM = "plugins.ml_commons.stream_enabled"
FIELDS = "plugins.ml_commons.remote_job.status_field"
ENDPOINTS = "plugins.ml_commons.trusted_connector_endpoints_regex"
NETWORKS = "opensearch_ml_stream.proxy_auth.trusted_addresses"
USER_HEADER = "opensearch_ml_stream.proxy_auth.user_header"
ROLES_HEADER = "opensearch_ml_stream.proxy_auth.roles_header"
PERMISSIONS = "opensearch_ml_stream.role_permissions"
FAILED = "plugins.ml_commons.remote_job.status_regex.failed"
DEFINITIONS = Settings().definitions()


@pytest.mark.parametrize(
    ("name", "value", "converted"),
    [
        (STREAM, True, True), (STREAM, False, False), (STREAM, "TRUE", True), (STREAM, "False", False),
        (PORT, 0, 0), (PORT, 65535, 65535), (PORT, "9510", 9510), (WORKERS, "1", 1), (BODY, 2**63 - 1, 2**63 - 1),
        (GRACE, 1, 1.0), (GRACE, "0.5", 0.5), (GRACE, 0, 0.0),
        (HOST, "::1", "::1"), (HOST, "", ""), (LOG_FORMAT, "json", "json"), (FAILED, "a|b", "a|b"),
        (FIELDS, ["a", "b"], ("a", "b")), (FIELDS, ("a",), ("a",)), (FIELDS, "a", ("a",)), (FIELDS, [], ()),
        (NETWORKS, ["10.0.0.5", "10.0.1.0/24", "2001:db8::/64"], ("10.0.0.5/32", "10.0.1.0/24", "2001:db8::/64")),
        (NETWORKS, "::1", ("::1/128",)), (USER_HEADER, "X-Remote-User", "x-remote-user"), (ROLES_HEADER, "", ""),
        (PERMISSIONS, {"r": ["a", "b"], "s": "c"}, (("r", ("a", "b")), ("s", ("c",)))), (PERMISSIONS, {}, ()),
        (FIELDS, "(", ("(",)), (ENDPOINTS, "^a$", ("^a$",)), (ENDPOINTS, ["a" * 256], ("a" * 256,)),
    ],
)  # fmt: skip
def test_a_value_is_converted_to_the_type_of_its_field(name: str, value: object, converted: object) -> None:
    read = read_value(DEFINITIONS[name], value)
    assert (read, type(read)) == (converted, type(converted))


RE2 = "regular expressions of RE2 (no back-references, no look-around): "


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (STREAM, "yes", "true or false"),
        (STREAM, 1, "true or false"),
        (STREAM, None, "true or false"),
        (PORT, -1, "an integer from 0 to 65535"),
        (PORT, 65536, "an integer from 0 to 65535"),
        (PORT, 1.0, "an integer from 0 to 65535"),
        (PORT, "1.0", "an integer from 0 to 65535"),
        (PORT, True, "an integer from 0 to 65535"),
        (PORT, [1], "an integer from 0 to 65535"),
        (WORKERS, 0, "an integer from 1 to 256"),
        (BODY, 0, "an integer of at least 1"),
        (BODY, 2**63, "an integer of at least 1"),
        (GRACE, -0.1, "a number of at least 0"),
        (GRACE, "nan", "a number of at least 0"),
        (GRACE, "inf", "a number of at least 0"),
        (GRACE, "soon", "a number of at least 0"),
        (HOST, 7, "a string"),
        (HOST, None, "a string"),
        (LOG_FORMAT, "xml", "text or json"),
        (FIELDS, [1], "a list of strings"),
        (FIELDS, {"a": 1}, "a list of strings"),
        (FIELDS, None, "a list of strings"),
        (KEY_PASSWORD, "hush", "env:NAME or file:PATH, where the secret is, not the secret itself"),
        (NETWORKS, "10.0.0.0/33", "addresses or networks such as 10.0.0.5, 10.0.1.0/24, 2001:db8::/64"),
        (NETWORKS, "10.0.1.7/24", "addresses or networks such as 10.0.0.5, 10.0.1.0/24, 2001:db8::/64"),
        (NETWORKS, "proxy.example", "addresses or networks such as 10.0.0.5, 10.0.1.0/24, 2001:db8::/64"),
        (USER_HEADER, "", "the name of a header that a proxy sets, such as x-proxy-user"),
        (USER_HEADER, "x proxy", "the name of a header that a proxy sets, such as x-proxy-user"),
        (USER_HEADER, "Authorization", "the name of a header that a proxy sets, such as x-proxy-user"),
        (ROLES_HEADER, "X-Forwarded-For", "the name of a header that a proxy sets, such as x-proxy-user"),
        (PERMISSIONS, ["a"], "an object with a list of actions or action groups for each role"),
        (PERMISSIONS, {1: ["a"]}, "an object with a list of actions or action groups for each role"),
        (PERMISSIONS, {"r": [1]}, "a list of strings"),
        (FAILED, "(", RE2 + "missing ): ("),
        (ENDPOINTS, ["a", "(?=b)"], RE2 + "invalid perl operator: (?="),
        (ENDPOINTS, "a" * (MAX_PATTERN_LENGTH + 1), "regular expressions of at most 256 characters"),
    ],
)
def test_a_wrong_value_is_refused_with_what_was_expected(name: str, value: object, expected: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read_value(DEFINITIONS[name], value)
    assert raised.value.reason == f"Failed to parse the value of setting [{name}]: expected {expected}"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("opensearch_ml_stream.prot", ", did you mean [opensearch_ml_stream.port]?"),
        ("stream_enabled", ", did you mean [plugins.ml_commons.stream_enabled]?"),
        ("x", ""),
    ],
)
def test_an_unknown_name_is_refused_with_the_most_similar_one(name: str, hint: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        setting_named(DEFINITIONS, name)
    assert raised.value.reason == f"setting [{name}] not recognized{hint}"


def test_a_setting_that_was_removed_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidRequest) as raised:
        setting_named(DEFINITIONS, "opensearch_ml_stream.upstream")
    assert raised.value.reason == (
        "setting [opensearch_ml_stream.upstream] no longer exists: leave it out. Providers have one client, which also "
        "calls them through the HTTP proxies of HTTP_PROXY, HTTPS_PROXY and NO_PROXY"
    )


def test_a_known_name_gives_its_definition() -> None:
    assert setting_named(DEFINITIONS, PORT) is DEFINITIONS[PORT]
    assert (DEFINITIONS[PORT].field, DEFINITIONS[PORT].default) == ("port", 9510)
