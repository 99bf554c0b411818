"""Frequent English words that say little about a text, and those that negate the next word."""

_STOPPED = """a about above after again against ain't all am an and any are aren't as at be
because been before being below between both but by can can't cannot could couldn't did didn't do
does doesn't doing don't down during each few for from further had hadn't has hasn't have haven't
having he he'd he'll he's her here here's hers herself him himself his how how's i i'd i'll i'm
i've if in into is isn't it it'd it'll it's its itself just let's ll me might mightn't more most
must mustn't my myself needn't no nor not now of off on once only or other ought our ours
ourselves out over own re s same shan't she she'd she'll she's should shouldn't so some such t
than that that'll that's the their theirs them themselves then there there's these they they'd
they'll they're they've this those through to too under until up us ve very was wasn't we we'd
we'll we're we've were weren't what what's when when's where where's which while who who's whom
why why's will with won't would wouldn't y you you'd you'll you're you've your yours yourself
yourselves"""
STOP_WORDS = frozenset(_STOPPED.split())
# Stop words that turn the meaning of the next word: in a pair, each counts as "not".
NEGATIONS = frozenset(
    {word for word in STOP_WORDS if word.endswith("n't")} | {"cannot", "not", "no", "nor"}
)
