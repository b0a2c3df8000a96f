"""The simplified interface: lists of texts in, a list of texts out."""

import json
from typing import List

from mlserver import MLModel
from mlserver.codecs import decode_args


class Lists(MLModel):
    @decode_args
    async def predict(self, questions: List[str], contexts: List[str]) -> List[str]:
        return [json.dumps(pair) for pair in zip(questions, contexts, strict=True)]
