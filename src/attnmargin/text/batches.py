"""Texts on a device, in batches of similar length."""

from typing import NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.text.pieces import Pieces


class Packed(NamedTuple):
    """Texts one after the other, without padding between them, and some filler at the end."""

    ids: Tensor  # int (N,)
    positions: Tensor  # int (N,): within the texts
    starts: Tensor  # int32 (S + 1,): where texts and pieces of filler begin, and the end
    texts: int  # their number
    longest: int  # length that no text exceeds


@final
class Batches:
    """Texts on a device, served in batches of similar length."""

    def __init__(
        self, pieces: Pieces, padding: int, device: torch.device, multiple: int, most: int
    ) -> None:
        self.lengths, self.padding = pieces.lengths, padding
        self.multiple, self.most = multiple, most  # padded lengths: multiples of the first, capped
        self.longest = int(self.lengths.max())
        self.ids = torch.from_numpy(pieces.ids.astype(np.int32)).to(device)
        self.start = torch.from_numpy(pieces.start[:-1]).to(device)
        self.size = torch.from_numpy(self.lengths).to(device)
        self.labels = torch.from_numpy(pieces.labels).to(device)

    def shuffled(self, batch: int, seed: int) -> list[NDArray[np.int64]]:
        """Draw random batches of text indices, each sorted by length."""
        order = np.random.default_rng(seed).permutation(len(self.lengths))
        found = [order[i : i + batch] for i in range(0, len(order), batch)]
        return [places[np.argsort(self.lengths[places], kind="stable")] for places in found]

    def ordered(self, batch: int) -> list[NDArray[np.int64]]:
        """Batch all texts in order of length."""
        order = np.argsort(self.lengths, kind="stable")
        return [order[i : i + batch] for i in range(0, len(order), batch)]

    def take(self, places: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Return padded ids ``(B, T)`` and labels ``(B,)``."""
        index = torch.from_numpy(places).to(self.ids.device)
        flat, inside = self.spread(places)
        return self.ids[flat].where(inside, self.padding).long(), self.labels[index]

    def pack(self, places: NDArray[np.int64], multiple: int) -> tuple[Packed, Tensor]:
        """Return texts without padding, filled up to a multiple of some tokens, and labels.

        Few different sizes occur, so that few are compiled.
        """
        device, count = self.ids.device, len(places)
        total = int(self.lengths[places].sum())
        room = -(-total // multiple) * multiple
        # Filler is cut into pieces that are no longer than a text; some may be empty.
        pieces = np.arange(1, -(-multiple // self.most) + 1) * self.most
        ends = np.concatenate((np.cumsum(self.lengths[places]), np.minimum(total + pieces, room)))
        starts = torch.from_numpy(np.concatenate(([0], ends)).astype(np.int32)).to(device)
        index = torch.from_numpy(places).to(device)
        shift = self.start[index] - starts[:count]
        offset = torch.arange(room, device=device)
        owner = torch.bucketize(offset, starts[1:], right=True)
        inside = offset < total
        flat = offset + shift[owner.clamp_max(count - 1)]
        ids = self.ids[flat.where(inside, 0)].where(inside, self.padding).long()
        positions = offset - starts[owner]
        return Packed(ids, positions, starts, count, self.most), self.labels[index]

    def spread(self, places: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Return the indices of the padded tokens, and a mask of real tokens, ``(B, T)`` each."""
        longest = int(self.lengths[places].max())
        T = min(-(-longest // self.multiple) * self.multiple, max(self.most, longest))
        index = torch.from_numpy(places).to(self.ids.device)
        offset = torch.arange(T, device=self.ids.device)
        inside = offset < self.size[index, None]
        flat = (self.start[index, None] + offset).clamp_max(len(self.ids) - 1)
        return flat, inside
