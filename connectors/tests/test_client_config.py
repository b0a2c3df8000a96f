"""`client_config`: strict where a caller gives it, tolerant where it is stored."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.client_config import ClientConfig, client_config_document, read_client_config

DEFAULTS = {
    "connection_timeout": 30, "read_timeout": 30, "retry_backoff_millis": 200, "retry_timeout_seconds": 30,
    "max_retry_times": 0, "retry_backoff_policy": "constant", "skip_ssl_verification": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({}, {}),
        ({"max_connection": "5", "read_timeout": "7"}, {"max_connection": 5, "read_timeout": 7}),
        ({"read_timeout": 2.5, "retry_backoff_policy": "CONSTANT"}, {"read_timeout": 2.5}),
        (
            {"skip_ssl_verification": "True", "max_retry_times": -1},
            {"skip_ssl_verification": True, "max_retry_times": -1},
        ),
        ({"mutual_tls_enabled": False, "keystore_type": "PEM"}, {"mutual_tls_enabled": False, "keystore_type": "PEM"}),
    ],
)
def test_what_is_given_is_stored_as_numbers_and_with_ml_commons_defaults(given: Any, stored: Any) -> None:
    assert client_config_document(given) == {**DEFAULTS, **stored}


def test_the_fields_are_stored_in_ml_commons_order() -> None:
    assert list(client_config_document({"max_connection": 1})) == ["max_connection", *DEFAULTS]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"skip_ssl_verification": "True"}, ClientConfig(skip_ssl_verification=True)),
        ({"keystore_type": "PKCS12", "mutual_tls_enabled": True},
         ClientConfig(keystore_type="PKCS12", mutual_tls_enabled=True)),
        ({"max_retry_times": 0, "retry_backoff_millis": 0, "retry_timeout_seconds": 0},
         ClientConfig(max_retry_times=0, retry_backoff_millis=0, retry_timeout_seconds=0)),
        ({"max_connection": "5.0", "connection_timeout": 0.5}, ClientConfig(max_connection=5, connection_timeout=0.5)),
        ({"max_retry_times": "-1", "read_timeout": 5, "retry_backoff_policy": "CONSTANT"},
         ClientConfig(max_retry_times=-1, read_timeout=5)),
        (None, ClientConfig()),
        ("broken", ClientConfig()),
    ],
)  # fmt: skip
def test_what_is_stored_is_read_from_strings_and_numbers(config: Any, expected: ClientConfig) -> None:
    assert read_client_config(config) == expected


@pytest.mark.parametrize(
    "config",
    [
        {"read_timeout": 5, "a_key_of_a_newer_version": {"a": 1}},
        {"read_timeout": 5, "connection_timeout": 0, "max_connection": -1},
        {"read_timeout": 5, "max_connection": 0.5},
        {"read_timeout": 5, "retry_backoff_policy": "a_newer_one", "keystore_type": "JKS"},
        {"read_timeout": 5, "skip_ssl_verification": "perhaps", "max_retry_times": "NaN"},
    ],
)
def test_what_a_newer_or_laxer_ml_commons_has_stored_leaves_a_model_usable(config: Any) -> None:
    assert read_client_config(config) == ClientConfig(read_timeout=5)
