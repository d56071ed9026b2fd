"""Measures the house: sizes, imports and layers of `src/discreet`, each beside the limit that `make check` enforces.

    python tools/house.py             the figures and the layer diagram; exit code 1 if a limit is broken
    python tools/house.py --details   also the names behind the figures that are counts of places
    python tools/house.py SRC         another tree, to compare with; no limits

Code lines are lines that are not blank, not a comment and not part of a docstring. The length of a function is the
number of its code lines. An import counts wherever it stands: at the top, inside a function, under TYPE_CHECKING.

The table of features says how many code lines are for what was there at 993c1cf and how many for what came later. Only
whole modules are counted: those that were made for a later feature count there (LATER). A module that was there, under
whatever name, counts for 993c1cf with all that it learned since: expressions in `sql.grammar`, dates in `data.domain`,
databases in `schema`, many files in `data.files_table`, zero-sum and spherical noise in `mechanisms.noise`, prices in
`session`. The tour was in the package then (about 1,000 lines of code), and is outside of it now.
"""

from __future__ import annotations

import ast
import functools
import io
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "arrays", "display"),
    ("exact",),
    ("guarantee", "records", "rng"),
    ("funds",),
    ("core",),
    ("composition",),
    ("data", "drawing"),
    ("predicate", "rehearsal"),
    ("row_functions",),
    ("person_rows",),
    ("query",),
    ("mechanisms", "describe"),
    ("ledger",),
    ("release",),
    ("method", "running"),
    ("erm", "pac", "sql", "hypothesis"),
    ("answering",),
    ("catalogue",),
    ("certificate",),
    ("schema",),
    ("estimators", "session"),
    ("plan", "remote"),
    ("audit", "report", "example", "modelling", "rule_words"),
    ("serve",),
    ("cli",),
    ("__main__",),
)
"""From the bottom up. A module imports from lower layers and from its own package, never from a sibling or from above.
The package itself, `discreet`, is the public face: it imports from everywhere below `FACE_USERS`, and only from there
on upwards is it imported."""

CODE = 42_900
"""The most lines of code, of all features together."""

BEFORE = "features of 993c1cf"
LATER: dict[str, tuple[str, ...]] = {
    "a service: keys, page, HTTP, client": (
        *("serve", "remote", "modelling", "cli.serve", "cli.analyst", "ledger.acting", "answering.answer_json"),
    ),
    "SQL: expressions, dates, windows, dialects": (
        *("sql.dates", "sql.dialects", "sql.expressions", "sql.naming", "sql.over_groups"),
        *("sql.released", "sql.rows", "sql.statement", "sql.values", "row_functions", "data.calendar"),
        *("answering.unknown_keys", "mechanisms.group_quantiles", "cli.statements"),
    ),
    "several tables, and rows made of each person's": ("data.database", "sql.joins", "person_rows"),
    "rows elsewhere: files, Spark, databases": (
        *("data.addresses", "data.engines", "data.far", "data.needs", "data.pushdown", "data.rules", "data.spark"),
        *("data.sql_engines", "data.sql_table", "data.sql_text", "data.tally"),
    ),
    "tables that grow": ("data.growing", "answering.epochs", "mechanisms.continual", "running", "cli.running"),
    "ledgers in PostgreSQL": ("ledger.postgres", "ledger.place", "ledger.address"),
    "residual marginals, chosen tables": (
        *("answering.residual_marginals", "answering.chosen_tables", "hypothesis.residuals", "hypothesis.shrinkage"),
        "hypothesis.coarse",
    ),
    "regressions and moments: PCA, scaler": (
        *("erm.objective_perturbation", "erm.noisy_moments", "erm.ranged"),
        "estimators.moments",
    ),
    "models in files, asked again for nothing": (
        *("estimators.loading", "estimators.model_file", "estimators.replay", "estimators.pipelines", "cli.predict"),
    ),
    "shown alike at a prompt and in a notebook": ("display", "drawing"),
    "labs": ("cli.lab", "cli.shipped"),
}
"""What came after 993c1cf, and its modules and packages; all others count for BEFORE."""

FACE = "discreet"
FACE_USERS = "audit"

ONE_FILE: dict[str, tuple[str, ...]] = {
    "duckdb": ("data.files", "data.sql_engines"),
    "sqlglot": ("data.sql_text",),
    "pyarrow": ("data.files",),
    "cloudpickle": ("data.engines",),
    "pyspark": ("data.spark",),
    "sklearn": ("estimators",),
    "matplotlib": ("drawing", "report.plot"),
    "sqlite3": ("ledger.sqlite",),
    "psycopg": ("ledger.postgres", "data.sql_engines"),
    "fastapi": ("serve",),
    "starlette": ("serve",),
    "pydantic": ("serve",),
    "jinja2": ("serve",),
    "uvicorn": ("cli.serve",),
    "click": ("cli",),
    "rich": ("cli", "display"),
}
"""Each library that belongs to a few modules or packages, and which."""


