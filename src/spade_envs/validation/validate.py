"""Validation of generated programs by running them: load, collect evidence once, ask every probe."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from spade_envs.sandbox import Program, ProgramError, Sandbox
from spade_envs.validation import (
    probes_contract,
    probes_information,
    probes_replay,
    probes_reward,
    probes_secrets,
    probes_seeds,
    probes_solution,
)
from spade_envs.validation.collecting import collect
from spade_envs.validation.config import ValidationConfig
from spade_envs.validation.evidence import Evidence, mean_return
from spade_envs.validation.finding import Finding, Report, Severity
from spade_envs.validation.fingerprint import code_fingerprint, seed_fingerprints
from spade_envs.validation.probes_tools import tool_probes
from spade_envs.validation.tool_evidence import collect_tools

Probe = Callable[[Evidence], list[Finding]]

PROBES: tuple[Probe, ...] = (
    probes_replay.determinism,
    probes_replay.deep_copy,
    probes_replay.seeds_vary,
    probes_contract.termination,
    probes_contract.observation_size,
    probes_contract.unformatted,
    probes_contract.tools,
    probes_reward.reward_range,
    probes_reward.unfinished,
    probes_reward.malformed,
    probes_reward.know_nothing,
    probes_solution.solution,
    probes_reward.variance,
    probes_seeds.bimodal,
    probes_secrets.secrets,
    probes_information.hint,
    lambda evidence: [*evidence.leaks, *evidence.wording],  # looked for while evidence was collected: it takes more
)
"""Probes over complete evidence; contract and resources are asked first and always."""

_ORDER = {Severity.REFUSE: 0, Severity.WARN: 1, Severity.INFO: 2}


def validate(
    source: str,
    *,
    sandbox: Sandbox,
    hint: str | None = None,
    allow: Sequence[str] = (),
    config: ValidationConfig | None = None,
    probes: Sequence[Probe] = (),
) -> Report:
    """Run all probes on one program, inside the sandbox.

    The same source and configuration give the same findings. Whatever the program does is a finding, never an
    exception.

    Args:
        source: the program's Python source.
        sandbox: where it runs.
        hint: a hint written apart from the program, if any; it is checked like the program's own ``hint()``.
        allow: opt-in modules, such as "numpy".
        config: seeds, bounds and thresholds.
        probes: further probes of your own, asked after the built-in ones; they see the same evidence.

    Raises:
        SandboxError: if the sandbox itself fails.
    """
    config = _with_hidden_seeds(config or ValidationConfig(), source)
    started = time.perf_counter()
    opened: list[Program] = []

    def open_program(twin: bool, shared: bool = False) -> Program:
        program = sandbox.open(source, allow=allow, twin=twin, shared=shared)
        opened.append(program)
        return program

    try:
        try:
            program = open_program(False)
        except ProgramError as error:
            findings = probes_contract.load_failure(error)
            return Report("", tuple(findings), seconds=time.perf_counter() - started)
        loaded = time.perf_counter()
        evidence = collect(program, lambda shared: open_program(True, shared), program.info, source, hint, config)
        inside = collect_tools(evidence)
        probes_seeds.collect_seeds(evidence)
        collected = time.perf_counter()
    finally:
        for program in opened:
            program.close()
    findings = [*probes_contract.resources(evidence), *probes_contract.contract(evidence)]
    if evidence.complete:
        for probe in PROBES:
            findings += probe(evidence)
        findings += tool_probes(evidence, inside, findings)
        for probe in probes:
            findings += probe(evidence)
    findings.sort(key=lambda finding: _ORDER[finding.severity])
    ended = time.perf_counter()
    seconds = {"load": loaded - started, "collect": collected - loaded, "probes": ended - collected}
    return Report(
        name=evidence.info.class_name,
        findings=tuple(findings),
        proven=evidence.complete and evidence.proven,
        seconds=ended - started,
        measures=_measures(evidence, seconds),
    )


def _with_hidden_seeds(config: ValidationConfig, source: str) -> ValidationConfig:
    """Put the seeds that follow from the source before the configured ones."""
    digest = hashlib.sha256(b"seeds" + source.encode("utf-8", "surrogatepass")).digest()
    drawn = [int.from_bytes(digest[4 * i : 4 * i + 4], "big") >> 1 for i in range(config.hidden_seeds)]
    return dataclasses.replace(config, seeds=tuple(dict.fromkeys((*drawn, *config.seeds))))


def validate_many(
    sources: Iterable[str],
    *,
    sandbox: Sandbox,
    hints: Iterable[str | None] | None = None,
    allow: Sequence[str] = (),
    config: ValidationConfig | None = None,
) -> Iterator[Report]:
    """Validate programs one after the other, in order; ``hints`` go with the sources one by one.

    Raises:
        SandboxError: if the sandbox itself fails.
        ValueError: if there are not as many hints as sources.
    """
    if hints is None:
        for source in sources:
            yield validate(source, sandbox=sandbox, allow=allow, config=config)
    else:
        for source, hint in zip(sources, hints, strict=True):
            yield validate(source, sandbox=sandbox, hint=hint, allow=allow, config=config)


def _measures(evidence: Evidence, seconds: dict[str, float]) -> dict[str, object]:
    rollouts = evidence.rollouts
    turns = [len(rollout.turns) for rollout in rollouts if rollout.ended]
    best = {seed: attempts[0] for seed, attempts in evidence.solution_plays.items()}
    means = {
        name: round(mean_return(played, evidence.config), 4)
        for name, (_, played) in evidence.known_nothing.items()
        if played
    }
    return {
        "turns": round(sum(turns) / len(turns), 2) if turns else 0.0,
        "solution_turns": round(sum(len(play.turns) for play in best.values()) / len(best), 2) if best else None,
        "solution_form": evidence.solution_form,
        "know_nothing": {name: mean for name, mean in means.items() if mean > 0},
        "seeds": probes_seeds.seed_figures(evidence),
        "episodes": len(rollouts),
        "operations": evidence.runner.operations,
        "milliseconds": {name: round(1000 * value, 2) for name, value in seconds.items()},
        "fingerprints": seed_fingerprints((e.seed, e.observation, e.solution) for e in evidence.survey),
        "code": code_fingerprint(evidence.source),
    }
