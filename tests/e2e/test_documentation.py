"""Every example of every page runs: python and sh blocks in order, in one folder that holds the bundled people.

A python block runs in the page's one namespace. In a sh block a line that begins with `discreet ` runs in this process
and must succeed, or fail if it ends with `# refused`; `python -c` runs too; `make TARGET`, `pip install` and the two
commands that take long and have tests of their own are only looked up. A ```text block right after a block shows what
that printed: everything but the numbers must agree, and with ```text exact the numbers too. A comment after a print
that begins with a number and a colon, `# 0: known already`, or that leaves out what varies, `# ... | 0.025`, says how
the line ends that is printed there. Links, anchors and references to tests and names lead somewhere, the page of the
commands is what the commands say, and sphinx builds all of it without a warning.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

import discreet as dp
from discreet import cli, errors, example, remote, session
from tests.serving import House, Process

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(each for each in DOCS.rglob("*.md") if "_build" not in each.parts)]
LONG = {"audit", "tour"}
SERVICES: list[Process] = []
"""The services that a page has started."""
PRINTS = {
    "docs/learning.md": ["excess risk <="],
    "docs/models.md": ["The margin of limited = yes", "Alone it promises epsilon"],
    "docs/questions.md": ["persons", "pmw"],
    "docs/rules.md": ["v4 and not v18", "with probability 0.99"],
}
FENCE = re.compile(r"^```(\w+)?([^\n]*)\n(.*?)^```\s*$", re.DOTALL | re.MULTILINE)


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, what it says, its line, and what it is shown to print."""

    language: str
    text: str
    line: int
    shown: str | None
    exact: bool


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found = list(FENCE.finditer(text))
    after = {one.end(): other for one, other in pairwise(found)}
    made = []
    for each in found:
        follower = after.get(each.end())
        direct = follower is not None and follower[1] == "text" and not text[each.end() : follower.start()].strip()
        shown = follower[3] if direct else None
        exact = direct and follower[2].strip() == "exact"
        made.append(Block(each[1] or "", each[3], text[: each.start()].count("\n") + 1, shown, exact))
    return [each for each in made if each.language in ("python", "sh")]


