"""Graphs of the arrows that were seen often enough."""

import numpy as np

from attnmargin.base.checks import check_whole
from attnmargin.base.errors import InputError
from attnmargin.base.ragged import Ids
from attnmargin.graphs.collection import TokenGraphs
from attnmargin.graphs.edges import distinct
from attnmargin.graphs.noise import Noise
from attnmargin.graphs.samples import Samples
from attnmargin.graphs.vocabulary import BITS

_MASK = (1 << BITS) - 1


def frequent_graphs(graphs: TokenGraphs, count: int = 1, share: float = 0.0) -> TokenGraphs:
    """Keep the arrows i → j that were seen in ``count`` sequences, and often against j → i.

    Args:
        graphs: from :func:`token_graphs`, with samples.
        count: an arrow needs at least so many sequences.
        share: of the sequences that chose one of two tokens over the other, i needs this share.

    Returns:
        The graphs of the other arrows. ``noise`` counts the sequences with a left-out arrow between
        two components; their labels stay in the data, for composition.

    Example:
        >>> import attnmargin as am
        >>> graphs = am.token_graphs([[0, 1, 2]] * 10, [0] * 9 + [1], 3)
        >>> am.graphs.frequent_graphs(graphs, count=2)[2].components
        [[0], [1], [2]]
    """
    check_whole(count=count)
    if not isinstance(share, int | float) or not 0.0 <= share <= 1.0:
        raise InputError("share", f"{share!r}", "a share from 0 to 1")
    if graphs.samples is None:
        raise InputError("graphs", "graphs without samples", "keep_samples=True")
    owner, arrows = _arrows(graphs.samples)
    keys, place, times = np.unique(arrows, return_inverse=True, return_counts=True)
    back = _times(keys, times, _reversed(keys))
    weak = (times < count) | (times < share * (times + back))
    weak &= _reversed(keys) != keys
    if not weak.any():
        return graphs
    loops = (graphs.last << 2 * BITS) | (graphs.token << BITS) | graphs.token
    kept = TokenGraphs(
        distinct(np.concatenate((keys[~weak], loops))), graphs.vocabulary, graphs.samples,
        graphs.unrealisable, graphs.dropped,
    )  # fmt: skip
    kept.noise = _noise(kept, graphs.samples, owner[weak[place]], arrows[weak[place]])
    return kept


def _arrows(samples: Samples) -> tuple[Ids, Ids]:
    """List the arrows of each sequence, once each, and their sequences."""
    owner, token = np.divmod(distinct((samples.owner << BITS) | samples.tokens), 1 << BITS)
    return owner, (samples.last[owner] << 2 * BITS) | (samples.labels[owner] << BITS) | token


def _reversed(keys: Ids) -> Ids:
    last, source, target = keys >> 2 * BITS, (keys >> BITS) & _MASK, keys & _MASK
    found: Ids = (last << 2 * BITS) | (target << BITS) | source
    return found


def _times(keys: Ids, times: Ids, wanted: Ids) -> Ids:
    """Look up how often arrows were seen."""
    place = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
    return np.where(keys[place] == wanted, times[place], 0)


def _noise(kept: TokenGraphs, samples: Samples, owner: Ids, arrows: Ids) -> Noise:
    """Count the sequences with a left-out arrow between components, per last token."""
    last = arrows >> 2 * BITS
    parts = [kept.component[kept.place_of(last, own)]
             for own in ((arrows >> BITS) & _MASK, arrows & _MASK)]  # fmt: skip
    wrong = distinct(owner[parts[0] != parts[1]])
    against = np.bincount(samples.last[wrong], minlength=kept.K)[kept.roots]
    count = np.bincount(samples.last, minlength=kept.K)[kept.roots].astype(float)
    return Noise(kept.roots, against, count, against / np.maximum(count, 1.0), 0)
