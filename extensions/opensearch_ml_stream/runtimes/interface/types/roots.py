"""The base of types that are one value: a list, or the data of a tensor."""

from collections.abc import Iterator
from typing import Any, TypeVar

from opensearch_ml_stream.runtimes.interface.types.base import BaseModel, Dumping, dumped_value

Self = TypeVar("Self", bound="RootModel")


class RootModel(BaseModel):
    """A record of one value, which stands for itself in JSON."""

    root: Any

    def __init__(self, root: Any = ..., /, **values: Any) -> None:
        if root is not ...:
            values["root"] = root
        elif not values:
            values["root"] = None
        super().__init__(**values)

    @classmethod
    def model_validate(cls: type[Self], obj: Any, **_: Any) -> Self:
        """Make a record of the value; ValidationError where it does not fit."""
        return obj if isinstance(obj, cls) else cls(root=obj)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.root)

    def __getitem__(self, position: Any) -> Any:
        return self.root[position]

    def __len__(self) -> int:
        return len(self.root)

    def dump_as(self, how: Dumping) -> Any:
        """Make what stands for the value in a dictionary."""
        return dumped_value(self.root, how)

    def model_dump(self, exclude_unset: bool = False, exclude_none: bool = False, **kwargs: Any) -> Any:
        """Make a list, or what else the value is in a dictionary."""
        return super().model_dump(exclude_unset, exclude_none, **kwargs)

    def model_dump_json(self, exclude_unset: bool = False, exclude_none: bool = False, **kwargs: Any) -> str:
        """Make JSON of the value."""
        return super().model_dump_json(exclude_unset, exclude_none, **kwargs)
