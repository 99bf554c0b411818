"""Mutations of JSON lines, tables of texts, parquet files and specifications in TOML."""

import io
import json
from random import Random
from typing import Any

from tests.campaigns.fuzz.values import WORDS, changed, changed_bytes, json_text, special

_ODD = (b"\xef\xbb\xbf", b"\r", b"\r\n", b"\n\n", b"\x00", b"\xff", b"\xed\xa0\x80", b"\x0b",
        b"\x1c", b"\xe2\x80\xa8", b"\xc2\x85", b'"', b"'", b",", b"\t", b"[" * 3000, b"{" * 3000,
        b"9" * 5000, b"#", b"=", b".", b'"""', b"[[", b"]", b"inf", b"nan", b"1979-05-27",
        b"a.b.c = 1\n", b"[grid]\n", b"\\u0000", b"\\ud800")  # fmt: skip


def change_jsonl(data: bytes, rng: Random) -> bytes:
    """Change objects, lines or bytes of a file of JSON lines."""
    kind = rng.randrange(10)
    if kind == 0:
        return changed_bytes(data, rng)
    if kind == 1:
        return inserted(data, rng)
    lines = data.split(b"\n")
    place = rng.randrange(len(lines))
    if kind == 2:
        rng.shuffle(lines)
    elif kind == 3:
        lines.insert(place, rng.choice((b"", b"  ", b"null", b"[]", b"{}", b'"a"', lines[place])))
    else:
        try:
            own = changed(json.loads(lines[place]), rng, rng.choice((1, 1, 2)))
            lines[place] = json_text(own, rng).encode("utf-8", "surrogatepass")
        except Exception:
            lines[place] = changed_bytes(lines[place], rng)
    return b"\n".join(lines)


def change_table(data: bytes, rng: Random) -> bytes:
    """Change cells, columns, quotes or bytes of a table."""
    kind = rng.randrange(8)
    if kind == 0:
        return changed_bytes(data, rng)
    if kind == 1:
        return inserted(data, rng)
    mark = b"\t" if data.count(b"\t") > data.count(b",") else b","
    rows = [line.split(mark) for line in data.split(b"\n")]
    row = rng.choice(rows)
    place = rng.randrange(len(row))
    if kind == 2:
        del row[place]
    elif kind == 3:
        row.insert(place, rng.choice(WORDS).encode("utf-8", "surrogatepass"))
    elif kind == 4:
        for own in rows:
            own.insert(min(place, len(own)), own[-1])
    elif kind == 5:
        row[place] = b'"' + row[place].replace(b'"', b'""') + b"\n" + b'"'
    else:
        row[place] = str(special(rng)).encode("utf-8", "surrogatepass")
    return b"\n".join(mark.join(row) for row in rows)


def inserted(data: bytes, rng: Random) -> bytes:
    """Insert something that a grammar gives a meaning to."""
    place = rng.randrange(len(data) + 1)
    return data[:place] + rng.choice(_ODD) + data[place:]


def change_toml(data: bytes, rng: Random) -> bytes:
    """Change values, keys or bytes of a specification."""
    kind = rng.randrange(8)
    if kind == 0:
        return changed_bytes(data, rng)
    if kind == 1:
        return inserted(data, rng)
    lines = data.decode("utf-8", "replace").split("\n")
    place = rng.randrange(len(lines))
    name, equals, _ = lines[place].partition("=")
    if kind == 2:
        del lines[place]
    elif kind == 3:
        lines.insert(rng.randrange(len(lines) + 1), lines[place])
    elif kind == 4 and equals:
        lines[place] = f"{rng.choice((*WORDS[:6], 'file', 'trials', 'n', 'command'))}={_}"
    elif equals:
        lines[place] = f"{name}= {_toml(special(rng), rng)}"
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _toml(value: Any, rng: Random) -> str:
    """Write a value as TOML, which has no null."""
    if isinstance(value, float):
        return repr(value)
    return json_text(value, rng).replace("null", "0").replace(":", "=")


def parquet(columns: dict[str, Any], **options: Any) -> bytes:
    """Write a parquet file."""
    import pyarrow
    import pyarrow.parquet

    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), stream, **options)
    return stream.getvalue()


def change_parquet(data: bytes, rng: Random) -> bytes:
    """Change bytes of pages or of the footer, or write other columns."""
    kind = rng.randrange(6)
    if kind == 0:
        return changed_bytes(data, rng)
    size = int.from_bytes(data[-8:-4], "little")
    if kind <= 3 and 0 < size < len(data) - 8:
        start = len(data) - 8 - size
        return data[:start] + changed_bytes(data[start:-8], rng) + data[-8:]
    try:
        return _other_columns(rng)
    except Exception:
        return changed_bytes(data, rng)


def _other_columns(rng: Random) -> bytes:
    import pyarrow

    count = rng.choice((0, 1, 2, 5, 40))
    kinds = (pyarrow.string(), pyarrow.large_string(), pyarrow.binary(), pyarrow.int64(),
             pyarrow.float64(), pyarrow.bool_(), pyarrow.timestamp("ns"), pyarrow.date32(),
             pyarrow.decimal128(9, 2), pyarrow.list_(pyarrow.string()), pyarrow.null(),
             pyarrow.dictionary(pyarrow.int32(), pyarrow.string()), pyarrow.duration("s"),
             pyarrow.struct([("a", pyarrow.int32())]), pyarrow.float16())  # fmt: skip
    columns = {}
    for name in ("text", "label", *rng.sample(("split", "a", "", "text "), rng.randrange(3))):
        kind = rng.choice(kinds[:5]) if rng.random() < 0.7 else rng.choice(kinds)
        values = [_cell(kind, k, rng) for k in range(count)]
        columns[name] = pyarrow.array(values, kind)
    codec = rng.choice(("snappy", "gzip", "zstd", "lz4", "none", "brotli"))
    return parquet(columns, compression=codec, use_dictionary=rng.random() < 0.5)


def _cell(kind: Any, k: int, rng: Random) -> Any:
    if rng.random() < 0.05:
        return None
    name = str(kind)
    if "string" in name and "list" not in name:
        return rng.choice(("good", "bad", "", "x" * 500)) if rng.random() < 0.5 else str(k % 2)
    if name == "binary":
        return rng.choice((b"good", b"\xff\xfe", b""))
    if name.startswith("list"):
        return ["a"] * (k % 3)
    if name.startswith("struct"):
        return {"a": k}
    if name.startswith(("timestamp", "duration", "date32")):
        return rng.choice((0, k, 2**31 - 1, -(2**31)))
    return None if name == "null" else bool(k % 2) if name == "bool" else k % 2