@dataclass(frozen=True)
class Function:
    """One function or method: where it is, and how many lines of code it has."""

    module: str
    name: str
    lines: int


@dataclass(frozen=True)
class Module:
    """One file, parsed."""

    name: str
    package: str
    text: str
    tree: ast.Module

    @functools.cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @functools.cached_property
    def code_lines(self) -> set[int]:
        """The numbers of the lines that hold code."""
        blank = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
        lines: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type not in blank:
                lines.update(range(token.start[0], token.end[0] + 1))
        for start, end in self._docstrings():
            lines.difference_update(range(start, end + 1))
        return lines

    def _docstrings(self) -> Iterator[tuple[int, int]]:
        """Every statement that is only a text: docstrings, and the comments under a constant."""
        for node in self.nodes:
            match node:
                case ast.Expr(value=ast.Constant(value=str())):
                    yield node.lineno, node.end_lineno or node.lineno

    @functools.cached_property
    def functions(self) -> list[Function]:
        found = []
        for node in self.nodes:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                span = range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)
                found.append(Function(self.name, node.name, len(self.code_lines.intersection(span))))
        return found

    def classes(self) -> Iterator[str]:
        yield from (node.name for node in self.tree.body if isinstance(node, ast.ClassDef))

    def imports(self, known: set[str]) -> set[str]:
        """The modules of this package that it imports; `known` are all of them."""
        edges: set[str] = set()
        for module, name in self._imported():
            inner = f"{module}.{name}" if name else module
            edges.add(inner if inner in known else module)
        return {edge for edge in edges if edge in known and edge != self.name}

    def libraries(self) -> set[str]:
        """The top-level names of everything that it imports."""
        return {module.split(".")[0] for module, _ in self._imported()}

    def _imported(self) -> Iterator[tuple[str, str]]:
        """Every import as (module, name); the name is empty for `import module`. Relative imports are resolved."""
        for node in self.nodes:
            match node:
                case ast.Import(names=names):
                    yield from ((alias.name, "") for alias in names)
                case ast.ImportFrom(module=module, names=names, level=level):
                    above = self.package.split(".")[: len(self.package.split(".")) - level + 1] if level else []
                    yield from ((".".join([*above, *([module] if module else [])]), alias.name) for alias in names)


class House:
    """All modules of the package."""

    def __init__(self, source: Path) -> None:
        self.modules: dict[str, Module] = {}
        for path in sorted(source.rglob("*.py")):
            parts = path.relative_to(source.parent).with_suffix("").parts
            package, name = ".".join(parts[:-1]), ".".join(parts).removesuffix(".__init__")
            text = path.read_text()
            self.modules[name] = Module(name, package, text, ast.parse(text))
        known = set(self.modules)
        self.edges = {name: module.imports(known) for name, module in self.modules.items()}

    @functools.cached_property
    def functions(self) -> list[Function]:
        return [each for module in self.modules.values() for each in module.functions]

    def code(self) -> int:
        return sum(len(module.code_lines) for module in self.modules.values())

    def features(self) -> dict[str, int]:
        """The code lines of the features of 993c1cf, and of each later one."""
        owner = {f"{FACE}.{name}": feature for feature, names in LATER.items() for name in names}
        unknown = sorted(set(owner) - set(self.modules))
        if unknown:
            raise ValueError(f"LATER names modules that are not there: {', '.join(unknown)}")
        found = dict.fromkeys((BEFORE, *LATER), 0)
        for name, module in self.modules.items():
            package = ".".join(name.split(".")[:2])
            found[owner.get(name) or owner.get(package) or BEFORE] += len(module.code_lines)
        return found

    def lines_at(self, part: float) -> int:
        """The length of a function that this part of all functions does not exceed."""
        lengths = sorted(each.lines for each in self.functions)
        return lengths[min(len(lengths) - 1, int(part * len(lengths)))]

    def once_called(self) -> list[Function]:
        """Private functions and methods that their own module names exactly once."""
        found = []
        for module in self.modules.values():
            uses = Counter(
                node.id if isinstance(node, ast.Name) else node.attr
                for node in module.nodes
                if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
            )
            named_once = (each for each in module.functions if uses[each.name] == 1)
            found += [each for each in named_once if each.name.startswith("_") and not each.name.endswith("__")]
        return found

    def isinstances(self) -> int:
        return sum(
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"
            for module in self.modules.values()
            for node in module.nodes
        )

    def repeated_classes(self) -> dict[str, list[str]]:
        """Public and private class names that are defined in more than one module."""
        where = defaultdict(list)
        for module in self.modules.values():
            for name in module.classes():
                where[name].append(module.name)
        return {name: modules for name, modules in where.items() if len(modules) > 1}

    def cycles(self) -> list[list[str]]:
        """Groups of modules that import each other, lazy imports included. The public face is not counted."""
        return [sorted(group) for group in _components(self._inner_edges()) if len(group) > 1]

    def _inner_edges(self) -> dict[str, set[str]]:
        return {name: edges - {FACE} for name, edges in self.edges.items() if name != FACE}

    def upward(self) -> list[tuple[str, str]]:
        """Imports that do not point down: (from, to). A module in no layer is one too."""
        found = [(name, "no layer") for name in self._inner_edges() if _layer(name) is None]
        lowest = _layer(f"{FACE}.{FACE_USERS}") or 0
        found += [(name, FACE) for name, edges in self.edges.items() if FACE in edges and (_layer(name) or 0) < lowest]
        for name, edges in self._inner_edges().items():
            for edge in edges:
                below, above = _layer(edge), _layer(name)
                if _package(name) != _package(edge) and below is not None and above is not None and below >= above:
                    found.append((name, edge))
        return sorted(found)

    def stray_libraries(self) -> list[tuple[str, str]]:
        """Modules that import an optional library which belongs to another one: (module, library)."""
        return sorted(
            (name, library)
            for name, module in self.modules.items()
            for library in module.libraries() & set(ONE_FILE)
            if not any(f"{name}.".startswith(f"{FACE}.{owner}.") for owner in ONE_FILE[library])
        )


