"""Returns what became of each input by its content type, and the tensor as it came."""

from mlserver import MLModel
from mlserver.codecs import StringCodec
from mlserver.types import InferenceRequest, InferenceResponse, ResponseOutput


class Echo(MLModel):
    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        outputs = []
        for tensor in payload.inputs:
            decoded = self.decode(tensor)
            outputs.append(StringCodec.encode_output(f"{tensor.name} decoded", [f"{type(decoded).__name__} {decoded}"]))
            outputs.append(
                ResponseOutput(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape, data=tensor.data)
            )
        return InferenceResponse(model_name=self.name, outputs=outputs)
