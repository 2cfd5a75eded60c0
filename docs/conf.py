"""Configuration of the documentation: `make docs` builds docs/_build/html; warnings are errors."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from spade_envs import __version__  # noqa: E402

project = "spade-envs"
copyright = "the spade-envs maintainers"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build", "img"]
html_theme = "furo"
html_title = f"spade-envs {version}"
nitpicky = False  # annotations of libraries without an inventory would all be reported

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

autodoc_default_options = {"members": True, "member-order": "bysource", "show-inheritance": True}
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
# What the trainer needs beyond the core; pages of the core build without it.
autodoc_mock_imports = [
    name for name in ("torch", "trl", "transformers", "peft", "accelerate", "datasets")
    if not __import__("importlib.util").util.find_spec(name)
]  # fmt: skip
napoleon_google_docstring = True
napoleon_numpy_docstring = False
suppress_warnings = ["myst.header"]