def _package(name: str) -> str:
    return name.split(".")[1] if "." in name else ""


def _layer(name: str) -> int | None:
    return next((place for place, packages in enumerate(LAYERS) if _package(name) in packages), None)


def _components(edges: dict[str, set[str]]) -> list[set[str]]:
    """Strongly connected components: sets of modules that reach each other."""

    def reached(start: str) -> set[str]:
        seen, rest = {start}, [start]
        while rest:
            for edge in edges.get(rest.pop(), set()) - seen:
                seen.add(edge)
                rest.append(edge)
        return seen

    reach = {name: reached(name) for name in edges}
    groups = {frozenset(other for other in reach[name] if name in reach.get(other, set())) for name in edges}
    return [set(group) for group in groups]


@dataclass(frozen=True)
class Figure:
    """One number beside its limit."""

    what: str
    value: float
    limit: float
    before: str
    names: tuple[str, ...] = ()


def figures(house: House) -> list[Figure]:
    once = house.once_called()
    edges = sum(map(len, house.edges.values())) / len(house.modules)
    repeated, cycles = house.repeated_classes(), house.cycles()
    upward, stray = house.upward(), house.stray_libraries()
    return [
        Figure("lines of code", house.code(), CODE, "26,812"),
        Figure("function length, 9 of 10", house.lines_at(0.9), 20, "12"),
        Figure(
            "private helpers with one caller, %",
            round(100 * len(once) / len(house.functions), 1),
            12,
            "22",
            tuple(f"{each.module}.{each.name} ({each.lines})" for each in once),
        ),
        Figure("import edges a module", round(edges, 2), 5.0, "7.2"),
        Figure("isinstance in 1,000 lines", round(1000 * house.isinstances() / house.code(), 1), 10.5, "22.6"),
        Figure(
            "class names used twice",
            len(repeated),
            0,
            "52",
            tuple(f"{name}: {', '.join(modules)}" for name, modules in sorted(repeated.items())),
        ),
        Figure("import cycles", len(cycles), 0, "2", tuple(" ".join(group) for group in cycles)),
        Figure("imports that point up", len(upward), 0, "18", tuple(f"{a} -> {b}" for a, b in upward)),
        Figure("libraries outside their module", len(stray), 0, "-", tuple(f"{a}: {b}" for a, b in stray)),
    ]


def main(arguments: list[str]) -> int:
    details, trees = "--details" in arguments, [each for each in arguments if not each.startswith("--")]
    house = House(Path(trees[0]) if trees else ROOT / "src" / "discreet")
    measured = figures(house)
    print(f"{'':38}{'now':>9}{'limit':>9}{'993c1cf':>9}")
    for each in measured:
        mark = "" if each.value <= each.limit else "  above the limit"
        print(f"{each.what:38}{each.value:>9,}{each.limit:>9,}{each.before:>9}{mark}")
        if details:
            print("".join(f"    {name}\n" for name in each.names), end="")
    if not trees:
        print("\ncode lines by feature, whole modules:")
        for feature, lines in house.features().items():
            print(f"    {feature:45}{lines:>7,}")
    lengths = f"median {house.lines_at(0.5)}, longest {max(each.lines for each in house.functions)}"
    print(f"\n{len(house.modules)} modules, {len(house.functions):,} functions ({lengths})\n\nlayers, from the top:")
    for layer in reversed(LAYERS):
        print("   ", "  ".join(layer))
    return 0 if trees or all(each.value <= each.limit for each in measured) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
