"""Make the table of special-purpose networks from scripts/special_purpose_addresses.csv.

    python scripts/special_purpose_addresses.py                 # write upstream/special_purpose_addresses.py
    python scripts/special_purpose_addresses.py --missing FILE  # name blocks of an IANA registry's CSV file not covered

IANA's files: https://www.iana.org/assignments/iana-ipv4-special-registry/iana-ipv4-special-registry-1.csv and
https://www.iana.org/assignments/iana-ipv6-special-registry/iana-ipv6-special-registry-1.csv.
"""

import csv
import re
import sys
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path

HERE = Path(__file__).parent
SOURCE = HERE / "special_purpose_addresses.csv"
MODULE = HERE.parent / "plugin/opensearch_ml_stream/plugin/upstream/special_purpose_addresses.py"

_HEAD = '''"""Special-purpose networks and names, made by scripts/special_purpose_addresses.py from its CSV file.

{state}
"""

from ipaddress import IPv4Network, IPv6Network
'''
_TABLES = (
    ("SPECIAL_IPV4", "special", IPv4Network),
    ("SPECIAL_IPV6", "special", IPv6Network),
    ("TRANSLATED_IPV6", "translated", IPv6Network),
    ("PLATFORM_IPV4", "platform", IPv4Network),
    ("PLATFORM_IPV6", "platform", IPv6Network),
    ("SPECIAL_NAMES", "special", str),
    ("PLATFORM_NAMES", "platform", str),
)

Block = IPv4Network | IPv6Network | str


def module_text() -> str:
    """Return the module as it must be."""
    text = SOURCE.read_text("utf-8")
    state = re.search(r"^# (State: .*)$", text, re.MULTILINE)
    if state is None:
        raise SystemExit(f"{SOURCE} does not say of when it is")
    rows = list(_rows(text.splitlines()))
    tables = [
        _table(name, kind, [row for row in rows if row["treatment"] == treatment]) for name, treatment, kind in _TABLES
    ]
    return "\n".join([_HEAD.format(state=state[1]), *tables]) + "\n"


def missing(registry: Iterable[str]) -> list[str]:
    """Return the blocks of an IANA registry that no block of ours covers."""
    ours = [block for row in _rows(SOURCE.read_text("utf-8").splitlines()) if not isinstance(block := _block(row), str)]
    cells = [row["Address Block"] for row in csv.DictReader(registry)]
    blocks = [ip_network(text) for cell in cells for text in re.findall(r"[0-9a-f:.]+/\d+", cell)]
    return [str(block) for block in blocks if not any(_covers(one, block) for one in ours)]


def _rows(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    yield from csv.DictReader(line for line in lines if not line.startswith("#"))


def _block(row: dict[str, str]) -> Block:
    try:
        return ip_network(row["block"])
    except ValueError:
        if "/" in row["block"]:
            raise
        return row["block"]


def _covers(ours: IPv4Network | IPv6Network, theirs: IPv4Network | IPv6Network) -> bool:
    return ours.version == theirs.version and theirs.network_address in ours and theirs.prefixlen >= ours.prefixlen


def _table(name: str, kind: type, rows: list[dict[str, str]]) -> str:
    lines = []
    for row in rows:
        block = _block(row)
        if isinstance(block, kind):
            value = f'"{block}"' if isinstance(block, str) else f'{type(block).__name__}("{block}")'
            lines.append(f"    {value},  # {row['name']}; {row['source']}")
    return f"{name} = (\n" + "\n".join(lines) + "\n)"


def main() -> None:
    """Write the module, or compare with a registry."""
    if sys.argv[1:2] == ["--missing"] and len(sys.argv) == 3:
        with Path(sys.argv[2]).open(encoding="utf-8", newline="") as file:
            print("\n".join(missing(file)) or "nothing is missing")
    elif len(sys.argv) == 1:
        MODULE.write_text(module_text(), "utf-8")
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
