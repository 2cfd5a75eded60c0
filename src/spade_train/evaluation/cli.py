"""``spade eval``: benchmarks, comparisons of two results, tables and curves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from spade_envs.cli.console import IsolationOption, JsonOption, check_isolation, err, out, print_json, progress, shown

app = typer.Typer(
    name="eval",
    help="Held-out benchmarks: score a model, an adapter or an endpoint; compare two results; print tables.",
    invoke_without_command=True,
    no_args_is_help=True,
)
OutputOption = Annotated[Path, typer.Option("--output", "-o", help="Folder of all evaluations, and their cache.")]


@app.callback()
def evaluate_command(
    context: typer.Context,
    model: Annotated[str | None, typer.Option("--model", help="nano, smollm2, hf:…, vllm:… or openai:…")] = None,
    suite: Annotated[
        list[str] | None,
        typer.Option(
            "--suite",
            "-s",
            help="reasoning-gym, aime-2025, aime-2026, gpqa-diamond, livecodebench-v6, bfcl-v4, acebench, tau2-bench, "
            "memory:DIR, pool:PATH, gymnasium:ID; may be repeated.",
        ),
    ] = None,
    adapter: Annotated[Path | None, typer.Option(help="Folder of a LoRA adapter to put on the model.")] = None,
    label: Annotated[str, typer.Option(help="The model's name in tables.")] = "",
    base_url: Annotated[str | None, typer.Option(help="Endpoint of an openai:… model.")] = None,
    output: OutputOption = Path("runs/eval"),
    limit: Annotated[int, typer.Option(min=0, help="Only so many questions: a smoke run, marked as one.")] = 0,
    samples: Annotated[int | None, typer.Option(min=1, help="Answers to each question, not the protocol's.")] = None,
    temperature: Annotated[float | None, typer.Option(min=0, help="Instead of the protocol's.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Of one reply, instead of the protocol's.")] = None,
    seed: Annotated[int, typer.Option(help="Of sampling.")] = 0,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests under way at an endpoint.")] = 16,
    batch: Annotated[int, typer.Option(min=1, help="Questions at once, for a model in this process.")] = 16,
    data: Annotated[
        list[str] | None, typer.Option("--data", help="SUITE=FILE: questions from a local file; see docs/evaluate.md.")
    ] = None,
    prompts: Annotated[
        str | None, typer.Option(help="Prompt set for environments. Default: by model and kind.")
    ] = None,
    prices: Annotated[str | None, typer.Option(help="Of a million tokens, prompt and completion: 0.15,0.60.")] = None,
    device: Annotated[str | None, typer.Option(help="Of a model in this process: cpu, cuda, …")] = None,
    dtype: Annotated[str | None, typer.Option(help="Of its weights: float32, bfloat16, …")] = None,
    acebench_dir: Annotated[Path | None, typer.Option(help="Checkout of ACEBench.")] = None,
    tau2_dir: Annotated[Path | None, typer.Option(help="Checkout of tau2-bench.")] = None,
    user_model: Annotated[
        str | None,
        typer.Option(
            help="Who plays the user in acebench and tau2-bench (by default gpt-4o and gpt-4.1); 'self': the model "
            "under test."
        ),
    ] = None,
    user_base_url: Annotated[str | None, typer.Option(help="Endpoint of the user's model.")] = None,
    published: Annotated[bool, typer.Option(help="Show published figures under ours, marked as such.")] = True,
    format_: Annotated[str, typer.Option("--format", help="Of the table: markdown or latex.")] = "markdown",
    isolation: IsolationOption = "full",
    as_json: JsonOption = False,
) -> None:
    """Score a model on benchmarks; what was answered before is not asked again.

    Exit code 1 if some answers never came (they count as 0; the same command asks for them again).

    Example: `spade eval --model smollm2 --suite reasoning-gym --limit 5`
    """
    if context.invoked_subcommand is not None:
        return
    # torch's threads wait for each other by spinning, which on a busy machine takes the time from those waited for:
    # on two busy cores more than 40 s for 12 tokens, 4 s when they sleep. It is read when torch is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from spade_envs.models.usage import Prices
    from spade_train.evaluation.catalogue import SuiteOptions, check_suite, is_external, make_suite
    from spade_train.evaluation.evaluate import evaluate
    from spade_train.evaluation.external.run import ExternalOptions, run_external
    from spade_train.evaluation.identity import model_identity
    from spade_train.evaluation.runner import RunSettings

    if model is None or not suite:
        raise ValueError("expected --model and at least one --suite; `spade eval --help` lists them")
    _check_format(format_)
    for name in suite:
        check_suite(name)
    options = SuiteOptions(
        data=_files(data or []),
        prompts=prompts,
        isolation=check_isolation(isolation),
        samples=samples,
        temperature=temperature,
        max_tokens=max_tokens,
    )
    identity = model_identity(model, str(adapter) if adapter else None, base_url)
    name_in_tables = label or identity.split("@")[0]
    settings = RunSettings(concurrency, batch, seed)
    costs = Prices.parse(prices) if prices else None
    results, asked = [], 0
    with ExitStack() as stack:
        loaded = _Model(model, adapter, base_url, device, dtype, batch, concurrency)
        stack.callback(loaded.close)
        for name in suite:
            with _progress(name) as notice:
                if is_external(name):
                    external = ExternalOptions(
                        *(model, adapter, base_url, device, dtype, batch, limit, temperature, concurrency),
                        *(acebench_dir, tau2_dir, user_model, user_base_url, max_tokens, seed, samples),
                    )
                    result, folder, new = run_external(name, external, identity, output, name_in_tables, costs, notice)
                else:
                    made = make_suite(name, options)
                    stack.callback(made.close)
                    result, folder, new = evaluate(
                        *(made, loaded.load, identity, output),
                        label=name_in_tables,
                        limit=limit,
                        settings=settings,
                        prices=costs,
                        as_published=options.as_published,
                        notice=notice,
                    )
            asked += new
            results.append(result)
            if not as_json:
                words = "from the cache" if not new else f"{new} answers asked for"
                err.print(f"{name}: {words} · {shown(str(folder))}")
    _print(results, published, format_, as_json)
    if any(result.errors for result in results):
        raise typer.Exit(1)


@app.command("compare")
def compare(
    first: Annotated[Path, typer.Argument(help="Folder (or result.json) of a result.")],
    second: Annotated[Path, typer.Argument(help="Folder (or result.json) of another one of the same suite.")],
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Compare two results question by question: McNemar's exact test, or the paired bootstrap.

    Example: `spade eval compare runs/eval/base/reasoning-gym-… runs/eval/trained/reasoning-gym-…`
    """
    from spade_train.evaluation.compare import compare_results, comparison_dict
    from spade_train.evaluation.results import Result

    one, two = Result.load(first), Result.load(second)
    facts = comparison_dict(one, two, compare_results(one, two, seed))
    if as_json:
        print_json(facts)
    else:
        out.print(shown(facts["verdict"]))


