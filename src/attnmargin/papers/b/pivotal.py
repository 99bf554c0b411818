"""Short hand-written reviews, each with the word that decides it (paper B, figure 9)."""

from typing import NamedTuple


class Review(NamedTuple):
    """A text, its pivotal word, and whether it is positive."""

    text: str
    pivotal: str
    positive: bool


REVIEWS = (
    Review("The plot is thin, but the acting is superb.", "superb", True),
    Review("I expected a comedy and found it painfully boring.", "boring", False),
    Review("From the first scene to the last a wonderful film.", "wonderful", True),
    Review("The director had every chance and delivered a terrible mess.", "terrible", False),
    Review("We watched it on a rainy evening and it was delightful.", "delightful", True),
    Review("The trailer promised much; the film is awful.", "awful", False),
    Review("Not one of the actors is famous, and all of them are excellent.", "excellent", True),
    Review("Two hours of my life that I spent on something so dull.", "dull", False),
    Review("My neighbour recommended this and she was right, it is brilliant.", "brilliant", True),
    Review("The music tries to save the worst script of the year.", "worst", False),
    Review("An old story, told again in a beautiful way.", "beautiful", True),
    Review("The camera moves a lot and the story is a waste of time.", "waste", False),
)
