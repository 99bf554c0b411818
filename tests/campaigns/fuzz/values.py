"""Mutations of values that JSON and TOML can hold, and of raw bytes."""

import copy
import json
from random import Random
from typing import Any

WORDS = (
    "", "a", "0", "nan", "inf", "1e999", "true", "null", "../../x", "/dev/zero", "a/b", "\x00",
    "\x1b[31m", "\ud800", "\u2028", "é", "e\u0301", "😀", "</script>", "<!--", "=1+1", "{x}", "{",
    "%s", " ", "\n", "\r", '"', "'", "\\", "x" * 3000, "__metadata__", "__class__", "W", "fro",
)  # fmt: skip
NUMBERS = (
    0, 1, -1, 2, 3, 7, 255, 2**31 - 1, 2**31, -(2**31), 2**32, 2**53 + 1, 2**60, 2**63 - 1, 2**63,
    -(2**63), 2**64, 10**19, 10**30, 10**400, 0.5, -0.0, 1e-320, 5e-324, 1e16, 1e100, 1e101, 1e308,
    -1e308, float("nan"), float("inf"), float("-inf"), 1e-9, 1.0, 2.0, 1.75,
)  # fmt: skip


def special(rng: Random) -> Any:
    """Draw a value that readers may not expect."""
    kind = rng.randrange(10)
    if kind < 3:
        return rng.choice(WORDS)
    if kind < 7:
        return rng.choice(NUMBERS)
    if kind == 7:
        return rng.choice((None, True, False, [], {}, [[]], {"": 0}, [1, "a"], [[1], [2, 3]]))
    if kind == 8:
        return [rng.choice(NUMBERS + WORDS) for _ in range(rng.randrange(5))]
    return nested(rng.choice((2, 50, 500)))


def nested(depth: int) -> Any:
    """Return lists within lists."""
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def changed(value: Any, rng: Random, times: int = 1) -> Any:
    """Return a copy with some places changed."""
    value = copy.deepcopy(value)
    for _ in range(times):
        value = _change(value, rng)
    return value


def _change(value: Any, rng: Random) -> Any:
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        kind = rng.randrange(12)
        if kind == 0:
            del value[key]
        elif kind == 1:
            value[rng.choice(WORDS)] = special(rng)
        elif kind == 2:
            value[key], other = value[rng.choice(list(value))], value[key]
            value[rng.choice(list(value))] = other
        elif kind == 3:
            value[rng.choice(WORDS)] = value.pop(key)
        else:
            value[key] = _change(value[key], rng)
        return value
    if isinstance(value, list) and value and rng.random() < 0.85:
        place = rng.randrange(len(value))
        kind = rng.randrange(10)
        if kind == 0:
            del value[place]
        elif kind == 1:
            value.insert(place, special(rng))
        elif kind == 2:
            value.extend(value[: rng.randrange(1, 4)])
        elif kind == 3:
            rng.shuffle(value)
        else:
            value[place] = _change(value[place], rng)
        return value
    if isinstance(value, int) and not isinstance(value, bool) and rng.random() < 0.4:
        return value + rng.choice((-2, -1, 1, 2, 8, -8))
    if isinstance(value, str) and value and rng.random() < 0.3:
        return rng.choice((value + rng.choice(WORDS), value[::-1], value * 3, value.upper()))
    return special(rng)


def json_text(value: Any, rng: Random) -> str:
    """Write JSON, at times with escapes, odd blanks or digits that JSON does not have."""
    try:
        text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    except (ValueError, RecursionError):
        text = "[" * 3000
    if rng.random() < 0.05:
        text = text.replace(":", " :\t").replace("1", rng.choice(("01", "1.", "1e5", "１", "0x1")))
    return text


def changed_bytes(data: bytes, rng: Random) -> bytes:
    """Flip, cut, repeat or insert bytes."""
    own = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        place = rng.randrange(len(own) + 1)
        kind = rng.randrange(7)
        if kind == 0 and place < len(own):
            own[place] ^= 1 << rng.randrange(8)
        elif kind == 1 and place < len(own):
            own[place] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif kind == 2:
            del own[place : place + rng.choice((1, 2, 4, 8, 64))]
        elif kind == 3:
            own[place:place] = rng.randbytes(rng.choice((1, 2, 4, 8)))
        elif kind == 4:
            number = rng.choice((0, 1, 2**31, 2**60, 2**64 - 1))
            own[place : place + 8] = number.to_bytes(8, "little")
        elif kind == 5:
            own[place:place] = own[place : place + rng.choice((4, 16, 256))]
        elif rng.random() < 0.2:
            del own[place:]
    return bytes(own)
