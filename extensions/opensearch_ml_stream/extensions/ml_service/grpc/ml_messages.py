"""Messages of MLService, in a pool of descriptors of their own. Its server reads and writes their bytes itself."""

from pathlib import Path
from typing import Any

from google.protobuf.message_factory import GetMessageClass

from opensearch_ml_stream.plugin.grpc_port.messages import pool_of, read_files

PROTOS = Path(__file__).parent / "protos"
ML_SERVICE = "org.opensearch.protobufs.services.MLService"
FILES = read_files(PROTOS, "ml_messages", "ml_service")
POOL = pool_of(FILES)


def message_class(name: str) -> Any:
    """Return the class of the message of that full name."""
    return GetMessageClass(POOL.FindMessageTypeByName(name))
