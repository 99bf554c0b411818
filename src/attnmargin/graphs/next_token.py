"""Next-token data as attention data, and the heads of paper C."""

import torch
from torch import Tensor

from attnmargin.attention.heads import ScoreHead
from attnmargin.base.arrays import Array, booleans, broadcast, finite, floats, integers
from attnmargin.base.checks import check_whole
from attnmargin.base.errors import InputError
from attnmargin.base.seeds import seed_of
from attnmargin.data.attention_data import AttentionData, token_ids
from attnmargin.data.embeddings import embedded, embedding_table
from attnmargin.data.random import normal


def next_token_data(E: Array, sequences: Array, mask: Array | None = None) -> AttentionData:
    """Build self-attention data from token sequences; the last token is the query (paper C, eq. 1).

        f_W(X) = Xᵀ softmax(X W x̄),   x̄ the last token of X

    Args:
        E: embeddings ``(*B, K, d)``.
        sequences: token ids ``(*B, n, T)``, or n lists of ids of any length.
        mask: bool ``(*B, n, T)``, true for the tokens that attention sees. It does not change the
            query, which is the last token even if masked: the cyclic data use such a mask.

    Example:
        >>> import attnmargin as am
        >>> data = am.graphs.next_token_data([[1.0, 0.0], [0.0, 1.0]], [[0, 1, 0], [1]])
        >>> data.z.tolist(), data.mask.tolist()
        ([[1.0, 0.0], [0.0, 1.0]], [[True, True, True], [True, False, False]])
    """
    table = embedding_table(E)
    ids, ragged = token_ids(sequences, None, table)
    X = embedded(table, ids)
    end = ids.new_full(ids.shape[:-1], ids.shape[-1]) if ragged is None else ragged.sum(-1)
    z = X.take_along_dim((end - 1)[..., None, None].expand(*X.shape[:-2], 1, X.shape[-1]), -2)
    return AttentionData(X, z.squeeze(-2), mask=_seen(mask, ragged, X))


def _seen(mask: Array | None, ragged: Tensor | None, X: Tensor) -> Tensor | None:
    """Mark the tokens that attention sees, ``(*B, n, T)``: they exist and are not masked out."""
    shape = X.shape[:-1]
    exists = None if ragged is None else ragged.expand(shape)
    if mask is None:
        return exists
    seen = booleans("mask", mask, X)
    if seen.ndim < 2 or seen.shape not in (shape, shape[-2:]):
        raise InputError("mask", f"shape {tuple(seen.shape)}", f"{tuple(shape)}")
    seen = seen.expand(shape)
    return seen if exists is None else seen & exists


