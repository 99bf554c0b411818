"""A trained text classifier as a record and a sentence."""

from typing import Any

from attnmargin.text.classifier.corpus_training import CorpusRun


def classifier_record(found: CorpusRun) -> dict[str, Any]:
    """Describe a run and its corpus, ready for JSON."""
    return found.run.record() | {
        "weights": sum(w.numel() for w in found.run.model.parameters()),
        "classes": list(found.classes),
        "train": len(found.train),
        "test": len(found.test),
        "overlap": found.overlap,
    }


def classifier_sentence(record: dict[str, Any]) -> str:
    """Say how well the classifier does, and on what."""
    return (
        f"Test accuracy {record['last']:.2%} after the last epoch, {record['best']:.2%} in the "
        f"best one; ℓ{record['recipe']['p']:g}, {record['weights']:,} weights, "
        f"{record['train']:,} texts to train and {record['test']:,} to test, of which "
        f"{record['overlap']:,} occur in both."
    )
