"""The table of special-purpose networks is what its script makes of its source."""

import subprocess
import sys

from integration_tests.structure.modules import CHECKOUT, modules

SCRIPT = CHECKOUT / "scripts" / "special_purpose_addresses.py"
IANA_CSV = """Address Block,Name,RFC,Globally Reachable
10.0.0.0/8,Private-Use,[RFC1918],False
"192.0.0.170/32, 192.0.0.171/32",NAT64/DNS64 Discovery,[RFC8880],False
192.88.99.0/24 [1],Deprecated,[RFC7526],N/A
11.0.0.0/8,Not special so far,[RFC0],False
5f00::/16,Segment Routing (SRv6) SIDs,[RFC9602],False
2fff::/32,Not special so far,[RFC0],False
"""


def test_the_module_is_made_of_the_csv_file() -> None:
    code = f"import runpy; print(runpy.run_path({str(SCRIPT)!r})['module_text'](), end='')"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    module = modules()["plugin.upstream.special_purpose_addresses"]
    assert module.read_text("utf-8") == made


def test_the_script_names_the_blocks_of_a_registry_that_are_missing() -> None:
    completed = subprocess.run(
        [sys.executable, str(SCRIPT), "--missing", "/dev/stdin"],
        input=IANA_CSV,
        capture_output=True,
        text=True,
        check=True,
    )
    assert completed.stdout.split() == ["11.0.0.0/8", "2fff::/32"]
