"""The uses that a release tries are those that there are."""

from attnmargin.base.extras import EXTRAS
from attnmargin.cli.main import cli
from tests.release.snippets import SNIPPETS
from tests.release.uses import USES, Use, judged

_LINE = 'attnmargin: x needs a package that is missing: pip install "attnmargin[text]"\n'
_USE = Use("tokens", ("text", "plot"))


def test_every_command_is_tried() -> None:
    assert {use.words.split()[0] for use in USES} >= set(cli.commands)


def test_every_extra_of_a_command_is_tried() -> None:
    assert {name for use in USES for name in use.needs} == set(EXTRAS) - set(SNIPPETS)


def test_a_sentence_must_name_an_extra_that_the_use_needs() -> None:
    assert judged(_USE, 2, _LINE, {"plot"}) == "asks for text"
    assert judged(_USE, 2, _LINE.replace("text", "graph"), set()).startswith("WRONG")
    assert judged(_USE, 2, _LINE * 2, set()).startswith("WRONG")
    assert judged(_USE, 1, _LINE, set()).startswith("WRONG")


def test_what_has_all_it_needs_must_work() -> None:
    compiling = "attnmargin: compiling the toy, once for this machine\n"
    assert judged(_USE, 0, compiling, {"text", "plot"}) == "works"
    assert judged(_USE, 2, _LINE, {"text", "plot"}).startswith("WRONG: exit 2")
