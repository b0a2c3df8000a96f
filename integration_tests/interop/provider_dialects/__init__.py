"""The providers of the shipped blueprints, by the names of these."""

from integration_tests.interop.provider_dialects.dialect import dialect_of

from tests.providers.recorded_streams import EXCHANGES

DIALECTS = {name: dialect_of(exchange) for name, exchange in EXCHANGES.items()}
