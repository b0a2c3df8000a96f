"""The vocabulary of all stand-ins, and how they continue a text."""

END = 2
VOCABULARY = ["<unk>", "<s>", "</s>", "user", "assistant", "system", *(f"w{number}" for number in range(60))]


def encode(text: str) -> list[int]:
    return [VOCABULARY.index(word) if word in VOCABULARY else 0 for word in text.split()]


def decode(tokens: list[int], *, skip_special_tokens: bool = True) -> str:
    return " ".join(VOCABULARY[token] for token in tokens if token > END or not skip_special_tokens)


def next_token(tokens: list[int]) -> int:
    """Return what comes behind these tokens: a word that depends on the last ones, the end behind w59."""
    if tokens[-1] == len(VOCABULARY) - 1:
        return END
    return 6 + (tokens[-1] * 7 + sum(tokens[-3:]) + len(tokens)) % 59
