"""Everything measured about questions, one section after the other: `python -m bench.pmw` prints markdown."""

from __future__ import annotations

from bench import pmw_cells, pmw_curves, pmw_peers, pmw_single, pmw_speed, pmw_tables


def main() -> None:
    for each in (pmw_tables, pmw_single, pmw_peers, pmw_curves, pmw_cells, pmw_speed):
        print("\n".join(each.section()), flush=True)


if __name__ == "__main__":
    main()
