"""How the packages of an extra are installed, wherever this one came from: a checkout, a wheel, a registry."""

import re
import shlex
from importlib.metadata import requires


def install_command(extra: str) -> str:
    """Return the command that installs what an extra of this package needs."""
    in_extra = re.compile(rf"extra == ['\"]{re.escape(extra)}['\"]")
    needed = [requirement for requirement in requires("opensearch-ml-stream") or () if in_extra.search(requirement)]
    return shlex.join(["pip", "install", *sorted(requirement.partition(";")[0].strip() for requirement in needed)])
