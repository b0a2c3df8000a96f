"""An observer that notes what it is told."""

from opensearch_ml_stream.plugin.observation import Observation, Observer


class Recorder(Observer):
    """Notes each moment, with the attributes of the prediction that are named."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.told: list[tuple[object, ...]] = []

    @property
    def moments(self) -> list[object]:
        """The moments alone."""
        return [moment for moment, *_ in self.told]

    def admitted(self, prediction: Observation) -> None:
        self.note("admitted", prediction)

    def first_chunk(self, prediction: Observation) -> None:
        self.note("first_chunk", prediction)

    def ended(self, prediction: Observation) -> None:
        self.note("ended", prediction)

    def refused(self, prediction: Observation) -> None:
        self.note("refused", prediction)

    def note(self, moment: str, prediction: Observation) -> None:
        """Note a moment."""
        self.told.append((moment, *(getattr(prediction, name) for name in self.names)))
