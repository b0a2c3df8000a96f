"""The simplified interface with NumPy: a matrix in, its double out."""

import numpy as np
from mlserver import MLModel
from mlserver.codecs import decode_args


class Arrays(MLModel):
    @decode_args
    async def predict(self, matrix: np.ndarray) -> np.ndarray:
        return matrix * 2
