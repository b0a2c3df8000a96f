"""TensorZero's gateway as its Python package has it; run in that package's environment: `tensorzero_gateway.py CONFIG`.

Prints the gateway's address, whose port cannot be chosen, and runs until it is ended.
"""

import signal
import sys

import tensorzero

gateway = tensorzero._start_http_gateway(
    config_file=sys.argv[1], clickhouse_url=None, postgres_url=None, valkey_url=None, async_setup=False
)
sys.stdout.write(f"address {gateway.base_url}\n")
sys.stdout.flush()
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.pause()
