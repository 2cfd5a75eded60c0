"""``spade generate``: documents in, validated and registered environments out."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spade_envs.cli.cluster import (
    RayAddressOption,
    RayGpusOption,
    RayOption,
    RayWorkersOption,
    model_on_cluster,
    validators,
)
from spade_envs.cli.console import (
    AllowOption,
    IsolationOption,
    JsonOption,
    MemoryOption,
    check_isolation,
    err,
    opt_in,
    out,
    print_json,
    shown,
)
from spade_envs.cli.generate_display import EventLog, RunDisplay

if TYPE_CHECKING:
    from spade_envs.designer.attempt import DesignPrompt
    from spade_envs.designer.generate import GenerateSummary
    from spade_envs.models.base import ChatModel


def _print_prompt(prompt: DesignPrompt) -> None:
    for message in prompt.messages:
        out.print(f"[bold cyan]{message['role']}[/]")
        out.print(shown(message["content"]))


def _print_summary(summary: GenerateSummary, seconds: float, folder: Path, log: Path) -> None:
    out.print(
        f"{summary.admitted} environments of {summary.attempts} attempts in {seconds:.0f} s, "
        f"{summary.completion_tokens} tokens written"
        + (f", cost {summary.cost:.4f}" if summary.cost else "")
        + f" · memory {shown(str(folder))}"
    )
    if summary.judged:
        out.print(
            f"  valid    {summary.first_validity:.2f} at the first reply, {summary.final_validity:.2f} in the end "
            f"({summary.repaired} mended in {summary.repair_turns} repairs)"
        )
    for cause, count in summary.causes.most_common():
        if cause != "admitted":
            word = "not used" if cause == "surplus" else "refused "
            out.print(f"  {word} {shown(cause):24} {count}")
    if summary.model_error:
        out.print(f"  the model's last error: {shown(summary.model_error, 300)}")
    out.print(f"  attempts {shown(str(log))}")


def generate(
    corpus: Annotated[
        str | None,
        typer.Option(
            help="Documents: JSONL, Parquet, a folder of texts, builtin:nano. Default with nano: builtin:nano."
        ),
    ] = None,
    model: Annotated[
        str, typer.Option(help="nano, smollm2, hf:FOLDER_OR_HUB_ID, vllm:…, openai:MODEL (key from OPENAI_API_KEY).")
    ] = "nano",
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="Environments to have in the end.")] = 100,
    memory: MemoryOption = None,
    prompts: Annotated[
        str | None,
        typer.Option(help="Prompt set: nano, small, games, tool_use or a folder. Default: nano for nano, else games."),
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
    concurrency: Annotated[
        int, typer.Option(min=1, help="Most requests at once, for an endpoint; fewer while it refuses for load.")
    ] = 16,
    request_seconds: Annotated[
        float, typer.Option(min=1, help="Longest wait for one reply of an endpoint; a slow server needs more.")
    ] = 300.0,
    prices: Annotated[
        str | None, typer.Option(help="Of a million prompt and completion tokens, e.g. 0.15,0.60, to count the cost.")
    ] = None,
    exclude_questions: Annotated[
        list[Path] | None,
        typer.Option(help="JSONL of benchmark questions (`spade eval questions`): nothing that holds one is used."),
    ] = None,
    ray: RayOption = False,
    ray_address: RayAddressOption = None,
    ray_workers: RayWorkersOption = None,
    ray_gpus: RayGpusOption = 0.0,
    licence: Annotated[str, typer.Option(help="Stored in the records.")] = "",
    allow: AllowOption = None,
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
    from spade_envs.contamination import CleanCorpus, ContaminationGuard, read_questions
    from spade_envs.corpus import Corpus
    from spade_envs.designer import Designer, PromptSet, copy_prompt_set, cut_for, default_prompt_set, preview
    from spade_envs.designer.generate import generate as run_generation
    from spade_envs.memory import Memory, default_home
    from spade_envs.models import check_spec, load_model
    from spade_envs.models.journal import ReplyJournal
    from spade_envs.models.openai import OpenAIModel
    from spade_envs.models.usage import Prices
    from spade_envs.sandbox import Sandbox

    check_spec(model)
    if hint_model is not None:
        check_spec(hint_model)
    prompt_set = PromptSet.load(prompts or default_prompt_set(model))
    if copy_prompts is not None:
        copied = copy_prompt_set(prompts or default_prompt_set(model), copy_prompts)
        out.print(f"prompts copied to {shown(str(copied))}; edit them and pass --prompts {shown(str(copy_prompts))}")
        return
    if document_tokens is not None:
        prompt_set = dataclasses.replace(prompt_set, document_tokens=document_tokens)
    if corpus is None and prompt_set.name != "nano":
        raise ValueError("--corpus is needed: a JSONL or Parquet file, or a folder of .txt and .md files")
    documents: Corpus | CleanCorpus = Corpus.open(corpus or "builtin:nano", field=field)
    guard = ContaminationGuard(read_questions(exclude_questions)) if exclude_questions else None
    if guard is not None:
        documents = CleanCorpus(documents, guard)
    sampling = prompt_set.designer_sampling
    if temperature is not None:
        sampling = dataclasses.replace(sampling, temperature=temperature)
    if max_tokens is not None:
        sampling = dataclasses.replace(sampling, max_tokens=max_tokens)
    folder, modules = memory or default_home(), opt_in(allow)
    log = log or folder / "attempts.jsonl"
    with Sandbox(minimum_isolation=check_isolation(isolation)) as sandbox:
        if dry_run:  # writes nothing, not even an empty memory
            with (
                Memory.open(folder, read_only=True) if (folder / "memory.sqlite").is_file() else nullcontext() as known
            ):
                designer = Designer(
                    prompt_set, known, sandbox, generator=model, max_turns=max_turns, allow=modules, licence=licence
                )  # fmt: skip
                _print_prompt(preview(documents, designer, seed=seed))
            return
    name = run or f"generate-{seed}"
    journal = ReplyJournal(folder / f"replies-{hashlib.sha256(name.encode()).hexdigest()[:12]}.jsonl")
    events = EventLog(folder / "events.jsonl", name)
    priced = Prices.parse(prices) if prices is not None else None
    start = time.monotonic()
    with ExitStack() as stack:
        sandbox = stack.enter_context(Sandbox(minimum_isolation=check_isolation(isolation)))
        store = stack.enter_context(Memory.open(folder))

        def load(spec: str, url: str | None) -> ChatModel:
            """The model that ``spec`` names, here or on the cluster; endpoints are asked from here."""
            if ray and not spec.startswith("openai:"):
                loaded: ChatModel = model_on_cluster(spec, ray_address, ray_workers, ray_gpus)
            else:
                loaded = load_model(
                    spec,
                    base_url=url,
                    concurrency=concurrency,
                    request_seconds=request_seconds,
                    total_seconds=max(900.0, 3 * request_seconds),
                    prices=priced,
                    journal=journal,
                )
            stack.callback(loaded.close)
            return loaded

        chat = load(model, base_url)
        hinter = None
        if hint_model is not None and not prompt_set.own_hint:
            hinter = load(hint_model, (hint_base_url or base_url) if hint_model.startswith("openai:") else None)
        designer = Designer(
            prompt_set, store, sandbox, generator=model, max_turns=max_turns, allow=modules, licence=licence,
            cut=cut_for(chat), refuse=None if guard is None else guard.why,
        )  # fmt: skip
        if ray:
            validator = validators(ray_address, ray_workers, check_isolation(isolation), designer.validation)
            stack.callback(validator.close)
            designer.validator = validator
        usages = [one.usage for one in (chat, hinter) if isinstance(one, OpenAIModel)]
        admitted = store.progress(name)[1].get("admitted", 0) if resume else 0
        display = stack.enter_context(RunDisplay(count, admitted, usages[0] if usages else None))

        def stored(summary: GenerateSummary) -> None:
            journal.clear()
            events.round(summary)

        events.write("start", model=model, corpus=corpus or "builtin:nano", count=count, seed=seed, resume=resume)
        try:
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
                on_attempt=display.note,
                on_round=stored,
                spent=lambda: sum(usage.cost for usage in usages),
            )
        except BaseException as error:
            events.write("stopped", kind=type(error).__name__, reason=str(error))
            raise
        events.write("end", admitted=summary.admitted, attempts=summary.attempts, cost=summary.cost)
        ids = [record.env_id for record in store.records(run=name)]
    for reason, number in documents.skipped.items():
        err.print(f"[yellow]corpus: {number} rows skipped: {shown(reason)}[/]")
    if as_json:
        print_json({**summary.to_dict(), "memory": str(folder), "log": str(log), "env_ids": ids})
    else:
        _print_summary(summary, time.monotonic() - start, folder, log)
