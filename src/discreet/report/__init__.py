"""Plots of public things, and a page that holds them: what a data owner shows to others.

    from discreet import report

    shown = [report.odds(epsilons=[1]), report.budget(ledger), "All of it is about one table."]
    report.write_page("report.html", report.page("People", shown))

Every function of a plot reads public things only (budgets, sizes, ledgers, released models; never a table) and returns
a `Plot`: a picture as SVG, what it shows in words, and its numbers as a table. matplotlib, the extra `report`, draws;
it is imported when something is drawn.
"""

from discreet.report.box_plot import box
from discreet.report.budget_plot import noise_range, odds
from discreet.report.ledger_plot import budget, left
from discreet.report.ledger_report import ledger_report
from discreet.report.page import Grid, Heading, Part, page, write_page
from discreet.report.plot import Plot
from discreet.report.sample_size_plot import risk, sample_sizes
from discreet.report.session_plot import questions
