"""``spade generate``: documents in, validated and registered environments out."""

from __future__ import annotations

import dataclasses
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spade_envs.cli.console import (
    IsolationOption,
    JsonOption,
    MemoryOption,
    check_isolation,
    err,
    out,
    print_json,
    progress,
    shown,
)

if TYPE_CHECKING:
    from spade_envs.designer.attempt import Attempt, DesignPrompt
    from spade_envs.designer.generate import GenerateSummary


def _print_prompt(prompt: DesignPrompt) -> None:
    for message in prompt.messages:
        out.print(f"[bold cyan]{message['role']}[/]")
        out.print(shown(message["content"]))


def _print_summary(summary: GenerateSummary, seconds: float, folder: Path, log: Path) -> None:
    out.print(
        f"{summary.admitted} environments of {summary.attempts} attempts in {seconds:.0f} s, "
        f"{summary.completion_tokens} tokens written · memory {shown(str(folder))}"
    )
    if summary.judged:
        out.print(
            f"  valid    {summary.first_validity:.2f} at the first reply, {summary.final_validity:.2f} in the end "
            f"({summary.repaired} mended in {summary.repair_turns} repairs)"
        )
    for cause, count in summary.causes.most_common():
        if cause not in ("admitted", "surplus"):
            out.print(f"  refused  {shown(cause):24} {count}")
    out.print(f"  attempts {shown(str(log))}")


