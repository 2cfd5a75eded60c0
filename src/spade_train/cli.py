"""``spade train`` and ``spade quickstart``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from spade_envs.cli.console import JsonOption, err, out, print_json, shown


def _overrides(pairs: list[str]) -> dict[str, Any]:
    """Read ``name=value`` pairs; values are YAML, so numbers, booleans and null come as such.

    Raises:
        ValueError: if a pair has no ``=``, or its value is no YAML.
    """
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"--set takes name=value, got {pair!r}")
        try:
            values[name] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ValueError(f"--set {name}: {value!r} is no YAML; quote it, as in --set '{name}=\"…\"'") from error
    return values


def train(
    config: Annotated[Path, typer.Option("--config", "-c", help="Recipe: a YAML mapping of settings.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Run folder, instead of the recipe's.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the last whole checkpoint, or start if there is none.")
    ] = False,
    changes: Annotated[list[str] | None, typer.Option("--set", help="Replace a setting: name=value.")] = None,
    seed: Annotated[int | None, typer.Option(help="Instead of the recipe's.")] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print settings, sizes, first prompts; check what is needed; train nothing."),
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="--dry-run: all settings, prompts uncut.")] = False,
    gpus: Annotated[
        int,
        typer.Option(
            min=0, help="--dry-run: GPUs that train, for the estimate; 0: as the recipe and the launcher say."
        ),
    ] = 0,
    gpu_gib: Annotated[float, typer.Option(help="--dry-run: memory of one GPU, for the estimate.")] = 80.0,
    as_json: JsonOption = False,
) -> None:
    """Train one policy as designer and agent, by a recipe.

    SIGTERM or Ctrl-C saves at the end of the running cycle and exits with 75: go on with --resume. An early stop
    (stop_on) exits with 1, and so does a dry run that misses something.

    Example: `spade train --config examples/recipes/nano_cpu.yaml --output runs/nano --set max_steps=10`
    """
    from spade_train.config import load_recipe

    overrides = _overrides(changes or [])
    if output is not None:
        overrides["output_dir"] = str(output)
    if seed is not None:
        overrides["seed"] = seed
    if dry_run:
        _dry_run(config, overrides, resume, everything=everything, gpus=gpus, gpu_gib=gpu_gib, as_json=as_json)
        return
    settings = load_recipe(config, **overrides)
    if not err.is_terminal:
        from transformers.utils import logging as transformers_logging

        transformers_logging.disable_progress_bar()

    from spade_train.callbacks import EXIT_RESUME
    from spade_train.display import show_alarms, training_display
    from spade_train.recipe import run

    with training_display(settings.max_steps) as callbacks:
        result = run(settings, resume=resume, callbacks=callbacks if settings.process_index == 0 else ())
    last = result.metrics[-1] if result.metrics else {}
    if as_json:
        alarms = [alarm.to_dict() for alarm in result.alarms]
        facts = {"output": str(result.output_dir), "adapter": str(result.adapter), "steps": result.steps}
        print_json({**facts, "stopped": result.stopped, "alarms": alarms, **last})
    elif settings.process_index == 0:
        show_alarms(result.alarms)
        out.print(f"{result.steps} steps · adapter {shown(str(result.adapter))}")
        if result.stopped:
            err.print(f"stopped: {shown(result.stopped)}" + "; go on with --resume" * result.interrupted)
    if result.stopped:
        sys.exit(EXIT_RESUME if result.interrupted else 1)


def _dry_run(
    config: Path, overrides: dict[str, Any], resume: bool, *, everything: bool, gpus: int, gpu_gib: float, as_json: bool
) -> None:
    from spade_train.dryrun import dry_run
    from spade_train.dryrun.render import lines

    report = dry_run(config, gpus=gpus, gpu_gib=gpu_gib, resume=resume, **overrides)
    if as_json:
        print_json(report.to_dict())
    else:
        for line in lines(report, everything=everything):
            out.print(shown(line))
    raise typer.Exit(0 if report.ok else 1)


def quickstart(
    output: Annotated[Path, typer.Option("--output", "-o", help="Run folder; a number is added if it exists.")] = Path(
        "runs/quickstart"
    ),
    environments: Annotated[int, typer.Option("-n", min=4, help="Environments to generate before training.")] = 40,
    steps: Annotated[int, typer.Option(min=1, help="Training iterations.")] = 40,
    seed: Annotated[int, typer.Option(help="Fixes everything: same seed, same run.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Run the whole loop on the embedded model: CPU, offline, minutes; ends with a report in HTML.

    Example: `spade quickstart --output runs/first --seed 1`
    """
    try:
        from spade_train.quickstart import run_quickstart
    except ImportError as error:
        err.print(f"[bold red]error:[/] {shown(str(error))}. Install the trainer: pip install 'spade-envs[train]'")
        sys.exit(2)
    summary = run_quickstart(output, environments=environments, steps=steps, seed=seed)
    if as_json:
        print_json(summary)
