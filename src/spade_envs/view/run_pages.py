"""Pages of training runs: curves, alarms, the programs of a step, two runs over each other."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from spade_envs.view.pages import Pages, go, whole
from spade_envs.view.parts import details, token_runs
from spade_envs.view.parts import episodes as more_episodes
from spade_envs.view.run_files import Run
from spade_envs.view.run_panels import every_metric, newest, sections
from spade_envs.view.source_html import highlighted
from spade_envs.view.transcript_lines import DesignLine, grouped, text

_ALARMS = 50
_DESIGNS = 60  # of one step that are shown
_EPISODES = 200


class RunPages(Pages):
    """Everything under ``/run``, the list of runs and their comparison."""

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/runs", self.runs),
            Route("/run/{number:int}", self.run),
            Route("/run/{number:int}/curves", self.curves),
            Route("/run/{number:int}/metrics", self.metrics),
            Route("/run/{number:int}/step", self.chosen),
            Route("/run/{number:int}/step/{step:int}", self.step),
            Route("/run/{number:int}/design/{place:int}", self.design),
            Route("/compare", self.compare),
        ]

    def runs(self, request: Request) -> Response:
        """All runs that are shown."""
        for run in self.view.runs:
            run.update()
        return self.page(
            request, "runs.html.jinja", title="Runs", shown_runs=[(run, newest(run)) for run in self.view.runs]
        )

    def run(self, request: Request) -> Response:
        """One run: where it stands, alarms, curves, steps."""
        number, run = self._run(request)
        run.transcripts.update()
        return self.page(
            request, "run.html.jinja", title=run.name, number=number, run=run, steps=run.transcripts.steps()[-200:],
            **live(run),
        )  # fmt: skip

    def curves(self, request: Request) -> Response:
        """The part of a run's page that changes while it runs; 204 if nothing is new."""
        number, run = self._run(request)
        if request.query_params.get("seen") == version(run):
            return Response(status_code=204)
        return self.part(request, "_run.html.jinja", number=number, run=run, **live(run))

    def metrics(self, request: Request) -> Response:
        """Every metric by itself."""
        number, run = self._run(request)
        return self.page(
            request, "metrics.html.jinja", title=f"Metrics of {run.name}", number=number, run=run,
            plots=every_metric(run),
        )  # fmt: skip

    def chosen(self, request: Request) -> Response:
        """To the page of the step that was chosen in a form."""
        step = max(0, whole(request.query_params.get("step"), 0))
        return go(request, f"/run/{request.path_params['number']}/step/{step}")

    def step(self, request: Request) -> Response:
        """The programs of a step by group, with rewards and advantages, and its episodes."""
        number, run = self._run(request)
        step = int(request.path_params["step"])
        run.transcripts.update()
        steps = run.transcripts.steps()
        places = [one.place for one in run.transcripts.designs if one.step == step]
        designs = [DesignLine.of(run.transcripts.read(place), place) for place in places[:_DESIGNS]]
        return self.page(
            request,
            "step.html.jinja",
            title=f"Step {step} of {run.name}",
            number=number,
            run=run,
            step=step,
            before=max((one for one in steps if one < step), default=None),
            after=min((one for one in steps if one > step), default=None),
            groups=grouped(designs),
            left_out=max(0, len(places) - _DESIGNS),
            episodes=[one for one in run.transcripts.episodes if one.step == step][:_EPISODES],
            more_episodes=more_episodes(run.folder, step, _EPISODES),
        )

    def design(self, request: Request) -> Response:
        """One program of a run with what the policy was asked and what it said."""
        number, run = self._run(request)
        line = run.transcripts.read(request.path_params["place"])
        if line.get("type") != "design":
            raise LookupError("this line holds no program")
        more = details(run.folder, line)
        return self.page(
            request,
            "design.html.jinja",
            title="A program",
            number=number,
            run=run,
            line=DesignLine.of(line),
            more=more,
            trained=sum(token_runs(more)[0]),
            source=highlighted(text(line.get("source"))),
            stored=self.view.has_memory and text(line.get("id")) in self.view.memory,
        )

    def compare(self, request: Request) -> Response:
        """Two runs over each other."""
        one, other = (whole(request.query_params.get(name), place) for place, name in enumerate(("one", "other")))
        chosen = [self.view.run(place) for place in (one, other)]
        for run in chosen:
            run.update()
        return self.page(
            request, "compare.html.jinja", title="Two runs", one=one, other=other, chosen=chosen,
            sections=sections(chosen),
        )  # fmt: skip

    def _run(self, request: Request) -> tuple[int, Run]:
        number = int(request.path_params["number"])
        run = self.view.run(number)
        run.update()
        return number, run


def version(run: Run) -> str:
    """Return what changes whenever a run's curves or alarms do."""
    last = run.metrics[-1].get("step", 0) if run.metrics else 0
    return f"{len(run.metrics)}.{last}.{len(run.alarms)}"


def live(run: Run) -> dict[str, Any]:
    """Return the values of the part of a run's page that changes while it runs."""
    return {
        "version": version(run),
        "newest": newest(run),
        "alarms": run.alarms[-_ALARMS:][::-1],
        "sections": sections([run]),
    }
