"""``spade play``: one episode of an environment, by a person, a scripted player or a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spade_envs.cli.console import (
    AllowOption,
    IsolationOption,
    JsonOption,
    MemoryOption,
    ToolsOption,
    check_isolation,
    opt_in,
    out,
    print_json,
    shown,
    tools_mode,
)

if TYPE_CHECKING:
    from spade_envs.episode import Episode
    from spade_envs.sandbox import Program


def _find(target: str, memory: Path | None) -> tuple[str, str, tuple[str, ...], str, int]:
    """Return label, source, opt-in modules, stored hint and turn limit of a file or of a stored environment."""
    path = Path(target)
    if path.is_dir():
        raise ValueError(f"{target} is a folder: expected FILE.py, or the id of an environment in a memory")
    if path.suffix == ".py" or path.is_file():
        if not path.is_file():
            raise ValueError(f"no program {target}: expected FILE.py, or the id of an environment in a memory")
        from spade_envs.validation import collect_sources

        programs = collect_sources([path])
        if len(programs) != 1:
            raise ValueError(f"{target} holds {len(programs)} programs; one can be played at a time")
        return target, programs[0][1], (), "", 0
    from spade_envs.memory import Memory

    with Memory.open(memory, read_only=True) as store:
        record = store.get(target)
    return record.env_id, record.source, record.allow, record.hint, record.max_turns


def _own_hint(program: Program, seed: int, label: str) -> str:
    """Return what the program's own ``hint()`` says at the start of the episode with this seed.

    Raises:
        ValueError: if it says nothing.
    """
    session = program.session()
    session.reset(seed)
    text = session.hint()
    session.close()
    if not text:
        raise ValueError(f"{label} has no hint: none is stored and its program offers no hint()")
    return text


def _print(episode: Episode) -> None:
    """Print what was said and what it earned."""
    rewards = iter(episode.steps)
    for message in episode.messages:
        out.print(f"[bold cyan]{message['role']}[/]")
        out.print(shown(message["content"], 4000))
        if message["role"] == "assistant" and (step := next(rewards, None)) is not None:
            out.print(f"[dim]reward {step.reward:g}[/]")
    if episode.steps and episode.messages[-1]["role"] == "assistant" and episode.steps[-1].observation:
        out.print("[bold cyan]environment[/]")
        out.print(shown(episode.steps[-1].observation, 4000))
    _print_end(episode)


def _print_end(episode: Episode) -> None:
    turns = f"{episode.turns} turn{'' if episode.turns == 1 else 's'}"
    words = f"return {episode.return_:g} · {turns} · {episode.stop}"
    out.print(f"[bold]{words}[/]" + (f" · {shown(episode.error, 300)}" if episode.error else ""))


def play(
    target: Annotated[str, typer.Argument(help="An environment of the memory (id), or a program (FILE.py).")],
    agent: Annotated[
        str,
        typer.Option(
            "--agent", "-a", help="human, random, know-nothing, solution; nano, smollm2, hf:…, vllm:…, openai:…"
        ),
    ] = "human",
    hint: Annotated[bool, typer.Option("--hint", help="Show the hint in the first observation.")] = False,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the episode and of sampling.")] = 0,
    memory: MemoryOption = None,
    prompts: Annotated[
        str | None, typer.Option(help="Prompt set of a model: nano, small, games, tool_use or a folder.")
    ] = None,
    base_url: Annotated[str | None, typer.Option(help="Endpoint of an openai:… model.")] = None,
    temperature: Annotated[float, typer.Option(min=0, help="Sampling temperature of a model.")] = 0.6,
    tools: ToolsOption = "auto",
    allow: AllowOption = None,
    isolation: IsolationOption = "full",
    as_json: JsonOption = False,
) -> None:
    """Play one episode in the sandbox and print its transcript.

    Exit code 1 if the episode was lost to an error of the program or of the model.

    Example: `spade play my_env.py --agent solution --json`
    """
    from spade_envs.designer.prompt_files import default_prompt_set
    from spade_envs.designer.prompts import PromptSet
    from spade_envs.models import check_spec
    from spade_envs.models.base import Sampling
    from spade_envs.play import PlayConfig, PlayTask, StopReason, play_episodes
    from spade_envs.players import PLAYER_NAMES, scripted_player
    from spade_envs.sandbox import ProgramError, Sandbox

    label, source, modules, stored_hint, max_turns = _find(target, memory)
    scripted = agent in PLAYER_NAMES
    if not scripted:
        check_spec(agent, others=PLAYER_NAMES)
    config, sampling = PlayConfig(), Sampling(temperature=temperature, seed=seed)
    if not scripted:
        chosen = PromptSet.load(prompts or default_prompt_set(agent))
        config = PlayConfig(system_prompt=chosen.agent_system, hint_template=chosen.hint_template, **chosen.play)
        sampling = replace(sampling, max_tokens=config.turn_tokens)
    if max_turns:
        config = replace(config, max_turns=max_turns)
    with Sandbox(minimum_isolation=check_isolation(isolation)) as sandbox:
        try:
            program = sandbox.open(source, allow=(*modules, *opt_in(allow)))
        except ProgramError as error:
            raise ValueError(f"{label} cannot be loaded: {error}") from error
        text = stored_hint or (_own_hint(program, seed, label) if hint else "")
        task = PlayTask(program, seed, hint=text if hint else None, key=label)
        if scripted:
            player = scripted_player(agent, sandbox=sandbox, seed=seed)
            (episode,) = play_episodes(player, [task], sandbox, config)
        else:
            from spade_envs.models import load_model

            model = load_model(agent, base_url=base_url)
            config = replace(config, tools=tools_mode(tools, model))
            try:
                (episode,) = play_episodes(model, [task], sandbox, config, sampling)
            finally:
                model.close()
    if as_json:
        print_json({"environment": label, "agent": agent, **episode.to_dict()})
    else:
        if agent != "human":
            _print(episode)
        else:
            if episode.stop is StopReason.MODEL_ERROR:
                out.print()  # the input ended: the last observation was shown with the prompt
            elif episode.steps:
                out.print(shown(episode.steps[-1].observation, 4000))
            _print_end(episode)
    raise typer.Exit(1 if episode.stop in (StopReason.PROGRAM_ERROR, StopReason.MODEL_ERROR) else 0)
