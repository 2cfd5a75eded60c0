"""Pages of a memory as a whole: table, distributions, map, resemblance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from spade_envs.memory.overview import Entry
from spade_envs.view import pool_plots
from spade_envs.view.listing import LEARNABLE, ORDERS, Listed, Query, choice, listed, standing
from spade_envs.view.pages import Pages
from spade_envs.view.twins import nearest_pairs, side_by_side


class PoolPages(Pages):
    """Everything under ``/pool``."""

    _choices: tuple[tuple[Entry, ...], dict[str, list[str]]] | None = None  # of the entries as they were last

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/pool", self.table),
            Route("/pool/table", self.rows),
            Route("/pool/plots", self.plots),
            Route("/pool/map", self.map),
            Route("/pool/twins", self.twins),
            Route("/pool/diff", self.diff),
        ]

    def table(self, request: Request) -> Response:
        """The list of environments with its filters."""
        query, found = self._listed(request)
        return self.page(request, "pool.html.jinja", title="Environments", **self._table(query, found))

    def rows(self, request: Request) -> Response:
        """The table alone, while one types."""
        query, found = self._listed(request)
        return self.part(request, "_table.html.jinja", **self._table(query, found))

    def plots(self, request: Request) -> Response:
        """Distributions of what the filters leave."""
        query, found = self._listed(request)
        return self.page(
            request,
            "plots.html.jinja",
            title="Distributions",
            query=query,
            count=len(found.entries),
            plots=pool_plots.distributions(found.entries, query),
        )

    def map(self, request: Request) -> Response:
        """The embeddings in the plane."""
        query, found = self._listed(request)
        picture = pool_plots.memory_map(self.view.memory, found.entries)
        return self.page(request, "map.html.jinja", title="Map", query=query, count=len(found.entries), **picture)

    def twins(self, request: Request) -> Response:
        """Pairs that resemble each other most."""
        query, found = self._listed(request)
        pairs, compared = nearest_pairs(self.view.memory, found.entries)
        return self.page(
            request, "twins.html.jinja", title="Near-duplicates", pairs=pairs, compared=compared, query=query
        )

    def diff(self, request: Request) -> Response:
        """Two sources side by side."""
        one, other = (self.view.memory.get(request.query_params.get(name, "")) for name in ("one", "other"))
        lines = side_by_side(one.source, other.source)
        return self.page(request, "diff.html.jinja", title="Two programs", one=one, other=other, lines=lines)

    def _listed(self, request: Request) -> tuple[Query, Listed]:
        query = Query.of(request.query_params)
        return query, listed(self.view.memory, self.view.overview.entries(), query)

    def _known_choices(self, entries: tuple[Entry, ...]) -> dict[str, list[str]]:
        if self._choices is None or self._choices[0] is not entries:
            self._choices = (entries, _choices(entries))
        return self._choices[1]

    def _table(self, query: Query, found: Listed) -> dict[str, Any]:
        everything = self.view.overview.entries()
        number = min(query.page, found.pages)
        return {
            "query": query,
            "rows": found.page(number),
            "scores": found.scores,
            "number": number,
            "pages": found.pages,
            "count": len(found.entries),
            "total": len(everything),
            "summary": summary(found.entries),
            "choices": self._known_choices(everything),
            "orders": list(ORDERS),
            "standing": standing,
        }


def summary(entries: Sequence[Entry]) -> dict[str, Any]:
    """Return the figures above a table: how many are proven and played, share in the learnable band, mean regret."""
    rates = [rate for entry in entries if (rate := entry.statistics.win_rate) is not None]
    regrets = [regret for entry in entries if (regret := entry.statistics.regret) is not None]
    return {
        "proven": sum(entry.proven for entry in entries),
        "played": len(rates),
        "learnable": sum(LEARNABLE[0] <= rate <= LEARNABLE[1] for rate in rates) / len(rates) if rates else None,
        "win_rate": sum(rates) / len(rates) if rates else None,
        "regret": sum(regrets) / len(regrets) if regrets else None,
    }


def _choices(entries: tuple[Entry, ...]) -> dict[str, list[str]]:
    """Values to filter by, the commonest first."""
    found = {}
    for name in ("skill", "kind", "generator"):
        counts = Counter(getattr(entry, name) for entry in entries)
        found[name] = [choice(value) for value, _ in counts.most_common(100) if value]
    return found
