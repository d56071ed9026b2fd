"""How sphinx builds these pages: plain markdown in, HTML that loads nothing from elsewhere out. `make docs` runs it."""

import re
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

project = "discreet"
release = version = installed("discreet")
extensions = ["myst_parser"]
exclude_patterns = ["_build", "_labs"]
language = "en"

myst_heading_anchors = 4  # [text](page.md#a-heading), as on the web pages of a repository
nitpicky = True

html_theme = "furo"
html_title = "discreet"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_extra_path = [each for each in ("_labs",) if Path(__file__).with_name(each).is_dir()]  # `docs/generate.py --labs`
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}


def _break_names(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Let long names in code break after a dot, an underscore or a slash, not in the middle of a word."""
    if "body" in context:
        context["body"] = re.sub(
            r'(<span class="pre">)([^<]*)(</span>)',
            lambda found: found[1] + re.sub(r"(?<=\w)([./_]|::)(?=\w)", r"\1<wbr>", found[2]) + found[3],
            context["body"],
        )


def setup(app: Any) -> None:
    app.connect("html-page-context", _break_names)
