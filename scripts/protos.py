"""Write the descriptor set beside each .proto of the package; run by `make protos`.

They are kept in the repository, so that no install needs a compiler: it would come to every user, for an extra that few
want. A test makes them anew and compares.
"""

import sys
from pathlib import Path

from grpc_tools import protoc

CHECKOUT = Path(__file__).parents[1]


def compile_proto(proto: Path, target: Path) -> None:
    """Write a serialized FileDescriptorSet, which depends on no version of protobuf."""
    code = protoc.main(["protoc", f"--proto_path={proto.parent}", f"--descriptor_set_out={target}", str(proto)])
    if code:
        sys.exit(code)


def main() -> None:
    """Compile each .proto."""
    for proto in sorted(CHECKOUT.glob("*/opensearch_ml_stream/**/protos/*.proto")):
        compile_proto(proto, proto.with_suffix(".binpb"))


if __name__ == "__main__":
    main()
