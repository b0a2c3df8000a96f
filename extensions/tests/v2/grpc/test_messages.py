from pathlib import Path

import pytest
from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_tools import protoc

from opensearch_ml_stream.extensions.v2.grpc import inference_messages as messages
from opensearch_ml_stream.plugin.grpc_port.messages import read_files

CHECKOUT = Path(__file__).parents[4]


@pytest.mark.parametrize(
    "proto", sorted(CHECKOUT.glob("*/opensearch_ml_stream/**/protos/*.proto")), ids=lambda proto: proto.stem
)
def test_the_descriptors_are_what_the_compiler_makes_of_the_proto_file(proto: Path, tmp_path: Path) -> None:
    compiled = tmp_path / "compiled.binpb"
    arguments = ["protoc", f"--proto_path={proto.parent}", f"--descriptor_set_out={compiled}", str(proto)]
    assert protoc.main(arguments) == 0
    descriptors = FileDescriptorSet.FromString(compiled.read_bytes()).file
    assert list(descriptors) == read_files(proto.parent, proto.stem), "run `make protos`"


def test_the_common_pool_is_left_to_the_messages_of_mlserver_and_tritonclient() -> None:
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("inference.ModelInferRequest")
    assert messages.POOL.FindServiceByName(messages.INFERENCE_SERVICE)
