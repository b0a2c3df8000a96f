"""Two ways to refuse a member: with the error, or by leaving it out."""

from opensearch_ml_stream.connectors.errors import InvalidRequest


class Dropped(list[str]):
    """Lets members be left out, and remembers them."""

    def __call__(self, member: str, why: str = "") -> None:
        self.append(member)


def refuse(member: str, why: str = "") -> None:
    raise InvalidRequest(f"[{member}] {why}")
