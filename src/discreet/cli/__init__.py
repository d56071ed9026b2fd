"""The command line: `discreet COMMAND --help` teaches.

Errors are one sentence on the error stream, with what would work; nothing is spent before everything that can be wrong
has been checked. Exit codes:

    0    done
    1    refused or failed: the ledger is damaged, behind its mark, of another table; a file cannot be read or written
    2    a wrong argument, schema or question: nothing was spent
    3    the budget does not allow it: nothing was spent
    130  stopped by Ctrl-C: what was charged before stays charged
    141  the reader of the output went away

One file per command: analyst, ask, audit, fit, lab, learn, ledger, plan, predict, report, running, schema, serve,
suggest_bounds, synth, tour. Beside them:

    kit           options that commands share; the table and the ledger that they open; text, tables and JSON
    files         files that are read and written
    price_view    what a release cost, and the remaining budget
    shipped       the tour and the labs, which live in `examples`
    ask_session, ask_prompt    how questions are asked, and their answers shown
    statements                 where a question ends, and on which line it stands

Importing this package imports click and nothing heavy; each command imports what it needs.
"""

from __future__ import annotations

import io
import os
import sys

import click
from click.shell_completion import shell_complete

from discreet.cli import (
    analyst,
    ask,
    audit,
    fit,
    lab,
    learn,
    ledger,
    plan,
    predict,
    report,
    running,
    schema,
    serve,
    suggest_bounds,
    synth,
    tour,
)
from discreet.cli.kit import DiscreetError, exit_code

_COMPLETE = "_DISCREET_COMPLETE"  # what a shell sets when it asks how to go on after a tab


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="discreet", prog_name="discreet", message="%(prog)s %(version)s")
def commands() -> None:
    """Learn from private data under differential privacy, within one budget that cannot be overspent.

    \b
    Steps:   tour           everything once, on a bundled table
             schema         draft what is public about your table, and fill it in
             ledger create  fix the budget permanently
             plan           what a budget buys, before anything is spent
             ask, fit, learn, synth, suggest-bounds      use it; --rehearse tries all of them on made-up rows
             running                                     totals of a table that grows, month by month
             predict                                     use a saved model, anywhere
             ledger show, report                         look at it
             analyst add, serve                          let others ask, who never see a row
             lab            the lectures behind it, as experiments

    Each word (epsilon, alpha, unit, ledger, book, ...) is explained in docs/glossary.md.
    """


for _command in (
    *(ask.ask, audit.audit, fit.fit, lab.lab, learn.learn, ledger.ledger, plan.plan, report.report, schema.schema),
    *(predict.predict, running.running, suggest_bounds.suggest_bounds, synth.synth, tour.tour),
    *(analyst.analyst, serve.serve),
):
    commands.add_command(_command)


def main() -> None:
    """The entry point: runs a command and turns errors into one sentence and an exit code.

    Click's own `main` would hide Ctrl-C and closed pipes behind exit codes of its own.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # a sign that it cannot show is no reason to fail after a charge
        sys.stdout.reconfigure(errors="backslashreplace")
    if instruction := os.environ.get(_COMPLETE):
        sys.exit(shell_complete(commands, {}, "discreet", _COMPLETE, instruction))
    try:
        with commands.make_context("discreet", sys.argv[1:]) as context:
            commands.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        sys.exit(end.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        _complain("stopped: nothing was done", 1)
    except KeyboardInterrupt:
        _complain("\ndiscreet: stopped; what was charged stays charged", 130)
    except DiscreetError as error:
        _complain(f"discreet: {error}{_where_to_read()}", exit_code(error))
    except BrokenPipeError:
        _end_quietly()
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # rich found out first
            _end_quietly()
        raise
    except OSError as error:
        charged = "; what was charged is in the ledger: `discreet ledger show`"
        where = f": {error.filename}" if error.filename else charged
        _complain(f"discreet: {error.strerror or error}{where}", 1)


def _where_to_read() -> str:
    """For people at a terminal: the pages that explain the words of an error and its remedy."""
    return "\nThe words are explained in docs/glossary.md, refusals in docs/refused.md." if sys.stderr.isatty() else ""


def _complain(text: str, code: int) -> None:
    click.echo(text, err=True)
    sys.exit(code)


def _end_quietly() -> None:
    """End without a complaint, with the code for a closed pipe; Python would complain when it closes the stream."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(141)
