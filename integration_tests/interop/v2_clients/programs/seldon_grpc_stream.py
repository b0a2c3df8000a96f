"""The same client over gRPC, which Seldon's page names and does not show. The stub is made from the `.proto`."""

import grpc

inference_pb2, inference_pb2_grpc = grpc.protos_and_services("inference.proto")


def tensor(name: str, text: str) -> object:
    contents = inference_pb2.InferTensorContents(bytes_contents=[text.encode()])
    return inference_pb2.ModelInferRequest.InferInputTensor(name=name, shape=[1], datatype="BYTES", contents=contents)


request = inference_pb2.ModelInferRequest(
    model_name="text-model",
    inputs=[tensor("role", "user"), tensor("content", "What is the capital of France?"), tensor("type", "text")],
)

with grpc.insecure_channel("localhost:8081") as channel:
    stub = inference_pb2_grpc.GRPCInferenceServiceStub(channel)
    for response in stub.ModelStreamInfer(iter([request]), metadata=[("seldon-model", "text-model")]):
        tensors = {output.name: output.contents.bytes_contents[0].decode() for output in response.outputs}
        print([tensors["role"], tensors["content"], tensors["type"]])
