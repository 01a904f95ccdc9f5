"""Settings of the documentation's site, which `make site` builds with Sphinx."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "extensions"), str(HERE.parent)]

from twinlake.base.version import VERSION  # noqa: E402

project = "Twinlake"
version = release = VERSION
html_title = f"Twinlake {VERSION}"
exclude_patterns = ["extensions"]
extensions = ["myst_parser", "sphinx_copybutton", "diagrams", "llms"]
myst_heading_anchors = 6
myst_links_external_new_tab = False
nitpicky = True
html_theme = "furo"
html_static_path = ["extensions/static"]
html_css_files = ["site.css"]
html_show_copyright = False
html_show_sphinx = False
copybutton_exclude = ".linenos, .gp, .c1"
pygments_style = "friendly"
