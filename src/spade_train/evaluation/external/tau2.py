"""τ²-bench from a user's checkout, by its own command ``tau2 run``; LiteLLM asks the endpoints."""

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
from spade_train.serving.process import Served

if TYPE_CHECKING:
    from spade_train.evaluation.external.run import ExternalOptions

_PYTHONS = ("python3.12", "python3.13")
_PASS = 1.0 - 1e-6


def domains_of(suite: str, protocol: Protocol) -> tuple[str, ...]:
    """Return the domains of ``tau2-bench`` or ``tau2-bench:DOMAIN[,DOMAIN…]``."""
    chosen = tuple(name for name in suite.partition(":")[2].split(",") if name)
    return chosen or tuple(protocol.options["domains"])


def read_simulations(results: Mapping[str, Any], domain: str) -> list[Answer]:
    """Return the answers in a results file of ``tau2 run``: one for each simulation, passed with the whole reward.

    Raises:
        EvaluationError: if it is none.
    """
    answers = []
    try:
        for simulation in results["simulations"]:
            reward = (simulation.get("reward_info") or {}).get("reward")
            broken = "error" in str(simulation.get("termination_reason", "")) and reward is None
            answers.append(
                Answer(
                    *(f"{domain}/{simulation['task_id']}", int(simulation.get("trial") or 0), domain),
                    float((reward or 0.0) >= _PASS),
                    text=json.dumps(simulation.get("messages"), ensure_ascii=False),
                    error="the simulation broke off" if broken else "",
                    detail={"reward": reward, "stop": simulation.get("termination_reason")},
                )
            )
    except (KeyError, TypeError, ValueError) as error:
        raise EvaluationError(f"these are no results of tau2: {error!r}") from error
    return answers


class Tau2Run:
    """One run in its folder. The checkout's data are linked, so that simulations are written here."""

    def __init__(self, folder: Path, protocol: Protocol, checkout: Path, domains: Sequence[str]) -> None:
        self._folder, self._protocol, self._checkout = folder / "tau2", protocol, checkout
        self._domains = tuple(domains)

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
        environment = evaluator_environment(
            TAU2_DATA_DIR=str(data.resolve()), PYTHONUTF8="1", OPENAI_API_KEY=options.user_key or "none"
        )
        for number, domain in enumerate(self._domains):
            command = [str(python.parent / "tau2"), "run", "--domain", domain, "--save-to", self._name(domain)]
            command += self._asked("agent", served, options.key, self._protocol.temperature, self._protocol.max_tokens)
            command += self._asked("user", user, options.user_key, 0.0, None)
            command += ["--num-trials", "1", "--max-steps", str(self._protocol.max_turns), "--auto-resume"]
            command += ["--max-concurrency", str(options.concurrency), "--seed", str(options.seed)]
            command += ["--num-tasks", str(options.limit)] if options.limit else []

            def tick(done: int = number) -> None:
                if notice is not None:
                    notice(done, len(self._domains), self._domains[done])

            run_logged("tau2", [str(python), *command], self._folder, environment, tick)

    def collected(self) -> tuple[list[Question], list[Answer]]:
        """Return all simulations as questions and answers."""
        answers = []
        for domain in self._domains:
            base = self._folder / "data" / "simulations"
            places = (base / self._name(domain) / "results.json", base / f"{self._name(domain)}.json")
            found = next((path for path in places if path.is_file()), None)
            if found is None:
                raise EvaluationError(f"tau2 left no results for {domain}; expected {places[0]}")
            answers += read_simulations(json.loads(found.read_text(encoding="utf-8")), domain)
        return [Question(answer.id, group=answer.group) for answer in answers], answers

    def _environment(self) -> Path:
        made_for = hashlib.sha256(str(self._checkout).encode()).hexdigest()[:8]
        interpreter = sys.executable if sys.version_info[:2] in ((3, 12), (3, 13)) else None
        interpreter = interpreter or next(filter(None, map(shutil.which, _PYTHONS)), None)
        if interpreter is None:
            raise EvaluationError("tau2-bench needs Python 3.12 or 3.13: install one, so that python3.12 is found")
        return make_environment(f"tau2-{made_for}", [str(self._checkout)], interpreter)

    @staticmethod
    def _asked(role: str, served: Served, key: str, temperature: float, tokens: int | None) -> list[str]:
        arguments: dict[str, Any] = {"api_base": served.base_url, "api_key": key or "none", "temperature": temperature}
        arguments |= {"max_tokens": tokens} if tokens else {}
        return [f"--{role}-llm", f"openai/{served.model}", f"--{role}-llm-args", json.dumps(arguments)]

    @staticmethod
    def _name(domain: str) -> str:
        return f"spade-{domain}"
