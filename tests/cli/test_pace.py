"""Rate and time left of long work, by a clock that the test turns."""

import io

import pytest
from rich.console import Console

from attnmargin.cli import console
from attnmargin.cli.pace import Pace


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def paced(clock: Clock, unit: str, parts: int = 1, *reports: tuple[float, int, int]) -> Pace:
    pace = Pace(unit, parts, clock)
    for clock.now, done, total in reports:
        pace.report(done, total)
    return pace


def test_a_steady_pace_says_when_it_ends(clock: Clock) -> None:
    pace = paced(clock, "steps", 1, *((float(t), 100 * t, 1000) for t in range(5)))
    assert (pace.rate, pace.left, pace.elapsed, pace.share) == (100.0, 6.0, 4.0, 0.4)
    assert pace.long() == "400 of 1,000 steps, 100 steps/s, 0:00:04, 0:00:06 left"
    assert pace.short() == " 40%  100 steps/s  0:00:04  0:00:06 left"


def test_the_time_left_runs_down_between_reports(clock: Clock) -> None:
    pace = paced(clock, "points", 1, (0.0, 0, 3), (3600.0, 1, 3))
    clock.now += 1800.0
    assert pace.left == 5400.0
    assert pace.long() == "1 of 3 points, 1 points/h, 1:30:00, 1:30:00 left"


def test_what_was_saved_earlier_does_not_count(clock: Clock) -> None:
    pace = paced(clock, "points", 1, (1.0, 90_000, 100_000), (11.0, 90_100, 100_000))
    assert pace.rate == 10.0
    assert pace.left == 990.0


def test_a_slow_start_is_forgotten(clock: Clock) -> None:
    later = [(60.0 + t, 10 * t, 10_000) for t in range(1, 200)]
    assert paced(clock, "steps", 1, (0.0, 0, 10_000), *later).rate == pytest.approx(10.0)


def test_new_work_begins_anew(clock: Clock) -> None:
    pace = paced(clock, "points", 1000, (0.0, 0, 4000), (8.0, 4000, 4000), (9.0, 0, 2000))
    assert (pace.rate, pace.left, pace.elapsed) == (None, None, 0.0)
    clock.now = 13.0
    pace.report(500, 2000)
    assert pace.long() == "0.5 of 2 points, 7.5 points/min, 0:00:04, 0:00:12 left"


def test_the_end_has_nothing_left(clock: Clock) -> None:
    assert paced(clock, "steps", 1, (0.0, 0, 10), (2.0, 10, 10)).long() == (
        "10 of 10 steps, 5 steps/s, 0:00:02"
    )


def test_nothing_to_do_is_no_error(clock: Clock) -> None:
    assert paced(clock, "steps", 1, (0.0, 0, 0)).short() == "  0%  0:00:00"


@pytest.mark.parametrize(("terminal", "shown"), [(True, True), (False, False)])
def test_a_bar_shows_rate_and_time_left_on_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, shown: bool
) -> None:
    stream = io.StringIO()
    fake = Console(file=stream, force_terminal=terminal, width=80, color_system=None)
    monkeypatch.setattr(console, "Console", lambda stderr: fake)
    with console.progress_bar("studying heads", "heads") as tell:
        for k in range(4):
            tell(k, 8)
    text = stream.getvalue()
    assert ("heads/s" in text and " left" in text) == shown
    assert bool(text) == shown
