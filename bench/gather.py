"""bench/RESULTS.md and bench/ratios.svg, from the parts that the suites left.

python -m bench.gather      measures nothing: the same parts give the same files
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bench.comparisons import APART, EVEN, Ratio, ratios
from bench.part import PARTS, Part, read, replace
from bench.suites import SUITES

RESULTS = Path(__file__).parent / "RESULTS.md"
PICTURE = Path(__file__).parent / "ratios.svg"
MARKS = {"ours better": "", "about even": "about even", "peer better": "**peer better**"}


def main() -> None:
    replace(RESULTS, text())
    found = [ratio for ratio in ratios(part for part, _ in known()) if not ratio.floor]
    if found:
        from bench import picture

        replace(PICTURE, picture.drawn(found, alternative(found)))


def known(folder: Path = PARTS) -> list[tuple[Part, str]]:
    """Every suite's part and its text, in the order of the suites."""
    return [read(suite.name, folder) for suite in SUITES]


def text(folder: Path = PARTS) -> str:
    """All of bench/RESULTS.md."""
    found = known(folder)
    parts = [part for part, _ in found]
    compared = ratios(parts)
    rivals = [ratio for ratio in compared if not ratio.floor]
    floors = [ratio for ratio in compared if ratio.floor]
    lines = [*_head(parts), *_beside(rivals), *_floors(floors)]
    return "\n".join([*lines, *(line for part, each in found for line in _part(part, each)), ""])


def _head(parts: Sequence[Part]) -> list[str]:
    measured = [part for part in parts if part.measured]
    days = sorted({part.day for part in measured})
    when = " to ".join([days[0], *days[1:][-1:]]) if days else "never"
    cores = " or ".join(sorted({str(part.cores) for part in measured}))
    missing = sorted({each for part in parts for each in part.left_out})
    return [
        "# Benchmarks",
        "",
        f"Measured on {when}, on {cores} cores that may be shared;",
        f"{_versions(part.versions for part in measured)}.",
        f"Beside, each in an environment of its own: {_versions(part.peers for part in measured)}.",
        *(f"**{each}**" for each in missing),
        "",
        "Written by `make bench` from `bench/parts`. Times mean something only beside the time in the same line.",
        *_trouble(parts),
    ]


def _versions(found: Iterable[dict[str, str]]) -> str:
    every: dict[str, set[str]] = {}
    for versions in found:
        for name, version in versions.items():
            every.setdefault(name, set()).add(version)
    return ", ".join(f"{name} {' and '.join(sorted(each))}" for name, each in every.items())


def _trouble(parts: Sequence[Part]) -> Iterator[str]:
    """Which suites failed, each with what there is of it, and which were never measured."""
    for part in parts:
        if part.failed:
            kept = f"its figures below were measured on {part.day}" if part.measured else "there are no figures of it"
            command = f"`make bench SUITE={part.suite}`"
            yield from ("", f"**The suite {part.suite} did not end well ({part.failed}); {kept}: {command}.**")
    if never := [part.suite for part in parts if not part.measured and not part.failed]:
        yield from ("", f"**Never measured (`make bench SUITE=...`): {', '.join(never)}.**")


def _beside(found: Sequence[Ratio]) -> list[str]:
    if not found:
        return []
    return [
        "",
        "## Ours beside the best peer",
        "",
        f"![{alternative(found)}](ratios.svg)",
        "",
        "Ratios ours / best peer, below 1 ours is better: of seconds, of MB, of errors; of an accuracy, the ratio of",
        "the shares classified wrongly; of R², that of the variances left unexplained. About even: within a factor of",
        f"{EVEN:g} and, where deviations are shown, within {APART:g} of them.",
        summary(found),
        "",
        *_table(found, "best peer"),
        "",
        "Figures of peers in `pmw_tables` were measured earlier, of one seed each: the best of opendp's AIM and fixed",
        "marginals and of Gaussian noise on every marginal, clipped; two constants of ours were chosen with those",
        "tables in view (`bench/pmw_tables.py`). Everything else was measured side by side. Ours has a small",
        "delta where diffprivlib is pure in `memory`, `erm_speed` and `pac_accuracy`; elsewhere the guarantees are of",
        "one kind. AIM uses all cores, ours one thread: a shared machine slows AIM more.",
    ]


def _floors(found: Sequence[Ratio]) -> list[str]:
    if not found:
        return []
    lines = [
        "",
        "## Ours beside what is not private",
        "",
        "A floor and no rival: what exactness and durability cost.",
        "",
    ]
    return [*lines, *_table(found, "floor")]


def _table(found: Sequence[Ratio], other: str) -> list[str]:
    """With a last column for the losses, if these are rivals."""
    rivals = other == "best peer"
    lines = [
        f"| suite | what | measure | ours | {other} | ours / {other} |" + (" |" if rivals else ""),
        "|---|---|---|---|---|---|" + ("---|" if rivals else ""),
    ]
    for each in found:
        cells = [each.suite, each.what, each.measure, each.ours, f"{each.best} ({each.peer})", each.shown]
        lines.append(f"| {' | '.join([*cells, MARKS[each.verdict]] if rivals else cells)} |")
    return lines


def summary(found: Sequence[Ratio]) -> str:
    count = Counter(ratio.verdict for ratio in found)
    return (
        f"Of {len(found)} comparisons ours is better in {count['ours better']}, about even in {count['about even']}, "
        f"a peer is better in {count['peer better']}."
    )


def alternative(found: Sequence[Ratio]) -> str:
    """The picture in words."""
    lost = sorted((each for each in found if each.verdict == "peer better"), key=lambda each: -each.value)
    worst = "; ".join(f"{each.what}: {each.measure}, {each.shown} times {each.peer}'s" for each in lost[:4])
    said = f" Where a peer is furthest ahead: {worst}." if worst else ""
    return f"Dot chart of ours / best peer, one row a comparison, logarithmic axis. {summary(found)}{said}"


def _part(part: Part, text: str) -> list[str]:
    if not text:
        return []
    note = f"**The last attempt did not end well ({part.failed}); this was measured on {part.day}.**"
    return ["", *text.rstrip().splitlines(), *(["", note] if part.failed else [])]


if __name__ == "__main__":
    main()
