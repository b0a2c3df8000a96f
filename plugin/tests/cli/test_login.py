"""Which login a command uses: options before the environment before what is remembered for this very URL."""

from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.cli.command_errors import WrongUsage
from opensearch_ml_stream.plugin.cli.login import Login, find_login
from opensearch_ml_stream.plugin.cli.login_file import login_file, write_logins
from opensearch_ml_stream.plugin.cli.sidecar_options import SidecarOptions
from opensearch_ml_stream.plugin.security.presented_credentials import ApiKey, NameAndPassword

URL = "https://sidecar:9510/ml"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables of a user who has logged in to URL."""
    variables = {"HOME": str(tmp_path)}
    write_logins(login_file(variables), {URL: ApiKey("remembered")})
    return variables


def found(options: SidecarOptions, environment: dict[str, str]) -> object:
    login = find_login(options, environment)
    return None if login is None else login.secret


def test_options_go_before_the_environment_before_what_is_remembered(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("given\n")
    by_key = SidecarOptions(URL, api_key=f"file:{tmp_path}/key")
    by_user = SidecarOptions(URL, user="ann", password=f"file:{tmp_path}/key")
    user = {"MLSTREAM_USER": "bob", "MLSTREAM_PASSWORD": "pw"}
    key = {"MLSTREAM_API_KEY": " of-environment\n"}
    assert found(by_key, environment | user | key) == ApiKey("given")
    assert found(by_user, environment | user | key) == NameAndPassword("ann", "given")
    assert found(SidecarOptions(URL), environment | user | key) == ApiKey("of-environment")
    assert found(SidecarOptions(URL), environment | user) == NameAndPassword("bob", "pw")
    assert found(SidecarOptions(URL), environment) == ApiKey("remembered")
    assert found(SidecarOptions(URL), {"HOME": str(tmp_path / "other")}) is None


def test_variables_that_are_empty_are_not_set(environment: dict[str, str]) -> None:
    empty = {"MLSTREAM_API_KEY": " ", "MLSTREAM_USER": "", "MLSTREAM_PASSWORD": ""}
    assert found(SidecarOptions(URL), environment | empty) == ApiKey("remembered")


def test_the_password_of_an_option_user_may_be_in_the_environment(environment: dict[str, str]) -> None:
    variables = environment | {"MLSTREAM_USER": "bob", "MLSTREAM_PASSWORD": "pw"}
    assert found(SidecarOptions(URL, user="ann"), variables) == NameAndPassword("ann", "pw")


@pytest.mark.parametrize("url", [f"{URL}/", "HTTPS://Sidecar:9510/ml"])
def test_another_spelling_of_the_url_is_the_same_sidecar(environment: dict[str, str], url: str) -> None:
    assert found(SidecarOptions(url), environment) == ApiKey("remembered")


@pytest.mark.parametrize(
    "url",
    [
        "http://sidecar:9510/ml",
        "https://sidecar/ml",
        "https://sidecar:9511/ml",
        "https://sidecar:9510",
        "https://sidecar:9510/ml/other",
        "https://sidecar.:9510/ml",
        "https://sidecar.evil:9510/ml",
        "https://evil/sidecar:9510/ml",
        "https://127.0.0.1:9510/ml",
    ],
)
def test_a_remembered_login_is_for_no_other_scheme_host_port_or_prefix(environment: dict[str, str], url: str) -> None:
    assert found(SidecarOptions(url), environment) is None


@pytest.mark.parametrize("variables", [{"MLSTREAM_USER": "bob"}, {"MLSTREAM_USER": "bob:hunter2"}])
def test_a_user_without_a_password_is_wrong_usage(variables: dict[str, str]) -> None:
    with pytest.raises(WrongUsage, match="its password belongs in MLSTREAM_PASSWORD") as raised:
        find_login(SidecarOptions(), variables)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    "secret", [ApiKey("hunter2 hunter2"), ApiKey("hünter2"), ApiKey(""), ApiKey("hunter2" * 1000),
               NameAndPassword("a:hunter2", "hunter2"), NameAndPassword("", "hunter2")]
)  # fmt: skip
def test_what_no_header_can_hold_is_named_by_its_source_and_not_shown(secret: ApiKey | NameAndPassword) -> None:
    with pytest.raises(WrongUsage, match=r"^the key of X cannot be used: ") as raised:
        Login(secret, "the key of X").authorization()
    assert "nter2" not in str(raised.value)