def next_token_head(E: Array, sequences: Array, labels: Array, C: Array | None = None) -> ScoreHead:
    """Build the head that reads the label: token scores ``γ_it = c_yᵀ x_it`` for label y.

    Args:
        E, sequences: as in :func:`next_token_data`.
        labels: ids ``(*B, n)``.
        C: classifier ``(*B, K, d)``. The default is ``C Eᵀ = I`` (paper C, Assumption 4): the label
            scores one, every other token zero, and ``u`` is the probability of the label.

    Returns:
        A head for :func:`attnmargin.train` and similar functions, with ``loss="log"`` as in
        Theorem 3, or ``"squared"``. For cross-entropy over the vocabulary see
        :class:`attnmargin.heads.VocabularyHead`.

    Example:
        >>> import attnmargin as am, torch
        >>> E, sequences, labels = torch.eye(3), [[0, 1, 2], [1, 2, 1]], [0, 2]
        >>> data = am.graphs.next_token_data(E, sequences)
        >>> head = am.graphs.next_token_head(E, sequences, labels)
        >>> run = am.train(data, head=head, loss="log", lr=0.01, steps=4000, record=4000)
        >>> graphs = am.token_graphs(sequences, labels, 3)
        >>> bool(am.correlation(run.W[-1], am.solve(am.graph_problem(E, graphs)).W) > 0.99)
        True
    """
    table = embedding_table(E)
    ids, mask = token_ids(sequences, None, table)
    y = integers("labels", labels, table)
    if y.ndim == 0 or y.shape[-1] != ids.shape[-2]:
        needs = f"one label per sequence, (*B, {ids.shape[-2]})"
        raise InputError("labels", f"shape {tuple(y.shape)}", needs)
    if not bool(((y >= 0) & (y < table.shape[-2])).all()):
        got = f"labels from {int(y.min())} to {int(y.max())}"
        raise InputError("labels", got, f"ids from 0 to {table.shape[-2] - 1}")
    batches = {"E": table.shape[:-2], "sequences": ids.shape[:-2], "labels": y.shape[:-1]}
    broadcast(batches)
    if C is None:
        same = (ids == y.unsqueeze(-1)) & (mask if mask is not None else True)
        return ScoreHead(same.to(table.dtype))
    classes = finite("C", floats("C", C, like=table))
    if classes.shape[-2:] != table.shape[-2:]:
        needs = f"a classifier of shape (*B, {table.shape[-2]}, {table.shape[-1]})"
        raise InputError("C", f"shape {tuple(classes.shape)}", needs)
    broadcast(batches | {"C": classes.shape[:-2]})
    wanted = embedded(classes, y.unsqueeze(-1))
    scores = (embedded(table, ids) * wanted).sum(-1)
    return ScoreHead(scores if mask is None else scores.masked_fill(~mask, 0.0))


def random_next_tokens(
    K: int,
    d: int,
    n: int,
    T: int,
    trials: int | None = None,
    *,
    name: str = "sample",
    seed: int = 0,
    acyclic: bool = False,
    labels: str = "sequence",
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw random next-token data as in paper C, Appendix D; each trial has its own seed.

    Embeddings are uniform on the unit sphere, tokens uniform over the vocabulary. The label is a
    random token of the sequence. With ``acyclic``, it is the token of highest priority, and the
    ids give the priority order.

    Appendix D draws labels from the whole vocabulary, ``labels="vocabulary"``. Then most data
    violate Assumption 2, on which the theorems rest (docs/errata.md).

    Args:
        K, d: vocabulary size and embedding width; n, T: number of sequences and their length.
        trials: batch size; None for one instance without a batch dimension.
        labels: "sequence" or "vocabulary", where they are drawn from.

    Returns:
        Embeddings ``(*B, K, d)``, sequences ``(*B, n, T)`` and labels ``(*B, n)``.

    Example:
        >>> import attnmargin as am
        >>> drawn = am.graphs.random_next_tokens(6, 8, 6, 4, trials=100, name="C:fig4")
        >>> E, sequences, labels = drawn
        >>> E.shape, sequences.shape, labels.shape
        (torch.Size([100, 6, 8]), torch.Size([100, 6, 4]), torch.Size([100, 6]))
    """
    count = 1 if trials is None else trials
    check_whole(K=K, d=d, n=n, T=T, trials=count)
    if labels not in ("sequence", "vocabulary"):
        raise InputError("labels", f"{labels!r:.40}", "'sequence' or 'vocabulary'")
    if acyclic and labels != "sequence":
        raise InputError("labels", f"{labels!r} of acyclic data", "'sequence'")
    drawn: list[tuple[Tensor, Tensor, Tensor]] = []
    for trial in range(count):
        generator = torch.Generator().manual_seed(seed_of(name, trial, base=seed))
        E = normal((K, d), generator)
        ids = torch.randint(0, K, (n, T), generator=generator)
        place = torch.randint(0, T, (n, 1), generator=generator)
        label = ids.amin(-1) if acyclic else ids.gather(-1, place)[:, 0]
        if labels == "vocabulary":
            label = torch.randint(0, K, (n,), generator=generator)
        drawn.append((E, ids, label))
    if trials is None:
        return drawn[0]
    parts = [torch.stack(part) for part in zip(*drawn, strict=True)]
    return parts[0], parts[1], parts[2]
