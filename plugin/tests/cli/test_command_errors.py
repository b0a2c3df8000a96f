"""What a failed request tells the user."""

import pytest

from opensearch_ml_stream.plugin.cli.command_errors import CommandFailed, RequestFailed, Unreachable, WrongUsage


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("Remote inference host name has private ip address: localhost", "endpoints allow URL"),
        ("Failed to find model with the provided model id: x", "`opensearch-ml-stream models list`"),
    ],
)
def test_an_error_that_the_user_can_mend_comes_with_advice(reason: str, advice: str) -> None:
    message = str(RequestFailed(400, reason))
    assert message.startswith(f"{reason} (status 400); ")
    assert advice in message


def test_any_other_error_is_told_as_it_is() -> None:
    assert str(RequestFailed(424, "overloaded")) == "overloaded (status 424)"
    advised = (
        "host name has private ip address: h. If it is to be called: opensearch-ml-stream endpoints allow http://h"
    )
    assert str(RequestFailed(400, advised)) == f"{advised} (status 400)"


def test_exit_codes_tell_failures_from_wrong_usage_and_unreachable_servers() -> None:
    errors = (CommandFailed("x"), RequestFailed(400, "x"), WrongUsage("x"), Unreachable("x"))
    assert [error.exit_code for error in errors] == [1, 1, 2, 3]
