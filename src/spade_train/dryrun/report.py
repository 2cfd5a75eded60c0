"""The report of a dry run."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from spade_envs.play import PlayConfig
from spade_train.arithmetic import ShapeError, estimate, run_of
from spade_train.config import ConfigError, SpadeConfig, load_recipe
from spade_train.dryrun import checks, prompts
from spade_train.dryrun.checks import Check
from spade_train.opening import play_config
from spade_train.recipe_files import read_recipe, recipe_chain

_GIB = 1 << 30
_CONTEXT = 32_768
_DERIVED = ("num_generations", "gradient_accumulation_steps", "steps_per_generation", "memory", "output_dir")


@dataclass(slots=True)
class DryRun:
    """What a run would do, and whether it could."""

    recipe: list[str]  # the recipe and those that it builds on
    changed: dict[str, Any]  # settings that differ from their defaults
    settings: dict[str, Any]  # all
    sizes: dict[str, int]  # of one cycle on one rank
    tokens: dict[str, int]  # most that one cycle on one rank can sample, and the longest row
    memory: list[dict[str, Any]] = field(default_factory=list)  # of one GPU, in GiB; empty without the model's shape
    memory_note: str = ""
    prompts: list[prompts.Prompt] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether everything is there."""
        return all(check.ok for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, JSON-safe."""
        values = {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self)}
        values["checks"] = [check._asdict() for check in self.checks]
        values["prompts"] = [prompt._asdict() for prompt in self.prompts]
        return {"ok": self.ok, **values}


def load_anywhere(path: str | Path, **overrides: Any) -> tuple[SpadeConfig, bool]:
    """Read a recipe even where its GPU is not; returns the configuration and whether that was so.

    Raises:
        ConfigError: see :func:`load_recipe`.
    """
    import torch

    wanted = read_recipe(path) | overrides
    mps = torch.backends.mps.is_available()
    missing = not (wanted.get("use_cpu") or torch.cuda.is_available() or mps)
    if missing:
        overrides = {**overrides, "use_cpu": True}
    return load_recipe(path, **overrides), missing


def dry_run(
    path: str | Path, *, gpus: int = 0, gpu_gib: float = 80.0, resume: bool = False, **overrides: Any
) -> DryRun:
    """Resolve a recipe, render its first prompts, count, and check what it needs. Nothing is trained or written.

    Args:
        path: the recipe.
        gpus: GPUs that train, for the estimate; 0 takes the launcher's processes, or as many as vLLM in the process
            divides the model over. Weights are taken as sharded.
        gpu_gib: memory of one GPU, for the estimate.
        resume: whether the run would go on with what ``output_dir`` holds.
        overrides: values that replace those of the recipe.

    Raises:
        ConfigError: if the recipe itself is wrong.
    """
    config, forced_cpu = load_anywhere(path, **overrides)
    settings = plain(config)
    named = {*read_recipe(path), *overrides} - ({"use_cpu"} if forced_cpu else set())
    report = DryRun(
        recipe=[str(file) for file in recipe_chain(path)],
        changed={name: settings[name] for name in settings if name in named or name in _DERIVED},
        settings=settings,
        sizes=_sizes(config),
        tokens={},
    )
    found = report.checks
    found.append(checks.check_accelerator(config, forced_cpu=forced_cpu))
    model, folder = checks.check_model(config.model)
    template, tokens = prompts.check_template(config, folder)
    prompt_check, prompt_set = prompts.check_prompts(config)
    found += [check for check in (model, template, prompt_check) if check is not None]
    sandbox = checks.check_sandbox(config)
    pool = None
    if config.mode == "fixed_pool":
        pool_check, pool = prompts.check_pool(config)
        found.append(pool_check)
    if prompt_set is not None:
        context = config.context_tokens or _context(folder)
        if config.mode == "self_play":
            corpus, messages = prompts.designer_prompt(config, prompt_set)
            found.append(corpus)
            if messages is not None:
                report.prompts.append(prompts.counted("designer", messages, tokens))
        try:
            play = play_config(config, prompt_set, context)
        except ConfigError as error:
            found.append(Check("budgets", False, str(error), "lower turn_tokens or raise context_tokens"))
        else:
            design = config.design_tokens or prompt_set.designer_sampling.max_tokens
            hint = 0 if prompt_set.own_hint else prompt_set.hint_sampling.max_tokens
            report.tokens = _tokens(config, play, design, hint)
            if sandbox.ok and (pool is not None or config.mode == "self_play"):
                shown = prompts.agent_prompts(config, play, pool)
                report.prompts += [prompts.counted(role, messages, tokens) for role, messages in shown]
    found.append(sandbox)
    found.append(checks.check_output(config, resume=resume))
    if config.heldout and not config.heldout.startswith("builtin:"):
        exists = Path(config.heldout).is_file()
        found.append(Check("heldout", exists, config.heldout, "give a JSONL file of programs, or builtin:nano"))
    found += [*checks.check_packages(config), *checks.check_server(config), *checks.check_author(config)]
    _estimate(report, config, folder, gpus or _gpus(config), gpu_gib, on_cpu=config.use_cpu and not forced_cpu)
    return report


def plain(config: SpadeConfig) -> dict[str, Any]:
    """Return the fields of a configuration whose values YAML can say."""
    values = {name: getattr(config, name) for name in SpadeConfig.__dataclass_fields__}
    values = {name: value.value if isinstance(value, Enum) else value for name, value in values.items()}
    return {name: value for name, value in values.items() if _sayable(value)}


def _sayable(value: Any) -> bool:
    if isinstance(value, list | dict):
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            return False
        return True
    return isinstance(value, str | int | float | None)


def _sizes(config: SpadeConfig) -> dict[str, int]:
    slots = int(config.num_generations or 0)
    return {
        "ranks": int(config.world_size),
        "programs": config.written,
        "environments": config.places,
        "plain_episodes": config.places * config.plays,
        "hinted_episodes": config.places * config.plays if config.hinted else 0,
        "rows": config.rows_needed,
        "slots": slots,
        "unused_slots": slots - config.rows_needed,
        "micro_batches": int(config.gradient_accumulation_steps or 1),
        "cycles": int(config.max_steps),
    }


def _tokens(config: SpadeConfig, play: PlayConfig, design: int, hint: int) -> dict[str, int]:
    """Upper bounds: every program, hint and episode as long as it may be."""
    episodes = config.places * config.plays
    parts = {
        "programs": config.written * design,
        "hints": config.written * config.hints * hint if config.hinted else 0,
        "plain_episodes": episodes * play.episode_tokens,
        "hinted_episodes": episodes * play.episode_tokens if config.hinted else 0,
    }
    return {**parts, "cycle": sum(parts.values()), "longest_row": play.context_tokens}


def _context(folder: Path | None) -> int:
    if folder is not None and (folder / "config.json").is_file():
        values = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        values = values.get("text_config", values)
        return int(values.get("max_position_embeddings") or _CONTEXT)
    return _CONTEXT


def _gpus(config: SpadeConfig) -> int:
    colocated = config.use_vllm and config.vllm_mode == "colocate"
    return max(int(config.world_size), int(config.vllm_tensor_parallel_size) if colocated else 1)


def _estimate(
    report: DryRun, config: SpadeConfig, folder: Path | None, gpus: int, gpu_gib: float, *, on_cpu: bool
) -> None:
    from spade_train.arithmetic import read_config
    from spade_train.arithmetic.remedies import remedies

    try:
        shape = read_config(folder if folder is not None else config.model)
        run = run_of(config, shape, gpus=gpus, gpu_gib=gpu_gib)
        if gpus > 1 and run.sharding == "none":  # no launcher has said how
            run = dataclasses.replace(run, sharding="fsdp2")
        table = estimate(shape, run)
    except (ShapeError, OSError, KeyError) as error:
        report.memory_note = f"no estimate: {error}"
        return
    report.memory = [
        {"part": line.name, "phase": line.phase, "gib": round(line.bytes / _GIB, 2)} for line in table.lines
    ]
    if on_cpu:
        report.memory_note = f"peak {table.peak / _GIB:.1f} GiB in each of {gpus} process(es), beside the libraries'"
        return
    verdict = "fits into" if table.fits else "does not fit into"
    report.memory_note = f"peak {table.peak / _GIB:.1f} GiB on each of {gpus} GPU(s), {verdict} {gpu_gib:g}"
    found = [one.setting for one in remedies(shape, run)]
    advice = [f"to fit{', one of' * (len(found) > 1)}: {'; '.join(found)}"] if found else []
    report.memory_note = "; ".join([report.memory_note, *table.notes, *advice])
