"""What the runtime for transformers uses of torch: tensors of whole numbers with one or two dimensions."""

from types import SimpleNamespace
from typing import Any

bool = "bool"
cuda = SimpleNamespace(is_available=lambda: False)
Generator: Any = None  # this and what follows is for scores, which stand-ins do not give
bincount: Any = None
full_like: Any = None
inf: Any = None
multinomial: Any = None


class Tensor:
    device = "cpu"

    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows

    @property
    def shape(self) -> tuple[int, ...]:
        is_flat = not self.rows or not isinstance(self.rows[0], list)
        return (len(self.rows),) if is_flat else (len(self.rows), len(self.rows[0]))

    def reshape(self, size: int) -> "Tensor":
        assert size == -1
        return Tensor([item for row in self.rows for item in (row if isinstance(row, list) else [row])])

    def tolist(self) -> list[Any]:
        return self.rows

    def to(self, device: str) -> "Tensor":
        return self

    def any(self) -> Any:
        return any(self.rows)

    def __getitem__(self, index: int) -> "Tensor":
        return Tensor(self.rows[index])


def full(size: tuple[int, ...], value: Any, *, dtype: str, device: str) -> Tensor:
    assert (len(size), dtype, device) == (1, "bool", "cpu")
    return Tensor([value] * size[0])
