"""Turn a folder of .txt and .md files into environments, and play one.

    python examples/generate_from_folder.py notes/ --model openai:my-model --base-url http://localhost:8000/v1 -n 5

Without ``--model`` the embedded nano model writes its small exercises about whatever words of the texts it knows.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gymnasium

import spade_envs
from spade_envs.corpus import Corpus
from spade_envs.designer import Attempt, Designer, PromptSet, generate
from spade_envs.memory import Memory
from spade_envs.models import load_model
from spade_envs.sandbox import Sandbox


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a folder of texts, or a .jsonl, .jsonl.gz or .parquet file")
    parser.add_argument("--model", default="nano", help="nano, hf:<directory or hub id>, openai:<model>")
    parser.add_argument("--base-url", help="endpoint of an openai: model; its key is read from OPENAI_API_KEY")
    parser.add_argument("--memory", type=Path, default=Path("runs/memory"), help="where the environments go")
    parser.add_argument("-n", type=int, default=5, help="how many environments to make")
    args = parser.parse_args()

    def show(attempt: Attempt) -> None:
        print(f"{attempt.index:4} {attempt.status:10} {attempt.document_id:30} {attempt.reason[:70]}")

    prompts = PromptSet.load("nano" if args.model == "nano" else "games")
    model = load_model(args.model, base_url=args.base_url)
    with Memory.open(args.memory) as memory, Sandbox() as sandbox:
        designer = Designer(prompts, memory, sandbox, generator=model.name)
        summary = generate(
            model, Corpus.open(args.folder), designer, memory,
            count=args.n, run=f"folder-{args.folder.name}", resume=True, log=args.memory / "attempts.jsonl",
            on_attempt=show,
        )  # fmt: skip
        print(f"{summary.admitted} environments from {summary.attempts} attempts: {dict(summary.causes)}")
        print(f"memory: {args.memory}")
        spade_envs.register(memory)
        record = memory.records(newest_first=True, limit=1)[0]
    env = gymnasium.make(record.env_id)
    observation, _ = env.reset(seed=1)
    print(f"\n{record.env_id}\n{observation}")
    env.close()


if __name__ == "__main__":
    main()
