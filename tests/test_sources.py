"""Rules of the source that the promises of docs/security.md rest on."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "attnmargin"
FILES = sorted(SOURCE.rglob("*.py"))
# What is run beside the package: examples, the documents' programs, campaigns, checks of releases.
BESIDE = ("benchmarks", "docs", "examples", "tests/campaigns", "tests/hunt", "tests/release")
# Modules that turn bytes into objects by running what the bytes say, that run text, or that expand
# what a text refers to.
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "jsonpickle", "code",
           "runpy", "yaml", "xml", "lxml", "xmlrpc"}  # fmt: skip
CALLS = {
    "eval", "exec", "compile", "__import__", "os.system", "os.popen", "torch.load", "joblib.load",
    "joblib.dump", "joblib.Memory", "torch.save", "yaml.load", "yaml.unsafe_load", "pd.read_pickle",
    "torch.hub.load", "np.fromfile", "numpy.fromfile", "torch.jit.load", "networkx.read_graphml",
    "networkx.read_gml", "networkx.read_gexf", "tempfile.mktemp",
}  # fmt: skip
# The fuzzer that makes pickles for readers to refuse, and the oracle that reads our own GraphML.
MADE = {"tests/campaigns/fuzz/arrays.py", "tests/campaigns/kills/oracle.py"}
# The one home of programs that a specification names, and where the command line warms kernels up.
PROGRAMS = {"sweeps/command.py", "base/compiled.py"}


def name_of(node: ast.AST) -> str:
    """The dotted name of what is called."""
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def offences(path: Path) -> Iterator[str]:
    where = path.relative_to(SOURCE).as_posix()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        line = f"{where}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import | ast.ImportFrom):
            own = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
            yield from (f"{line} imports {m}" for m in own if m and m.split(".")[0] in MODULES)
        if not isinstance(node, ast.Call):
            continue
        name = name_of(node.func)
        if name in CALLS:
            yield f"{line} calls {name}"
        given = {k.arg: ast.unparse(k.value) for k in node.keywords}
        if name in ("np.load", "numpy.load", "np.lib.format.read_array"):
            if given.get("allow_pickle") != "False":
                yield f"{line} may read pickles"
        elif "allow_pickle" in given:
            yield f"{line} names allow_pickle"
        if given.get("shell", "False") != "False" or given.get("trust_remote_code") == "True":
            yield f"{line} runs {ast.unparse(node):.80}"
        program = name.startswith("subprocess.") or name.endswith("Popen")
        if program and where not in PROGRAMS:
            yield f"{line} starts a program"


def test_no_pickles_and_no_code_from_data() -> None:
    assert len(FILES) > 300
    assert not [line for path in FILES for line in offences(path)]


def test_nothing_beside_the_package_reads_pickles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.test_sources.SOURCE", ROOT)
    files = [path for name in BESIDE for path in sorted((ROOT / name).rglob("*.py"))]
    assert len(files) > 50
    found = [line for path in files for line in offences(path) if "starts a program" not in line]
    assert [line for line in found if line.partition(":")[0] not in MADE] == []


def test_the_rules_see_what_they_forbid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.py"
    monkeypatch.setattr("tests.test_sources.SOURCE", tmp_path)
    for line in (
        "import pickle", "from pickle import loads", "import joblib\njoblib.load('x')",
        "torch.load('x', weights_only=False)", "np.load('x')", "np.load('x', allow_pickle=True)",
        "np.lib.format.read_array(x)", "eval('1')", "exec(x)", "yaml.load(x)",
        "subprocess.run('x', shell=True)", "subprocess.run(['x'])",
        "import yaml", "from xml.etree import ElementTree", "networkx.read_graphml(x)",
        "AutoModel.from_pretrained(x, trust_remote_code=True)", "np.save(x, y, allow_pickle=False)",
    ):  # fmt: skip
        path.write_text(line)
        assert list(offences(path)), line
    path.write_text("np.load('x', allow_pickle=False)\nmodel.eval()\nre.compile('x')")
    assert not list(offences(path))
