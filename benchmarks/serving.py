"""``spade serve``: dialogues answered over slots that keep what was read, against batches of ``generate``.

Each dialogue sends its whole history with every request, as chat clients do: a long system prompt (tools, rules), then
a user's message for each turn. All dialogues run at the same time, greedily, on the same model; the table gives the
ratio of the times and the tokens of prompts that were read.

Usage: ``python benchmarks/serving.py [--model nano|smollm2] [--dialogues 4] [--turns 4] [--system 1500] [--reply 24]``
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from spade_envs.models import load_model
from spade_envs.models.base import Message, Sampling
from spade_envs.models.transformers import TransformersModel
from spade_train.serving.batcher import Answers, Batcher, Job
from spade_train.serving.slot_batcher import SlotBatcher


def hold(answers: Answers, dialogue: int, system: int, turns: int, reply: int) -> tuple[list[str], int]:
    """Hold one dialogue; returns the replies and how many tokens its prompts had."""
    rules = " ".join(
        f"Rule {number}: item {(dialogue * 7919 + number) % 997} comes first." for number in range(system // 9)
    )
    messages: list[Message] = [{"role": "system", "content": rules}]
    replies, prompts = [], 0
    for turn in range(turns):
        messages.append({"role": "user", "content": f"Which item comes first in step {turn}?"})
        job = Job(list(messages), [], Sampling(max_tokens=reply, temperature=0.0))
        completion = answers.submit(job).result()
        if completion.error:
            raise SystemExit(f"{completion.error}; ask for a shorter --system")
        replies.append(completion.text)
        prompts += completion.prompt_tokens
        messages.append({"role": "assistant", "content": completion.text})
    return replies, prompts


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="smollm2")
    for name, default in (("dialogues", 4), ("turns", 4), ("system", 1500), ("reply", 24)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    model = load_model(options.model)
    assert isinstance(model, TransformersModel)
    rows, texts = [], []
    for name, kind in (("slots", SlotBatcher), ("batches of generate", Batcher)):
        answers = kind(model, 16)
        hold(answers, 10_000, 90, 1, 2)  # the first call of a process compiles and allocates
        before = answers.tokens_read if isinstance(answers, SlotBatcher) else 0
        started = time.perf_counter()
        with ThreadPoolExecutor(options.dialogues) as threads:
            one = partial(hold, answers, system=options.system, turns=options.turns, reply=options.reply)
            held = list(threads.map(one, range(options.dialogues)))
        seconds = time.perf_counter() - started
        prompts = sum(tokens for _, tokens in held)
        read = answers.tokens_read - before if isinstance(answers, SlotBatcher) else prompts
        rows.append((name, seconds, prompts, read))
        texts.append([replies for replies, _ in held])
        answers.close()
    print(f"{options.dialogues} dialogues of {options.turns} turns, {options.model}")
    print("| answered by | time | prompt tokens | of them read |\n|---|---|---|---|")
    for name, seconds, prompts, read in rows:
        print(f"| {name} | {seconds / rows[-1][1]:.2f} | {prompts} | {read} |")
    print("same replies" if texts[0] == texts[1] else "the replies differ")


if __name__ == "__main__":
    main()
