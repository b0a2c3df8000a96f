"""The command that installs an optional extra, whether this package came from a checkout, a wheel or a registry."""

import re
import shlex
from importlib.metadata import requires


def install_command(extra: str) -> str:
    """Return the pip command for the requirements of an extra of this package."""
    in_extra = re.compile(rf"extra == ['\"]{re.escape(extra)}['\"]")
    needed = [requirement for requirement in requires("opensearch-ml-stream") or () if in_extra.search(requirement)]
    return shlex.join(["pip", "install", *sorted(requirement.partition(";")[0].strip() for requirement in needed)])
