"""τ²-bench from a user's checkout, by its own command ``tau2 run``.

LiteLLM, by which it asks, knows one address: a router's, which takes the model under test, the user and the judge of
statements in words to where they are. So no key stands on a command line or in a result.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spade_train.evaluation.external.command import run_logged
from spade_train.evaluation.external.environment import evaluator_environment, make_environment
from spade_train.evaluation.protocol import EvaluationError, Protocol
from spade_train.evaluation.question import Answer, Question
from spade_train.evaluation.runner import Notice
from spade_train.evaluation.suite import REFUSED
from spade_train.serving.process import Served
from spade_train.serving.router import Route, router

if TYPE_CHECKING:
    from spade_train.evaluation.external.run import ExternalOptions

_PYTHONS = ("python3.12", "python3.13")
_PASS = 1.0 - 1e-6
_AGENT, _USER = "spade-agent", "spade-user"
_TICKS = 20  # between two looks at a results file, which may be large
_REFUSALS = ("BadRequestError", "ContextWindowExceededError", "UnprocessableEntityError")
_OWN_FAULTS = ("AssertionError", "ValueError", "KeyError", "TypeError", "ValidationError", "JSONDecodeError")
"""Names of what a simulation fails with for good: what the model cannot take, and what it wrote (an empty message, a
call whose arguments are no JSON). Anything else is the endpoint's and is tried again."""
_JUDGE = "evaluator_nl_assertions"  # the module in whose traceback a fault is the judge's


def domains_of(suite: str, protocol: Protocol) -> tuple[str, ...]:
    """Return the domains of ``tau2-bench`` or ``tau2-bench:DOMAIN[,DOMAIN…]``."""
    chosen = tuple(name for name in suite.partition(":")[2].split(",") if name)
    return chosen or tuple(protocol.options["domains"])


