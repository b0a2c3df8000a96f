"""Print the oldest allowed version of each dependency in pyproject.toml, and of the extra grpc, as constraints for pip.

python scripts/oldest.py > constraints.txt && pip install -e '.[test]' -c constraints.txt
"""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
_BOUND = re.compile(r"([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?>=([0-9][0-9a-z.]*)")


def main() -> None:
    """Print one `name==version` a line."""
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    for dependency in [*project["dependencies"], *project["optional-dependencies"]["grpc"]]:
        bound = _BOUND.match(dependency)
        if bound is None:
            raise SystemExit(f"{dependency}: has no lower bound")
        print(f"{bound[1]}=={bound[2]}")


if __name__ == "__main__":
    main()
