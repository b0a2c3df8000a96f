"""The connector bodies of ML Commons' public blueprint pages, by what each of them holds."""

from integration_tests.interop.public_blueprints import (
    aws_services,
    aws_text,
    aws_vectors,
    cohere,
    judges,
    keyed_providers,
)
from integration_tests.interop.public_blueprints.body import PublicBlueprint

PUBLIC_BLUEPRINTS: list[PublicBlueprint] = [
    *aws_text.BLUEPRINTS,
    *aws_vectors.BLUEPRINTS,
    *aws_services.BLUEPRINTS,
    *cohere.BLUEPRINTS,
    *keyed_providers.BLUEPRINTS,
    *judges.BLUEPRINTS,
]
