"""Pages of one environment: what it asks, its source, what is known of it; playing it; replaying stored episodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from spade_envs.calibration.intervals import wilson
from spade_envs.memory.overview import plays_of
from spade_envs.memory.transfer import Play
from spade_envs.record import EnvironmentRecord, PlayStatistics
from spade_envs.sandbox.types import ProgramError, SandboxError
from spade_envs.view.pages import Pages, form, go, whole
from spade_envs.view.parts import details, token_runs
from spade_envs.view.parts import episode as part_episode
from spade_envs.view.source_html import highlighted
from spade_envs.view.tool_forms import FormError, action, forms
from spade_envs.view.transcript_lines import EpisodeLine

WRAPPERS = {
    "plain": ("as it is", "{}"),
    "boxed": ("\\boxed{…}", "\\boxed{{{}}}"),
    "answer": ("<answer>…</answer>", "<answer>{}</answer>"),
}
"""Ways to send a reply: name, words on the button, and the text around it."""

_NEIGHBOURS = 6


class EnvironmentPages(Pages):
    """Everything under ``/environment``, ``/play`` and ``/replay``."""

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/environment/{key}", self.environment),
            Route("/environment/{key}/source.py", self.source),
            Route("/environment/{key}/play", self.start, methods=["POST"]),
            Route("/play/{game}", self.play),
            Route("/play/{game}", self.reply, methods=["POST"]),
            Route("/replay/{source}/{place:int}", self.replay),
            Route("/replay-part/{number:int}/{step:int}/{rank:int}/{row:int}", self.replay_part),
        ]

    def environment(self, request: Request) -> Response:
        """One environment."""
        record = self.view.memory.get(request.path_params["key"])
        seed = whole(request.query_params.get("seed"), 0)
        entries = {entry.id: entry for entry in self.view.overview.entries()}
        plays = plays_of(self.view.memory, record.id)
        similar = self.view.memory.similar(record.source, _NEIGHBOURS + 1)
        return self.page(
            request,
            "environment.html.jinja",
            title=record.env_id,
            record=record,
            seed=seed,
            statement=self._statement(record, seed),
            findings=findings(record),
            source=highlighted(record.source),
            statistics=statistics(record.statistics, plays),
            plays=plays[-60:],
            parents=[(id, entries.get(id)) for id in record.parents],
            children=self.view.overview.children(record.id)[:100],
            similar=[(one, score) for one, score in similar if one.id != record.id][:_NEIGHBOURS],
            episodes=self.view.episodes_of(record.id, record.env_id),
        )

    def source(self, request: Request) -> Response:
        """The program as plain text."""
        record = self.view.memory.get(request.path_params["key"])
        return PlainTextResponse(record.source.encode("utf-8", "replace").decode())

    async def start(self, request: Request) -> Response:
        """Begin an episode."""
        values = await form(request)

        def begin() -> str:
            record = self.view.memory.get(request.path_params["key"])
            seed = whole(values.get("seed"), 0)
            return self.view.games.start(record, seed, hinted=bool(values.get("hinted"))).id

        return go(request, f"/play/{await run_in_threadpool(begin)}")

    def play(self, request: Request) -> Response:
        """An episode under way."""
        return self._game(request, request.path_params["game"])

    async def reply(self, request: Request) -> Response:
        """Take a reply, or a filled form of a tool."""
        values = await form(request)
        id = request.path_params["game"]
        game = self.view.games.get(id)
        try:
            text = _reply_text(values, game.episode.tools)
            await run_in_threadpool(self.view.games.reply, id, text)
        except (FormError, ValueError) as error:
            return await run_in_threadpool(partial(self._game, request, id, error=str(error), values=values))
        return go(request, f"/play/{id}#now")

    def replay(self, request: Request) -> Response:
        """A stored episode, turn by turn."""
        title, transcripts = self.view.source(request.path_params["source"])
        line = transcripts.read(request.path_params["place"])
        return self._replay(request, title, line, details(transcripts.path.parent, line))

    def replay_part(self, request: Request) -> Response:
        """A stored episode of a Parquet part."""
        run = self.view.run(request.path_params["number"])
        step, rank, row = (request.path_params[name] for name in ("step", "rank", "row"))
        line = part_episode(run.folder, step, rank, row)
        return self._replay(request, run.name, line, line)

    def _replay(self, request: Request, source: str, line: dict[str, Any], more: dict[str, Any]) -> Response:
        episode = EpisodeLine.of(line)
        last = len(episode.turns)
        at = min(max(0, whole(request.query_params.get("turn"), last)), last)
        record = None
        if self.view.has_memory and episode.key in self.view.memory:
            record = self.view.memory.get(episode.key)
        sampled, given = token_runs(more)
        return self.page(
            request,
            "replay.html.jinja",
            title="Replay",
            source=source,
            episode=episode,
            at=at,
            record=record,
            sampled=sampled,
            given=given,
        )

    def _game(self, request: Request, id: str, *, error: str = "", values: dict[str, str] | None = None) -> Response:
        game = self.view.games.get(id)
        return self.page(
            request,
            "play.html.jinja",
            title=f"Play {game.record.env_id}",
            status=400 if error else 200,
            game=game,
            record=game.record,
            episode=game.episode,
            forms=forms(game.episode.tools),
            wrappers=WRAPPERS,
            error=error,
            values=values or {},
        )

    def _statement(self, record: EnvironmentRecord, seed: int) -> dict[str, Any]:
        """The first observation of a seed, from the sandbox, or why there is none."""
        try:
            episode = self.view.games.statement(record, seed)
        except (ProgramError, SandboxError) as error:
            return {"messages": [], "tools": [], "error": str(error)}
        return {"messages": episode.messages, "tools": episode.tools, "error": episode.error}


def statistics(sums: PlayStatistics, plays: Sequence[Play]) -> dict[str, Any]:
    """Return win rates, mean returns and regret with 95 % intervals, each as (value, low, high) or None.

    Wilson's interval of the win rates; of the regret Newcombe's, from the two intervals of the mean returns, which are
    taken to lie in [0, 1] unless a negative one is known.
    """
    lowest = -1.0 if min((play.value for play in plays), default=0.0) < 0 or _negative(sums) else 0.0
    found: dict[str, Any] = {"plain": None, "hinted": None, "regret": None}
    means: dict[str, tuple[float, float, float]] = {}
    for arm, count, total, wins in (
        ("plain", sums.plain_plays, sums.plain_return, sums.plain_wins),
        ("hinted", sums.hinted_plays, sums.hinted_return, sums.hinted_wins),
    ):
        if count:
            rate = min(1.0, max(0.0, wins / count))
            width = 1.0 - lowest
            scaled = min(1.0, max(0.0, (total / count - lowest) / width))
            low, high = wilson(scaled, count)
            means[arm] = (total / count, lowest + low * width, lowest + high * width)
            found[arm] = {"plays": count, "win_rate": (rate, *wilson(rate, count)), "return": means[arm]}
    if len(means) == 2:
        (hinted, hinted_low, hinted_high), (plain, plain_low, plain_high) = means["hinted"], means["plain"]
        found["regret"] = (
            hinted - plain,
            hinted - plain - math.hypot(hinted - hinted_low, plain_high - plain),
            hinted - plain + math.hypot(hinted_high - hinted, plain - plain_low),
        )
    return found


def findings(record: EnvironmentRecord) -> list[dict[str, Any]]:
    """Return the findings of a record's report, refusals first; what has another form is passed over."""
    stored = record.report.get("findings")
    found = [
        {name: one.get(name) or "" for name in ("severity", "probe", "reason", "evidence")}
        for one in (stored if isinstance(stored, list | tuple) else ())
        if isinstance(one, dict)
    ]
    order = ("refuse", "warn", "info")
    return sorted(found, key=lambda one: order.index(one["severity"]) if one["severity"] in order else len(order))


def _negative(sums: PlayStatistics) -> bool:
    return sums.plain_return < 0 or sums.hinted_return < 0


def _reply_text(values: dict[str, str], tools: list[dict[str, Any]]) -> str:
    if "tool" in values:
        for number, one in enumerate(forms(tools)):
            if values["tool"] == str(number):
                prefix = "p."
                given = {name[len(prefix) :]: text for name, text in values.items() if name.startswith(prefix)}
                return action(one, {name: text.replace("\r\n", "\n") for name, text in given.items()})
        raise FormError("this environment offers no such tool")
    _, around = WRAPPERS.get(values.get("as", "plain"), WRAPPERS["plain"])
    return around.format(values.get("text", "").replace("\r\n", "\n"))
