"""Find the login for a sidecar: from the options, then the environment, then the logins remembered for its URL."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from opensearch_ml_stream.client.authorization import basic, bearer
from opensearch_ml_stream.plugin.cli.command_errors import WrongUsage
from opensearch_ml_stream.plugin.cli.login_file import Secret, login_file, read_logins
from opensearch_ml_stream.plugin.cli.options import ask, check_secret_source, read_secret
from opensearch_ml_stream.plugin.cli.sidecar_options import SidecarOptions
from opensearch_ml_stream.plugin.cli.sidecar_url import sidecar_url
from opensearch_ml_stream.plugin.security.presented_credentials import ApiKey, NameAndPassword

KEY_VARIABLE = "MLSTREAM_API_KEY"
USER_VARIABLE = "MLSTREAM_USER"
PASSWORD_VARIABLE = "MLSTREAM_PASSWORD"


@dataclass(frozen=True, slots=True)
class Login:
    """A login to present to a sidecar. `source` names it for people: "the key of MLSTREAM_API_KEY"."""

    secret: Secret
    source: str

    def authorization(self) -> str:
        """Return the value of `Authorization`. WrongUsage, without the secret, if a header cannot hold it."""
        try:
            if isinstance(self.secret, ApiKey):
                return bearer(self.secret.value)
            return basic(self.secret.name, self.secret.password)
        except ValueError as error:
            raise WrongUsage(f"{self.source} cannot be used: {error}") from None


def find_login(options: SidecarOptions, environment: Mapping[str, str] = os.environ) -> Login | None:
    """Return the login that a command uses, None without any. WrongUsage for one that cannot be read."""
    return (
        given_login(options, environment)
        or environment_login(environment)
        or _remembered_login(sidecar_url(options.url), environment)
    )


def given_login(options: SidecarOptions, environment: Mapping[str, str] = os.environ) -> Login | None:
    """Return the login that `--api-key`, or `--user` and `--password`, give."""
    if options.api_key is not None:
        if options.user is not None or options.password is not None:
            raise WrongUsage("--api-key cannot be combined with --user or --password")
        check_secret_source("--api-key", options.api_key)
        return Login(ApiKey(read_secret("API key", options.api_key).strip()), "the key of --api-key")
    if options.user is not None:
        return Login(_given_user(options.user, options.password, environment), "the user of --user")
    if options.password is not None:
        raise WrongUsage("--password needs --user")
    return None


def environment_login(environment: Mapping[str, str]) -> Login | None:
    """Return the login of MLSTREAM_API_KEY, else of MLSTREAM_USER and MLSTREAM_PASSWORD; empty ones are not set."""
    if key := environment.get(KEY_VARIABLE, "").strip():
        return Login(ApiKey(key), f"the key of {KEY_VARIABLE}")
    user, password = environment.get(USER_VARIABLE), environment.get(PASSWORD_VARIABLE)
    if not user:
        return None
    if not password:
        raise WrongUsage(f"{USER_VARIABLE} is the name of a user; its password belongs in {PASSWORD_VARIABLE}")
    return Login(NameAndPassword(user, password), f"the user of {USER_VARIABLE}")


def _given_user(user: str, source: str | None, environment: Mapping[str, str]) -> NameAndPassword:
    if ":" in user:
        raise WrongUsage(
            "--user takes a name only; its password is prompted for, or comes from --password or the variable "
            f"{PASSWORD_VARIABLE}"
        )
    if source is not None:
        check_secret_source("--password", source)
        return NameAndPassword(user, read_secret(f"Password of {user}", source))
    return NameAndPassword(user, environment.get(PASSWORD_VARIABLE) or ask(f"Password of {user}"))


def _remembered_login(url: str, environment: Mapping[str, str]) -> Login | None:
    secret = read_logins(login_file(environment)).get(url)
    return None if secret is None else Login(secret, "the login that is remembered for it")
