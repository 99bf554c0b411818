"""The official reviews, from a local file server."""

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import attnmargin as am


class Quiet(SimpleHTTPRequestHandler):
    """A file server that does not write to standard error."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder and its address."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as web:
        thread = threading.Thread(target=web.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{web.server_address[1]}"
        web.shutdown()
        thread.join()


def archive(path: Path, root: str = "aclImdb") -> str:
    """A small archive of the official layout; returns its checksum."""
    with tarfile.open(path, "w:gz") as stored:
        for split in ("train", "test"):
            for label, word in (("pos", "good"), ("neg", "bad")):
                data = f"a {word} film".encode()
                entry = tarfile.TarInfo(f"{root}/{split}/{label}/0_1.txt")
                entry.size = len(data)
                stored.addfile(entry, io.BytesIO(data))
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


def test_reviews_are_downloaded_checked_and_read(server: tuple[Path, str], tmp_path: Path) -> None:
    folder, address = server
    md5 = archive(folder / "reviews.tar.gz")
    seen: list[int] = []
    target = am.text.download_reviews(tmp_path / "data", f"{address}/reviews.tar.gz", md5,
                                 progress=lambda done, total: seen.append(done))  # fmt: skip
    assert am.text.read_corpus(target).split("train").labels.tolist() == [0, 1]
    assert seen[-1] == (folder / "reviews.tar.gz").stat().st_size
    (folder / "reviews.tar.gz").unlink()
    assert am.text.download_reviews(tmp_path / "data", f"{address}/reviews.tar.gz", md5) == target
    assert list((tmp_path / "data").iterdir()) == [target]


def test_what_is_wrong_leaves_nothing_behind(server: tuple[Path, str], tmp_path: Path) -> None:
    folder, address = server
    data = tmp_path / "data"
    archive(folder / "reviews.tar.gz")
    with pytest.raises(am.InputError, match="needs the archive with the checksum 00"):
        am.text.download_reviews(data, f"{address}/reviews.tar.gz", "00")
    with pytest.raises(am.InputError, match="needs an archive that can be reached"):
        am.text.download_reviews(data, f"{address}/none.tar.gz", "00")
    with pytest.raises(am.InputError, match="needs an archive that can be reached"):
        am.text.download_reviews(data, "nonsense", "00")
    md5 = archive(folder / "other.tar.gz", root="../outside")
    with pytest.raises(am.InputError, match="an archive"):
        am.text.download_reviews(data, f"{address}/other.tar.gz", md5)
    (folder / "broken.tar.gz").write_bytes(b"nothing")
    md5 = hashlib.md5(b"nothing", usedforsecurity=False).hexdigest()
    with pytest.raises(am.InputError, match=r"needs a \.tar\.gz of reviews"):
        am.text.download_reviews(data, f"{address}/broken.tar.gz", md5)
    assert list(data.iterdir()) == []
    assert not (tmp_path / "outside").exists()
