"""Simple reactions with atom maps written by hand, and the model of rxnmapper that maps them."""

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

# Atoms of the product, and where they come from, by number; atoms that symmetry or the mechanism
# leaves open have none. The first two are one reaction with its reactants in either order.
REACTIONS = (
    "[CH3:1][C:2](=[O:3])O.[CH3:4][CH2:5][CH:6]([CH3:7])[OH:8]"
    ">>[CH3:4][CH2:5][CH:6]([CH3:7])[O:8][C:2]([CH3:1])=[O:3]",
    "[CH3:4][CH2:5][CH:6]([CH3:7])[OH:8].[CH3:1][C:2](=[O:3])O"
    ">>[CH3:4][CH2:5][CH:6]([CH3:7])[O:8][C:2]([CH3:1])=[O:3]",
    "[O:1]=[C:2](Cl)[c:3]1ccccc1.[CH3:4][NH2:5]>>[CH3:4][NH:5][C:2](=[O:1])[c:3]1ccccc1",
    "Br[c:1]1cc[n:2]cc1.OB(O)[c:3]1ccccc1>>c1cc[c:3](-[c:1]2cc[n:2]cc2)cc1",
    "O=[N+:1]([O-])[c:2]1cc[c:3]([Cl:4])cc1>>[NH2:1][c:2]1cc[c:3]([Cl:4])cc1",
    "[CH3:1][C:2](=[O:3])[c:4]1ccccc1>>[CH3:1][CH:2]([OH:3])[c:4]1ccccc1",
    "CCO[C:1](=O)[c:2]1cc[c:3]([F:4])cc1>>O=[C:1](O)[c:2]1cc[c:3]([F:4])cc1",
    "F[c:1]1cc[c:2]([N+:3](=O)[O-])cc1.C1CC[NH:4]CC1>>O=[N+:3]([O-])[c:2]1cc[c:1]([N:4]2CCCCC2)cc1",
    "[NH2:1][CH2:2][c:3]1ccccc1.[CH3:4][S:5](=O)(=O)Cl"
    ">>[CH3:4][S:5](=O)(=O)[NH:1][CH2:2][c:3]1ccccc1",
    "[OH:1][c:2]1cc[c:3]([CH3:4])cc1.[CH3:5][CH2:6]I>>[CH3:5][CH2:6][O:1][c:2]1cc[c:3]([CH3:4])cc1",
    "O=[CH:1][c:2]1ccccc1.[NH2:3][CH:4]1CC1>>c1cc[c:2]([CH2:1][NH:3][CH:4]2CC2)cc1",
    "[OH:1][CH2:2][c:3]1cc[c:4]([Br:5])cc1>>[O:1]=[CH:2][c:3]1cc[c:4]([Br:5])cc1",
    "[O:1]=[C:2]=[N:3][c:4]1ccccc1.[CH3:5][CH2:6][NH2:7]"
    ">>[CH3:5][CH2:6][NH:7][C:2](=[O:1])[NH:3][c:4]1ccccc1",
    "CC(C)(C)OC(=O)[NH:1][CH2:2][c:3]1ccccc1>>[NH2:1][CH2:2][c:3]1ccccc1",
)
_PACKAGE = "rxnmapper"
_FOLDER = "models/transformers/albert_heads_8_uspto_all_1310k"
# Tokens of the model: atoms in brackets, atoms, bonds, rings, >>.
_TOKEN = re.compile(r"\[[^\]]+\]|Br|Cl|>>|[A-Za-z]|[0-9]|[^\s]")
_MAPPED = re.compile(r"\[(Cl|Br|[A-Za-z])(H?\d?)([+-]?):(\d+)\]")


class Reactions(NamedTuple):
    """The tokens of all reactions, as the model reads them, and the wanted pairs."""

    words: list[list[str]]
    pairs: list[tuple[int, int, int]]  # text, query in the product, token in the reactants


def mapped_reactions() -> Reactions:
    """Split the reactions into tokens without numbers, and pair atoms of equal number."""
    words: list[list[str]] = []
    pairs: list[tuple[int, int, int]] = []
    for i, reaction in enumerate(REACTIONS):
        own, numbers = ["[CLS]"], [0]
        for token in _TOKEN.findall(reaction):
            atom = _MAPPED.fullmatch(token)
            numbers.append(int(atom[4]) if atom else 0)
            own.append((f"[{atom[1]}{atom[3]}]" if atom[3] else atom[1]) if atom else token)
        words.append([*own, "[SEP]"])
        arrow = own.index(">>")
        pairs += [
            (i, t, numbers.index(numbers[t])) for t in range(arrow + 1, len(own)) if numbers[t]
        ]
    return Reactions(words, pairs)


@cache
def rxnmapper() -> tuple[Any, dict[str, int]]:
    """The ALBERT of rxnmapper and its vocabulary, from the files of the installed package."""
    found = find_spec(_PACKAGE)
    if found is None or not found.submodule_search_locations:
        pytest.fail("the package rxnmapper is not installed: make setup")
    from transformers import AlbertConfig, AlbertModel

    folder = Path(found.submodule_search_locations[0]) / _FOLDER
    weights = torch.load(folder / "pytorch_model.bin", map_location="cpu", weights_only=True)
    model = AlbertModel(AlbertConfig.from_pretrained(folder))
    own = {name.removeprefix("albert."): tensor for name, tensor in weights.items()}
    model.load_state_dict({name: own[name] for name in model.state_dict()})
    vocabulary = (folder / "vocab.txt").read_text("utf-8").splitlines()
    return model.eval(), {word: k for k, word in enumerate(vocabulary)}