def generate(
    corpus: Annotated[
        str | None,
        typer.Option(
            help="Documents: JSONL, Parquet, a folder of texts, builtin:nano. Default with nano: builtin:nano."
        ),
    ] = None,
    model: Annotated[
        str, typer.Option(help="nano, hf:FOLDER_OR_HUB_ID, openai:MODEL (key from OPENAI_API_KEY).")
    ] = "nano",
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="Environments to have in the end.")] = 100,
    memory: MemoryOption = None,
    prompts: Annotated[
        str | None,
        typer.Option(help="Prompt set: nano, games, tool_use or a folder. Default: nano for nano, else games."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Fixes documents, exemplars and sampling.")] = 0,
    run: Annotated[str | None, typer.Option(help="Name of the run in the memory. Default: generate-SEED.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that was killed, to the same set.")
    ] = False,
    round_size: Annotated[int, typer.Option(min=1, help="Attempts of a round; also the batch for the model.")] = 32,
    max_attempts: Annotated[int | None, typer.Option(min=1, help="Give up after so many replies.")] = None,
    repairs: Annotated[
        int | None,
        typer.Option(min=0, help="Times a refused program goes back with the reasons. Default: 1; 0 with nano."),
    ] = None,
    max_turns: Annotated[
        int | None, typer.Option(min=0, help="Turns of an environment; 0: its own choice. Default: the prompt set's.")
    ] = None,
    document_tokens: Annotated[
        int | None, typer.Option(min=1, help="Longest document in a prompt. Default: the prompt set's.")
    ] = None,
    hint_model: Annotated[
        str | None, typer.Option(help="Writes the hints, named like --model. Default: the same model.")
    ] = None,
    hint_base_url: Annotated[
        str | None, typer.Option(help="Endpoint of an openai:… hint model. Default: --base-url.")
    ] = None,
    temperature: Annotated[float | None, typer.Option(min=0, help="Default: the prompt set's.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Longest reply. Default: the prompt set's.")] = None,
    field: Annotated[
        str | None, typer.Option(help="Column or key that holds the text. Default: text, orig_doc.")
    ] = None,
    base_url: Annotated[str | None, typer.Option(help="Endpoint of an openai:… model.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests at once, for an endpoint.")] = 16,
    licence: Annotated[str, typer.Option(help="Stored in the records.")] = "",
    log: Annotated[
        Path | None, typer.Option(help="JSON lines of every attempt. Default: attempts.jsonl in the memory.")
    ] = None,
    copy_prompts: Annotated[
        Path | None, typer.Option(help="Copy the prompt set to this new folder, to edit it for --prompts, and stop.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the first prompt and stop; no model is loaded.")
    ] = False,
    isolation: IsolationOption = "full",
    as_json: JsonOption = False,
) -> None:
    """Let a model write environments from documents; validate, store and register each.

    Exactly `-n` environments are in the memory's run at the end. A killed run goes on with `--resume`.

    Example: `spade generate --model nano -n 20 --memory m --seed 1`
    """
    from spade_envs.corpus import Corpus
    from spade_envs.designer import Designer, PromptSet, copy_prompt_set, cut_for, preview
    from spade_envs.designer.generate import generate as run_generation
    from spade_envs.memory import Memory, default_home
    from spade_envs.models import load_model
    from spade_envs.sandbox import Sandbox

    prompt_set = PromptSet.load(prompts or ("nano" if model == "nano" else "games"))
    if copy_prompts is not None:
        copied = copy_prompt_set(prompts or ("nano" if model == "nano" else "games"), copy_prompts)
        out.print(f"prompts copied to {shown(str(copied))}; edit them and pass --prompts {shown(str(copy_prompts))}")
        return
    if document_tokens is not None:
        prompt_set = dataclasses.replace(prompt_set, document_tokens=document_tokens)
    if corpus is None and prompt_set.name != "nano":
        raise ValueError("--corpus is needed: a JSONL or Parquet file, or a folder of .txt and .md files")
    documents = Corpus.open(corpus or "builtin:nano", field=field)
    sampling = prompt_set.designer_sampling
    if temperature is not None:
        sampling = dataclasses.replace(sampling, temperature=temperature)
    if max_tokens is not None:
        sampling = dataclasses.replace(sampling, max_tokens=max_tokens)
    folder = memory or default_home()
    log = log or folder / "attempts.jsonl"
    with Sandbox(minimum_isolation=check_isolation(isolation)) as sandbox:
        if dry_run:  # writes nothing, not even an empty memory
            with (
                Memory.open(folder, read_only=True) if (folder / "memory.sqlite").is_file() else nullcontext() as known
            ):
                designer = Designer(
                    prompt_set, known, sandbox, generator=model, max_turns=max_turns, licence=licence
                )  # fmt: skip
                _print_prompt(preview(documents, designer, seed=seed))
            return
    with Sandbox(minimum_isolation=check_isolation(isolation)) as sandbox, Memory.open(folder) as store:
        chat = load_model(model, base_url=base_url, concurrency=concurrency)
        hinter = None
        if hint_model is not None and not prompt_set.own_hint:
            other = (hint_base_url or base_url) if hint_model.startswith("openai:") else None
            hinter = load_model(hint_model, base_url=other, concurrency=concurrency)
        designer = Designer(
            prompt_set, store, sandbox, generator=model, max_turns=max_turns, licence=licence, cut=cut_for(chat)
        )  # fmt: skip
        name = run or f"generate-{seed}"
        admitted = store.progress(name)[1].get("admitted", 0) if resume else 0
        attempts, start = 0, time.monotonic()
        try:
            with progress("generate", count) as advance:

                def note(attempt: Attempt) -> None:
                    nonlocal admitted, attempts
                    attempts += 1
                    admitted += attempt.status == "admitted"
                    advance(admitted, f"{attempts} attempts, last: {attempt.cause}")

                summary = run_generation(
                    chat,
                    documents,
                    designer,
                    store,
                    count=count,
                    seed=seed,
                    run=name,
                    round_size=round_size,
                    sampling=sampling,
                    max_attempts=max_attempts,
                    repairs=prompt_set.repairs if repairs is None else repairs,
                    hint_model=hinter,
                    log=log,
                    resume=resume,
                    on_attempt=note,
                )
        finally:
            chat.close()
            if hinter is not None:
                hinter.close()
        ids = [record.env_id for record in store.records(run=name)]
    for reason, number in documents.skipped.items():
        err.print(f"[yellow]corpus: {number} rows skipped: {shown(reason)}[/]")
    if as_json:
        print_json({**summary.to_dict(), "memory": str(folder), "log": str(log), "env_ids": ids})
    else:
        _print_summary(summary, time.monotonic() - start, folder, log)
