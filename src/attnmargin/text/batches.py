"""Texts on a device, in batches of similar length."""

from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.text.pieces import Pieces


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

    def spread(self, places: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Return the indices of the padded tokens, and a mask of real tokens, ``(B, T)`` each."""
        longest = int(self.lengths[places].max())
        T = min(-(-longest // self.multiple) * self.multiple, max(self.most, longest))
        index = torch.from_numpy(places).to(self.ids.device)
        offset = torch.arange(T, device=self.ids.device)
        inside = offset < self.size[index, None]
        flat = (self.start[index, None] + offset).clamp_max(len(self.ids) - 1)
        return flat, inside