def read_simulations(results: Mapping[str, Any], domain: str) -> list[Answer]:
    """Return the answers in a results file of ``tau2 run``: one for each simulation, passed with the whole reward.

    Raises:
        EvaluationError: if it is none.
    """
    try:
        return [_answer(simulation, domain) for simulation in results["simulations"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise EvaluationError(f"these are no results of tau2: {error!r}") from error


def _answer(simulation: Mapping[str, Any], domain: str) -> Answer:
    reward = (simulation.get("reward_info") or {}).get("reward")
    stop, info = str(simulation.get("termination_reason", "")), simulation.get("info") or {}
    said = f"{info.get('error_type', '')}: {info.get('error', '')}"[:500] if info.get("error_type") else ""
    judge = _JUDGE in str(info.get("error_traceback", ""))
    refused = not judge and (info.get("error_type") in _REFUSALS or stop == "context_window_exceeded")
    own = refused or (not judge and info.get("error_type") in _OWN_FAULTS)
    broken = reward is None and "error" in stop and not own
    messages = simulation.get("messages") or []
    usages = [m.get("usage") or {} for m in messages if isinstance(m, Mapping) and m.get("role") == "assistant"]
    return Answer(
        *(f"{domain}/{simulation['task_id']}", int(simulation.get("trial") or 0), domain),
        float((reward or 0.0) >= _PASS),
        text=json.dumps(messages, ensure_ascii=False),
        finish=REFUSED if refused else "stop",
        prompt_tokens=sum(int(usage.get("prompt_tokens") or 0) for usage in usages),
        completion_tokens=sum(int(usage.get("completion_tokens") or 0) for usage in usages),
        error=f"the simulation broke off. {said}".strip() if broken else "",
        detail={"reward": reward, "stop": stop} | ({"refused": said} if said else {}),
    )


class Tau2Run:
    """One run in its folder. The checkout's data are linked, so that simulations are written here.

    Args:
        folder: of the run.
        protocol: how it is asked.
        checkout: of tau2-bench.
        domains: to ask.
        limit: tasks in all, in turn from each domain; 0: every task.
    """

    def __init__(
        self, folder: Path, protocol: Protocol, checkout: Path, domains: Sequence[str], limit: int = 0
    ) -> None:
        self._folder, self._protocol, self._checkout = folder / "tau2", protocol, checkout
        self._tasks = {
            domain: len(range(place, limit, len(domains)))
            for place, domain in enumerate(domains)
            if not limit or place < limit
        }

    def run(self, served: Served, user: Served, options: ExternalOptions, notice: Notice | None) -> None:
        """Have the simulations that are missing run in every domain.

        Raises:
            EvaluationError: if tau2 cannot be installed, or fails.
        """
        python = self._environment()
        data = self._folder / "data"
        data.mkdir(parents=True, exist_ok=True)
        for entry in (self._checkout / "data").iterdir():
            link = data / entry.name
            if entry.name != "simulations" and not link.exists():
                link.symlink_to(entry, target_is_directory=entry.is_dir())
        judge = "" if options.user_at_openai else user.model  # tau2's own judge is one of OpenAI's
        routes = {
            _AGENT: Route(*served, options.key, plain=True),
            _USER: Route(*user, options.user_key),
            "": Route(user.base_url, judge, options.user_key),
        }
        with router(routes) as url:
            environment = evaluator_environment(
                TAU2_DATA_DIR=str(data.resolve()),
                PYTHONUTF8="1",
                LITELLM_LOCAL_MODEL_COST_MAP="True",  # else it is fetched from the network at every start
                OPENAI_API_KEY="none",
                **dict.fromkeys(("OPENAI_BASE_URL", "OPENAI_API_BASE"), url),
            )
            for domain, tasks in self._tasks.items():
                command = [str(python), str(python.parent / "tau2"), *self._command(domain, tasks, options)]
                run_logged("tau2", command, self._folder, environment, self._ticker(domain, notice))

    def collected(self) -> tuple[list[Question], list[Answer]]:
        """Return all simulations as questions and answers."""
        answers = []
        for domain in self._tasks:
            found = self._results(domain)
            if found is None:
                raise EvaluationError(f"tau2 left no results for {domain}; expected {self._places(domain)[0]}")
            answers += read_simulations(found, domain)
        return [Question(key, group=group) for key, group in dict.fromkeys((a.id, a.group) for a in answers)], answers

    def done(self) -> tuple[int, bool]:
        """How many simulations there are of those that need not be run again, and whether these are all."""
        found = {domain: self._results(domain) for domain in self._tasks}
        done = {
            domain: sum(not answer.error for answer in read_simulations(results, domain))
            for domain, results in found.items()
            if results is not None
        }
        wanted = {domain: len((found[domain] or {}).get("tasks", ())) * self._protocol.samples for domain in done}
        return sum(done.values()), done == wanted and len(done) == len(self._tasks)

    def _command(self, domain: str, tasks: int, options: ExternalOptions) -> list[str]:
        protocol = self._protocol
        command = ["run", "--domain", domain, "--save-to", f"spade-{domain}", "--auto-resume"]
        command += self._asked("agent", _AGENT, protocol.temperature, protocol.max_tokens, top_p=protocol.top_p)
        command += self._asked("user", _USER, 0.0, int(protocol.options["user_max_tokens"]))
        command += ["--num-trials", str(protocol.samples), "--max-steps", str(protocol.max_turns)]
        command += ["--max-concurrency", str(options.concurrency), "--seed", str(options.seed)]
        return [*command, "--num-tasks", str(tasks)] if tasks else command

    def _ticker(self, domain: str, notice: Notice | None) -> Any:
        ticks = 0

        def tick() -> None:
            nonlocal ticks
            ticks += 1
            if notice is None or ticks % _TICKS != 1:
                return
            results = self._results(domain) or {}
            total = len(results.get("tasks", ())) * self._protocol.samples
            notice(len(results.get("simulations", ())), max(1, total), domain)

        return tick

    def _results(self, domain: str) -> dict[str, Any] | None:
        found = next((path for path in self._places(domain) if path.is_file()), None)
        return None if found is None else json.loads(found.read_text(encoding="utf-8"))

    def _places(self, domain: str) -> tuple[Path, Path]:
        """Where the results are, in this year's layout and in that of the first versions."""
        base = self._folder / "data" / "simulations"
        return base / f"spade-{domain}" / "results.json", base / f"spade-{domain}.json"

    def _environment(self) -> Path:
        made_for = hashlib.sha256(str(self._checkout).encode()).hexdigest()[:8]
        interpreter = sys.executable if sys.version_info[:2] in ((3, 12), (3, 13)) else None
        interpreter = interpreter or next(filter(None, map(shutil.which, _PYTHONS)), None)
        if interpreter is None:
            raise EvaluationError("tau2-bench needs Python 3.12 or 3.13: install one, so that python3.12 is found")
        # Editable, so that a checkout that is brought up to date is what runs. It imports audioop, which Python has no
        # more from 3.13 on.
        packages = ["-e", str(self._checkout), "audioop-lts; python_version >= '3.13'"]
        return make_environment(f"tau2-{made_for}", packages, interpreter)

    @staticmethod
    def _asked(role: str, name: str, temperature: float, tokens: int, **more: Any) -> list[str]:
        arguments = {"temperature": temperature, "max_tokens": tokens, **more}
        return [f"--{role}-llm", f"openai/{name}", f"--{role}-llm-args", json.dumps(arguments)]
