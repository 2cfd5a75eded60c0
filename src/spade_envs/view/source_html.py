"""A program's source with its syntax coloured, as HTML whose text is escaped by Pygments."""

from __future__ import annotations

from functools import lru_cache

from markupsafe import Markup, escape

from spade_envs.view.texts import shown

_MOST = 40_000  # characters that are coloured; longer sources are shown plain
_WIDEST = 1_000  # characters of a line that is coloured


@lru_cache(maxsize=64)
def highlighted(source: str) -> Markup:
    """Return ``source`` as a numbered block. Very long ones, and ones with very long lines, are not coloured."""
    text = shown(source, 200_000)
    if len(text) > _MOST or max(map(len, text.split("\n"))) > _WIDEST:
        return Markup('<pre class="source">{}</pre>').format(escape(text))
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    formatter = HtmlFormatter(linenos="inline", cssclass="source", nowrap=False)
    return Markup(highlight(text, PythonLexer(stripnl=False), formatter))
