"""``spade calibrate``: plain and hinted plays of stored environments, and what they say with their intervals."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from spade_envs.cli.cluster import RayAddressOption, RayGpusOption, RayOption, RayWorkersOption, workers
from spade_envs.cli.console import (
    IsolationOption,
    JsonOption,
    MemoryOption,
    ToolsOption,
    check_isolation,
    err,
    out,
    print_json,
    print_table,
    progress,
    shown,
    tools_mode,
)

if TYPE_CHECKING:
    from spade_envs.calibration import Calibration
    from spade_envs.cluster.players import Chunk
    from spade_envs.episode import Episode, PlayConfig
    from spade_envs.memory import Memory
    from spade_envs.models.base import ChatModel
    from spade_envs.play import Player
    from spade_envs.record import EnvironmentRecord
    from spade_envs.sandbox import Sandbox


def _chosen(store: Memory, ids: Sequence[str], skill: str | None, kind: str | None, limit: int) -> list[Any]:
    """The records to play, by kind, each kind oldest first."""
    records = [store.get(key) for key in ids] if ids else store.records(skill=skill, kind=kind)
    if not records:
        raise ValueError("nothing to play: no environment in this memory fits; `spade list` shows what it holds")
    return sorted(records, key=lambda record: record.kind)[: limit or None]


def _chunks(records: Sequence[EnvironmentRecord], size: int) -> Iterator[list[EnvironmentRecord]]:
    """At most ``size`` records of one kind at a time: a kind has prompts of its own."""
    for kind in sorted({record.kind for record in records}):
        same = [record for record in records if record.kind == kind]
        yield from (same[start : start + size] for start in range(0, len(same), size))


def _play_config(prompts: str, scripted: bool) -> PlayConfig:
    from spade_envs.designer.prompts import PromptSet
    from spade_envs.play import PlayConfig

    if scripted:
        return PlayConfig()
    chosen = PromptSet.load(prompts)
    return PlayConfig(system_prompt=chosen.agent_system, hint_template=chosen.hint_template, **chosen.play)


def _with_interval(value: float, interval: Sequence[float], sign: str = "") -> str:
    return f"{value:{sign}.2f} ({interval[0]:{sign}.2f} to {interval[1]:{sign}.2f})"


def _print_results(results: Sequence[Calibration]) -> None:
    title = f"win rate and regret with {results[0].confidence:.0%} intervals"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("environment", no_wrap=True)
    for name in ("plain", "win rate", "hinted", "win rate", "regret", "turns", "tokens"):
        table.add_column(name, justify="right", no_wrap=True)
    for result in results:
        facts = result.to_dict()
        plain, hinted, regret = facts["plain"], facts["hinted"], facts["regret"]
        if plain["win_rate"] is None:
            reason = result.error or "the model gave no answer"
            table.add_row(shown(result.record.env_id), "0", shown(reason, 60))
            continue
        table.add_row(
            shown(result.record.env_id),
            str(plain["plays"]),
            _with_interval(plain["win_rate"], plain["win_rate_interval"]),
            str(hinted["plays"]),
            "–" if regret is None else _with_interval(hinted["win_rate"], hinted["win_rate_interval"]),
            "–" if regret is None else _with_interval(regret, facts["regret_interval"], "+"),
            f"{plain['mean_turns']:.1f}",
            f"{plain['mean_tokens']:.0f}",
        )
    print_table(table)


def summarise(results: Sequence[Calibration]) -> dict[str, Any]:
    """Return counts and means over ``results``, JSON-safe; means are None where nothing was played."""
    played = [result for result in results if result.plain.returns]
    rates = [fmean(result.plain.wins) for result in played]
    regrets = [result.regret for result in played if result.regret is not None]
    return {
        "environments": len(results),
        "failed": sum(bool(result.error) for result in results),
        "episodes": sum(len(arm.returns) for result in results for arm in (result.plain, result.hinted)),
        "model_errors": sum(arm.stops["model_error"] for result in results for arm in (result.plain, result.hinted)),
        "mean_win_rate": fmean(rates) if rates else None,
        "learnable_share": fmean(0.2 <= rate <= 0.8 for rate in rates) if rates else None,
        "mean_regret": fmean(regrets) if regrets else None,
        "tokens": sum(sum(arm.tokens) for result in results for arm in (result.plain, result.hinted)),
    }


def calibrate(
    ids: Annotated[list[str] | None, typer.Argument(help="Environments (ids); by default all of the memory.")] = None,
    memory: MemoryOption = None,
    agent: Annotated[
        str,
        typer.Option(
            "--model",
            "--agent",
            help="Who plays: nano, smollm2, hf:…, vllm:…, openai:…; random, know-nothing, solution (not stored).",
        ),
    ] = "nano",
    plays: Annotated[int, typer.Option(min=1, help="Most plays without the hint, and with it.")] = 16,
    precision: Annotated[
        float, typer.Option(min=0, max=0.49, help="Half-width of the win rates' intervals to stop at; 0: all plays.")
    ] = 0.2,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.999, help="Of the intervals.")] = 0.95,
    no_hint: Annotated[bool, typer.Option("--no-hint", help="Plain plays only.")] = False,
    skill: Annotated[str | None, typer.Option("--skill", help="Only this skill.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="Only this kind: game or tool_use.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="Only so many; 0: all.")] = 0,
    seed: Annotated[int, typer.Option("--seed", help="Seed of episodes and sampling.")] = 0,
    run: Annotated[str | None, typer.Option("--run", help="Name of this run in the memory.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
    prompts: Annotated[
        str | None,
        typer.Option(help="Prompt set: nano, small, games, tool_use or a folder. Default: by model and kind."),
    ] = None,
    base_url: Annotated[str | None, typer.Option(help="Endpoint of an openai:… model.")] = None,
    temperature: Annotated[float, typer.Option(min=0, help="Sampling temperature of a model.")] = 0.6,
    tools: ToolsOption = "auto",
    width: Annotated[int, typer.Option(min=1, help="Most episodes at once.")] = 64,
    ray: RayOption = False,
    ray_address: RayAddressOption = None,
    ray_workers: RayWorkersOption = None,
    ray_gpus: RayGpusOption = 0.0,
    transcripts: Annotated[Path | None, typer.Option(help="Append every episode to this file, as JSON lines.")] = None,
    isolation: IsolationOption = "full",
    as_json: JsonOption = False,
) -> None:
    """Play environments without and with their hint; print and store win rate and regret.

    A model's plays go into the memory's statistics, eight environments at a time; a run that was stopped
    goes on with --resume. Exit code 1 if an environment could not be played.

    Example: `spade calibrate --memory m --model nano --plays 8`
    """
    from spade_envs.calibration import CalibrationConfig
    from spade_envs.cluster import calibrate_on_cluster
    from spade_envs.designer.prompt_files import default_prompt_set
    from spade_envs.memory import Memory
    from spade_envs.models import check_spec, load_model
    from spade_envs.models.base import Sampling
    from spade_envs.players import PLAYER_NAMES, scripted_player
    from spade_envs.sandbox import Sandbox

    if tools not in ("auto", "text", "native"):
        raise ValueError(f"--tools must be auto, text or native, got {tools!r}")
    if ray and transcripts:
        raise ValueError("--transcripts needs the episodes here; leave out --ray or --transcripts")
    scripted = agent in PLAYER_NAMES
    if agent == "human" or not scripted:
        check_spec(agent, others=[name for name in PLAYER_NAMES if name != "human"])
    config = CalibrationConfig(plays=plays, precision=precision, confidence=confidence, hinted=not no_hint, seed=seed,
                               width=width)  # fmt: skip
    run = run or f"calibrate/{agent}/{seed}"
    settings = {"agent": agent, "plays": plays, "precision": precision, "hinted": not no_hint, "seed": seed,
                "tools": tools, "temperature": temperature, "prompts": prompts or ""}  # fmt: skip
    with ExitStack() as stack:
        sandbox = stack.enter_context(Sandbox(minimum_isolation=check_isolation(isolation)))
        with Memory.open(memory, read_only=True):  # there is one: opening for writing would make it
            pass
        store = stack.enter_context(Memory.open(memory, read_only=scripted))
        records = _chosen(store, ids or (), skill, kind, limit)
        next_chunk, state = store.progress(run)
        done: set[str] = set()
        if not scripted:
            _check_run(run, resume, next_chunk, state, settings)
            done = store.played(run) | set(state.get("failed", ()))
            records = [record for record in records if record.id not in done]
            if not records:
                _print([], as_json, before=len(done))
                return
            if done:
                err.print(f"{len(done)} environments are done already, {len(records)} are left")
        log = stack.enter_context(transcripts.open("a", encoding="utf-8")) if transcripts else None

        def note(record: EnvironmentRecord, episode: Episode) -> None:
            if log is not None:
                log.write(json.dumps({"env_id": record.env_id, "run": run, **episode.to_dict()}) + "\n")

        def work() -> Iterator[Chunk]:
            """Chunks with what they are played by; tools are settled where the player is."""
            for chunk in _chunks(records, config.chunk):
                name = prompts or default_prompt_set(agent, chunk[0].kind)
                play = replace(_play_config(name, scripted), tools="native" if tools == "native" else "text")
                sampling = Sampling(max_tokens=play.turn_tokens, temperature=temperature, seed=seed)
                yield chunk, play, replace(config, chunk=len(chunk)), sampling, tools == "auto"

        if ray:
            count = workers(ray_address, ray_workers)
            stream = calibrate_on_cluster(agent, work(), workers=count, isolation=check_isolation(isolation),
                                          options={"base_url": base_url}, seed=seed, gpus=ray_gpus)  # fmt: skip
        else:
            player = load_model(agent, base_url=base_url) if not scripted else None
            if player is not None:
                stack.callback(player.close)
            stream = _here(player or scripted_player(agent, sandbox=sandbox, seed=seed), work(), sandbox, note)
        results: list[Calibration] = []
        failed = list(state.get("failed", ()))
        advance = stack.enter_context(progress("played", len(records)))
        for number, new in enumerate(stream, next_chunk):
            results += new
            failed += [result.record.id for result in new if not result.plain.returns]
            if not scripted:
                _store(store, run, number, new, {"settings": settings, "failed": failed})
            advance(len(results), f"win rate {summarise(results)['mean_win_rate'] or 0:.2f}")
    _print(results, as_json, before=0 if scripted else len(done))
    if any(not result.plain.returns for result in results):
        raise typer.Exit(1)


def _here(
    player: ChatModel | Player,
    work: Iterator[Chunk],
    sandbox: Sandbox,
    note: Callable[[EnvironmentRecord, Episode], None],
) -> Iterator[list[Calibration]]:
    """Play the chunks in this process."""
    from spade_envs.calibration import calibrate as measured

    for records, play, config, sampling, auto in work:
        mode = replace(play, tools=tools_mode("auto", player)) if auto else play
        yield list(measured(player, records, sandbox, mode, config, sampling=sampling, on_episode=note))


def _check_run(run: str, resume: bool, next_chunk: int, state: dict[str, Any], settings: dict[str, Any]) -> None:
    from spade_envs.memory.settings import changed_settings

    if next_chunk and not resume:
        raise ValueError(f"the memory holds a run {run!r} already: go on with it (--resume), or take another --seed "
                         f"or --run for further plays")  # fmt: skip
    if changed := changed_settings(state, settings):
        raise ValueError(f"run {run!r} cannot be resumed with other settings: {changed}")


def _store(store: Memory, run: str, number: int, results: Sequence[Calibration], state: dict[str, Any]) -> None:
    plays = []
    for result in results:
        plays.append((result.record.id, result.plain.returns, False))
        plays.append((result.record.id, result.hinted.returns, True))
    store.commit_round(run, number, [], state, plays=plays)


def _print(results: Sequence[Calibration], as_json: bool, before: int) -> None:
    facts = {**summarise(results), "done_before": before}
    if as_json:
        print_json({**facts, "results": [result.to_dict() for result in results]})
        return
    if results:
        _print_results(results)
    rate, regret, share = facts["mean_win_rate"], facts["mean_regret"], facts["learnable_share"]
    words = [f"{facts['environments']} environments", f"{facts['episodes']} episodes", f"{facts['tokens']} tokens"]
    words += [f"mean win rate {rate:.2f}", f"learnable share {share:.2f}"] if rate is not None else []
    words += [f"mean regret {regret:+.2f}"] if regret is not None else []
    words += [f"{facts['model_errors']} episodes without an answer"] if facts["model_errors"] else []
    if before and not results:
        out.print(f"nothing is left to play: {before} environments were done before; `spade stats` has the figures")
        return
    earlier = f"{before} environments done before (`spade stats` has all); now: " if before else ""
    out.print(earlier + " · ".join(words))
    errors = [arm.model_error for result in results for arm in (result.plain, result.hinted) if arm.model_error]
    if errors:
        out.print(f"the model's last error: {shown(errors[-1], 300)}")