RUN = [page for page in PAGES if blocks(page)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder with the bundled people, a state directory of its own, and a terminal of a fixed width."""
    where = tmp_path / "page"
    monkeypatch.setenv("DISCREET_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "100")
    example.write(where)
    monkeypatch.chdir(where)
    yield where
    while SERVICES:
        SERVICES.pop().stop()


@pytest.mark.parametrize("page", RUN, ids=named)
def test_every_example_of_a_page_runs_and_prints_what_the_page_shows(page, folder, monkeypatch, capsys, request):
    if "postgresql:///discreet" in page.read_text():
        cluster = request.getfixturevalue("cluster")
        cluster.empty_database("discreet")
        monkeypatch.setenv("PGHOST", str(cluster.home))
        monkeypatch.setenv("PGUSER", "owner")
    printed = run_page(page, monkeypatch, capsys)
    for text in PRINTS.get(named(page), []):
        assert text in printed


LIES = {
    "other words": "```python\nprint('one word')\n```\n\n```text\nother word\n```\n",
    "another number": "```python\nprint('exactly 3')\n```\n\n```text exact\nexactly 4\n```\n",
    "a number in a comment": "```python\nprint(3)  # 4: so many\n```\n",
    "the end of a comment": "```python\nprint('x', '|', 0.25)  # ... | 0.024\n```\n",
    "a command that fails": "```sh\ndiscreet schema missing.toml\n```\n",
    "a refusal that is none": "```sh\ndiscreet schema people.toml  # refused\n```\n",
    "a target that is not there": "```sh\nmake gold\n```\n",
    "a line that nobody checks": "```sh\ncurl example.org\n```\n",
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_page_that_lies_is_noticed(lie, folder, monkeypatch, capsys):
    page = folder / "page.md"
    page.write_text("```python\nprint('2 words')\n```\n\n```text\n3 words\n```\n\nand\n\n" + lie)
    with pytest.raises(AssertionError):
        run_page(page, monkeypatch, capsys)


def run_page(page: Path, monkeypatch, capsys) -> str:
    """Run every block, compare what is shown with what is printed, and return all of that."""
    said: dict[int, str] = {}

    def noted(*values: object, **options: object) -> None:
        """print, and which line said what."""
        said[sys._getframe(1).f_lineno] = " ".join(map(str, values))
        print(*values, **options)

    names: dict[str, object] = {"__name__": "__main__", "print": noted}
    everything = ""
    for block in blocks(page):
        where = f"{page.name}, block at line {block.line}"
        if block.language == "python":
            code = "\n" * block.line + block.text
            exec(compile(code, page.name, "exec", dont_inherit=True), names)
            for number, ending in commented(block):
                assert said[number].split()[-len(ending) :] == ending, f"{where}: line {number} said {said[number]}"
        else:
            for line in joined_lines(block.text):
                run_line(line, where, monkeypatch)
        printed = capsys.readouterr().out
        everything += printed
        if block.shown is not None:
            compare = str.split if block.exact else shape
            assert compare(printed) == compare(block.shown), f"{where} printed:\n{printed}"
    return everything


def commented(block: Block) -> Iterator[tuple[int, list[str]]]:
    """The lines that say in a comment how the line ends that they print, and the words of that."""
    for number, line in enumerate(block.text.splitlines(), block.line + 1):
        found = re.match(r"print\(.*\)  # (?:(-?[\d.,]+):|\.\.\. (.+))", line)
        if found:
            yield number, (found[1] or found[2]).split()


def run_line(line: str, where: str, monkeypatch) -> None:
    """One line of a sh block."""
    words = shlex.split(line, comments=True)
    if not words:
        return
    if words[0] == "discreet" and LONG & set(words[1:2]):
        assert words[1] in cli.commands.commands
    elif words[:2] == ["discreet", "serve"]:
        serve(words[2:], monkeypatch)
    elif words[0] == "discreet":
        assert not {"|", ">", "&&", ";"} & set(words), f"{where}: only plain commands are run: {line}"
        refused = line.rstrip().endswith("# refused")
        code = exit_code_of(words, monkeypatch)
        assert (code != 0) == refused, f"{where}: exit code {code}: {line}"
    elif words[:2] == ["python", "-c"]:
        exec(compile(words[2], where, "exec", dont_inherit=True), {"__name__": "__main__"})
    elif words[0] == "make":
        assert words[1] in make_targets(), f"{where}: {line}"
    elif words[0] == "pip":
        extras = re.findall(r"\[([\w,]+)\]", line)
        assert set(",".join(extras).split(",")) <= {"", *declared_extras()}, f"{where}: {line}"
    else:
        assert words[0] in ("git", "cd"), f"{where}: nobody checks this line: {line}"


def serve(words: list[str], monkeypatch) -> None:
    """A service at a port that is free, which `dp.connect` finds; with a key of ana, who was added before."""
    made = House(Path.cwd(), [Path.cwd() / each for each in words])
    made.state = Path(os.environ["DISCREET_STATE"])
    monkeypatch.setenv("DISCREET_KEY", made.add("ana"))
    SERVICES.append(Process(made, "--time-grid", "0"))
    monkeypatch.setattr(remote, "_checked_url", lambda url: SERVICES[-1].url)


def exit_code_of(words: list[str], monkeypatch) -> int:
    monkeypatch.setattr(sys, "argv", words)
    try:
        cli.main()
    except SystemExit as stopped:
        return int(stopped.code or 0)
    finally:
        gc.collect()  # the end of a process closes its ledger; here frames may still hold it
    return 0


def joined_lines(text: str) -> list[str]:
    """Lines, where a backslash at the end of one continues it on the next."""
    return [line.strip() for line in text.replace("\\\n", " ").splitlines()]


def shape(text: str) -> list[str]:
    """The words of a text, with every number replaced by one sign and rules of any length by another."""
    numbers = re.sub(r"[+-]?\d[\d,]*(\.\d+)?(e[+-]?\d+)?", "#", text)
    return re.sub(r"[─━-]{2,}", "--", numbers).split()


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def declared_extras() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return set(project["optional-dependencies"])


# Links, anchors and names.


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return FENCE.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    """What `#...` may say about a page: its headings as the usual slugs."""
    headings = re.findall(r"^#{1,6} +(.+?) *$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_and_anchors_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)", prose(page)):
        aimed = (page.parent / target) if target else page
        assert aimed.exists(), target
        if anchor:
            assert anchor in anchors(aimed), f"{target}#{anchor}"


def test_the_links_of_a_page_to_itself_and_to_others_are_seen():
    found = {each for page in PAGES for each in re.findall(r"\]\(([^)\s]+\.md)(?:#[^)\s]+)?\)", prose(page))}
    assert len(found) > 20


def test_every_page_is_in_a_table_of_contents():
    listed = set(toctree(DOCS / "index.md"))
    assert listed == {each.resolve() for each in PAGES if each.is_relative_to(DOCS)}


def toctree(page: Path) -> Iterator[Path]:
    """This page and every page below it."""
    yield page.resolve()
    for block in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            entry = re.sub(r".*<(.+)>", r"\1", line.strip())
            if entry and not entry.startswith(":"):
                yield from toctree(page.parent / f"{entry}.md")


def test_every_proof_page_that_the_code_names_exists():
    for source in (ROOT / "src").rglob("*.py"):
        for name in re.findall(r"docs/[a-z_0-9/]+\.md", source.read_text()):
            assert (ROOT / name).exists(), (source.name, name)


def test_every_error_has_its_place_on_the_page_about_refusals():
    kinds = {
        name.lower() for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)
    }
    assert len(kinds) >= 12
    assert kinds <= anchors(DOCS / "refused.md")


def test_the_course_map_names_tests_and_code_that_exist():
    text = (DOCS / "course.md").read_text()
    tests = re.findall(r"`((?:tests/)?\w+/test_\w+\.py)::(\w+)`", text)
    assert len(tests) > 40
    for file, name in tests:
        source = ROOT / "tests" / file.removeprefix("tests/")
        assert re.search(rf"^(?:    )?def {name}\(", source.read_text(), re.MULTILINE), f"{file}::{name}"
    dotted = re.findall(r"`(discreet(?:\.\w+)+)`", text)
    assert len(dotted) > 40
    for name in dotted:
        assert imported(name) is not None, name


def imported(name: str) -> object:
    """What a dotted name stands for: a module, or something in one."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        module = ".".join(parts[:cut])
        if module_exists(module):
            found: object = importlib.import_module(module)
            for part in parts[cut:]:
                found = getattr(found, part)
            return found
    raise ImportError(name)


def module_exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


# What is generated and built.


def test_the_pages_of_the_commands_and_of_the_public_face_are_what_the_code_says():
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    assert generate.PAGE.read_text() == generate.page(), "run .venv/bin/python docs/generate.py"
    assert generate.API.read_text() == generate.api(), "run .venv/bin/python docs/generate.py"
    assert [name for names in generate.grouped().values() for name in names].count("Session") == 1
    assert {name for names in generate.grouped().values() for name in names} == set(dp.__all__)


def test_the_pages_are_built_without_a_warning_and_load_nothing_from_elsewhere(tmp_path):
    built = tmp_path / "html"
    words = ["-W", "--keep-going", "-q", "-d", str(tmp_path / "trees"), "-b", "html", str(DOCS), str(built)]
    done = subprocess.run([sys.executable, "-m", "sphinx", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = list(built.rglob("*.html"))
    assert len(pages) > len(PAGES) - 2
    for page in pages:
        loaded = re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"(https?:|//)", page.read_text())
        assert not loaded, page.name
    for sheet in built.rglob("*.css"):
        assert not re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:|//)", sheet.read_text()), sheet.name


def test_the_readme_says_in_words_what_its_session_is_asked_for():
    """The comment beside a session has the default price and beta in percent."""
    text = (ROOT / "README.md").read_text()
    (found,) = re.findall(r"dp.Session\(table, ledger\)  # a question costs (\d+) % .* (\d+) % sure", text)
    assert list(map(int, found)) == [100 * session.PRICE, 95]
