"""Hunt for wrong answers: ``python -m tests.hunt.run --minutes 5``.

Every area asks the library questions whose answers an independent oracle knows. The same seed
always gives the same cases. Each disagreement is saved as an .npz file with its instance, and as a
line of ``disagreements.jsonl``. The parts of a hunt are points of a sweep: a hunt that was stopped
goes on, and machines can share it.
"""

import argparse
import math
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attnmargin.sweeps import Engine, Sweep
from attnmargin.sweeps.entry import sweep
from attnmargin.sweeps.shards import as_shard
from tests.hunt import AREAS
from tests.hunt.part import Part
from tests.hunt.tally import record, table, tallies_of


def _points(given: argparse.Namespace, areas: list[str]) -> list[dict[str, Any]]:
    """List the points of a hunt: so many parts of every area.

    The k-th part has seed + k, so that one part is the same as the hunt of a single process.
    """
    parts = given.parts or given.jobs
    share = -(-given.cases // parts)
    seconds = 60.0 * given.minutes / len(areas)
    limit = None if math.isinf(seconds) else seconds
    return [
        {"area": area, "part": k, "cases": share, "seconds": limit}
        for area in areas
        for k in range(parts)
    ]


def _hunt(given: argparse.Namespace, areas: list[str], folder: Path) -> Sweep:
    """Compute the parts that are not in the folder yet."""
    engine = Engine(given.engine, given.jobs, address=given.address)

    def tell(words: str, done: int, total: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{done} of {total} parts", end="\n" if done == total else "", file=sys.stderr)

    return sweep(Part(given.out), _points(given, areas), seed=given.seed, out=folder,
                 engine=engine, shard=as_shard(given.shard), progress=tell)  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--area", action="append", choices=list(AREAS), help="all by default")
    parser.add_argument("--cases", type=int, default=100_000, help="most cases per area")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="for all areas")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--parts", type=int, help="of an area, with seeds that follow; as --jobs")
    parser.add_argument("--engine", choices=("local", "ray", "dask"), default="local")
    parser.add_argument("--address", help="of a running Ray or Dask cluster")
    parser.add_argument("--shard", help="2/8: the second of eight parts of the hunt")
    parser.add_argument("--out", type=Path, help="folder for the disagreements and finished parts")
    parser.add_argument("--json", type=Path, help="file of the table, by area")
    return parser


def main() -> int:
    """Run the areas; the exit code is 1 if an answer is wrong or a part failed."""
    given = _parser().parse_args()
    areas = given.area or list(AREAS)
    with TemporaryDirectory() as temporary:
        home = Path(temporary) if given.out is None else given.out
        found = _hunt(given, areas, home / f"parts-{given.seed}")
        tallies = tallies_of(found, areas)
        failed = found.failed
    print(table(tallies))
    for settings, why in failed:
        print(f"failed: {settings}: {why}")
    if given.json is not None:
        record(given.json, tallies, given.seed, list(AREAS))
    return int(bool(failed) or any(tally.wrong for tally in tallies))


if __name__ == "__main__":
    raise SystemExit(main())
