"""Short reviews, each with the word that decides it (paper B, figure 9): sentences with a gap."""

from typing import NamedTuple


class Review(NamedTuple):
    """A text, its pivotal word, and whether it is positive."""

    text: str
    pivotal: str
    positive: bool


_SENTENCES = (
    "The plot is thin, but the acting is {}.",
    "I expected a comedy and found it {}.",
    "From the first scene to the last it is {}.",
    "We watched it on a rainy evening and it was {}.",
    "The trailer promised much; the film is {}.",
    "My neighbour told me to see this, and it is {}.",
    "An old story, told again in a {} way.",
    "The camera moves a lot and the story is {}.",
    "I saw it twice with my sister, and both times it was {}.",
    "After ten minutes you know that this is a {} film.",
    "It runs for two hours, and every minute is {}.",
    "Not one of the actors is famous, and all of them are {}.",
)
_POSITIVE = (
    "superb", "wonderful", "delightful", "excellent", "brilliant", "beautiful", "great", "amazing",
    "fantastic", "perfect", "charming", "magnificent", "terrific", "lovely",
)  # fmt: skip
_NEGATIVE = (
    "boring", "terrible", "awful", "dull", "poor", "horrible", "bad", "stupid", "weak",
    "ridiculous", "disappointing", "pathetic", "dreadful", "useless",
)  # fmt: skip

REVIEWS = tuple(
    Review(sentence.format(word), word, word in _POSITIVE)
    for sentence in _SENTENCES
    for pair in zip(_POSITIVE, _NEGATIVE, strict=True)
    for word in pair
)
