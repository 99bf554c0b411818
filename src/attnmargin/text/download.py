"""Download of the official movie reviews: fetched once, verified, unpacked."""

import hashlib
import os
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from attnmargin.base.errors import InputError
from attnmargin.base.files import make_folder

# Maas et al., Learning Word Vectors for Sentiment Analysis, ACL 2011.
REVIEWS_URL = "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz"
REVIEWS_MD5 = "7c2ac02c03563afcf9b574c7e56c153a"
_CHUNK = 1 << 20


def download_reviews(
    folder: str | Path,
    url: str = REVIEWS_URL,
    md5: str = REVIEWS_MD5,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Download the official archive; return its folder ``aclImdb`` within ``folder``.

    ``read_corpus`` reads that folder. If it exists, nothing is downloaded. The archive is verified
    first, then unpacked to a temporary place and moved, so the folder is never incomplete.

    Args:
        url, md5: another archive of the same layout, and its checksum.
        progress: called with bytes received and total bytes.

    Example:
        >>> import attnmargin as am, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> (folder / "aclImdb").mkdir()
        >>> am.text.download_reviews(folder).name  # it is there
        'aclImdb'
    """
    target = Path(folder) / "aclImdb"
    if target.is_dir():
        return target
    room = Path(tempfile.mkdtemp(dir=make_folder(folder, "folder"), prefix=".reviews."))
    try:
        archive = _fetch(url, room / "archive.tar.gz", md5, progress)
        _unpack(archive, room)
        os.replace(room / "aclImdb", target)
    finally:
        shutil.rmtree(room, ignore_errors=True)
    return target


def _fetch(url: str, path: Path, md5: str, progress: Callable[[int, int], None] | None) -> Path:
    digest, done = hashlib.md5(usedforsecurity=False), 0
    try:
        with urllib.request.urlopen(url, timeout=60) as source, path.open("wb") as stream:
            total = int(source.headers.get("Content-Length") or 0)
            while chunk := source.read(_CHUNK):
                stream.write(chunk)
                digest.update(chunk)
                done += len(chunk)
                if progress is not None:
                    progress(done, total)
    except (urllib.error.URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise InputError("url", f"{url} ({reason})", "an archive that can be reached") from None
    if digest.hexdigest() != md5:
        got = f"{url} with the checksum {digest.hexdigest()}"
        raise InputError("url", got, f"the archive with the checksum {md5}")
    return path


def _unpack(archive: Path, room: Path) -> None:
    try:
        with tarfile.open(archive) as stored:
            stored.extractall(room, filter="data")  # never writes outside the folder
    except (tarfile.TarError, OSError, EOFError) as error:
        raise InputError("url", f"an archive ({error!s:.80})", "a .tar.gz of reviews") from None
    if not (room / "aclImdb").is_dir():
        raise InputError("url", "an archive without aclImdb", "the layout of the official reviews")