@app.command("table")
def table(
    folders: Annotated[list[Path], typer.Argument(help="Folders of results, or a folder of such folders.")],
    published: Annotated[bool, typer.Option(help="Show published figures under ours, marked as such.")] = True,
    format_: Annotated[str, typer.Option("--format", help="markdown or latex.")] = "markdown",
    as_json: JsonOption = False,
) -> None:
    """Print one table of many results: a row for each model, a column for each figure.

    Example: `spade eval table runs/eval --format latex`
    """
    from spade_train.evaluation.results import RESULT_FILE, Result

    _check_format(format_)
    found = [path for folder in folders for path in sorted(folder.rglob(RESULT_FILE)) or [folder]]
    _print([Result.load(path) for path in found], published, format_, as_json)


@app.command("questions")
def questions(
    suite: Annotated[list[str], typer.Argument(help="Suites whose questions to write.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="JSON lines with id and text.")] = Path(
        "questions.jsonl"
    ),
    data: Annotated[list[str] | None, typer.Option("--data", help="SUITE=FILE: questions from a local file.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="Of each suite; 0: all.")] = 0,
) -> None:
    """Write benchmark questions to a file, for `spade generate --exclude-questions` and the setting `contamination`.

    Example: `spade eval questions aime-2026 gpqa-diamond -o questions.jsonl`
    """
    import json

    from spade_train.evaluation.catalogue import SuiteOptions
    from spade_train.evaluation.contamination import suite_questions

    found = suite_questions(suite, SuiteOptions(data=_files(data or [])), limit)
    lines = (json.dumps({"id": key, "text": text}) + "\n" for key, text in found.items())
    output.write_text("".join(lines), encoding="utf-8")
    out.print(f"{len(found)} questions · {shown(str(output))}")


@app.command("curve")
def curve(
    runs: Annotated[list[Path], typer.Argument(help="Run folders of training with evaluations on the way.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="PNG, SVG or PDF.")] = Path("improvement.svg"),
    metric: Annotated[str, typer.Option(help="Name of the metric in metrics.jsonl.")] = "heldout/success",
    as_json: JsonOption = False,
) -> None:
    """Draw the relative improvement over the base by training step, from evaluations during training.

    Example: `spade eval curve runs/spade runs/fixed --output improvement.svg`
    """
    from spade_train.evaluation.curve import draw, improvements

    series = {folder.name: improvements(folder, metric) for folder in runs}
    if as_json:
        print_json(series)
        return
    draw(series, output, metric)
    out.print(shown(str(output)))


class _Model:
    """The model under test, loaded when it is first asked: a result from the cache needs none."""

    def __init__(
        self, spec: str, adapter: Path | None, base_url: str | None, device: str | None, dtype: str | None,
        batch: int, concurrency: int,
    ) -> None:  # fmt: skip
        from spade_envs.models import check_spec

        check_spec(spec)
        self._spec = spec
        self._options: dict[str, Any] = {
            "adapter": str(adapter) if adapter else None,
            "base_url": base_url,
            "device": device,
            "dtype": dtype,
            "batch_size": batch,
            "concurrency": concurrency,
        }
        self._model: Any = None

    def load(self) -> Any:
        if self._model is None:
            from spade_envs.models import load_model

            self._model = load_model(self._spec, **self._options)
        return self._model

    def close(self) -> None:
        if self._model is not None:
            self._model.close()


def _files(pairs: list[str]) -> dict[str, Path]:
    files = {}
    for pair in pairs:
        name, equals, path = pair.partition("=")
        if not equals or not path:
            raise ValueError(f"--data takes SUITE=FILE, got {pair!r}")
        files[name] = Path(path)
    return files


def _check_format(name: str) -> None:
    if name not in ("markdown", "latex"):
        raise ValueError(f"--format must be markdown or latex, got {name!r}")


@contextmanager
def _progress(title: str) -> Iterator[Any]:
    """A progress display that learns its length with the first notice."""
    with ExitStack() as stack:
        state: dict[str, Any] = {}

        def notice(done: int, total: int, words: str) -> None:
            if "advance" not in state:
                state["advance"] = stack.enter_context(progress(title, total))
            state["advance"](done, words)

        yield notice


def _print(results: list[Any], published: bool, format_: str, as_json: bool) -> None:
    from spade_train.evaluation.tables import ResultTable

    made = ResultTable(results, published)
    if as_json:
        print_json(made.to_dict())
    else:
        typer.echo(made.latex() if format_ == "latex" else made.markdown())
