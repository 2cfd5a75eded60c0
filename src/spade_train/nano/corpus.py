"""The small documents that ground the nano designer: short texts with animals and one action.

``python -m spade_train.nano.corpus`` writes ``spade_envs/data/nano_corpus.jsonl``. The texts are composed from
sentence patterns and a seed; a text names four to six animals and, mostly, one word that is also an operation.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import spade_envs
from spade_envs.corpus import Document
from spade_train.nano.grammar import DESIGN_WORDS, TOPICS

CORPUS_FILE = Path(spade_envs.__file__).parent / "data" / "nano_corpus.jsonl"
COUNT = 320

_SCENES = (
    "At dawn {animals} came down to the water.",
    "{animals} wait at the gate of the farm.",
    "The keeper counts {animals} every evening.",
    "A painter drew {animals} on one long wall.",
    "In the old tale {animals} share a boat.",
    "{animals} were seen near the mill last week.",
    "The children made masks of {animals} for the fair.",
    "On the northern shore live {animals}, and they rarely meet.",
)

_ACTIONS = {
    "reverse": ("When the bell rings they reverse their order.", "The way home is the same path in reverse."),
    "sort": ("The clerk must sort their names before noon.", "To find them quickly, sort the cards."),
    "rotate": ("Each day the places rotate by a few.", "They rotate, so that the first joins the end."),
    "swap": ("The first and the last agree to swap seats.", "Two of them swap their shelters."),
    "drop": ("The weakest will drop out at once.", "Heavy rain makes the keeper drop the first visit."),
    "skip": ("The census takers skip every other nest.", "They skip a stone, then step on the next."),
    "add": ("The cook will add a fixed measure for each.", "To every share add the same handful of grain."),
    "double": ("In spring their numbers double.", "The farmer promised to double each ration."),
    "mirror": ("The pond is a mirror, and high becomes low.", "Seen in the mirror, the scale runs backwards."),
    "cumulate": ("Small debts cumulate from day to day.", "The footprints cumulate along the path."),
    "total": ("Only the total of their weights matters.", "The ferryman asks for the total, nothing else."),
    "subtract": ("What they eat, subtract from the store.", "For each night subtract what was taken."),
}

_CLOSINGS = (
    "Nobody knows why.",
    "It has been so for years.",
    "A note in the margin says the same.",
    "The count starts again after the clock strikes.",
    "",
    "",
)


def write_document(rng: random.Random, identity: str, topic: str | None = None) -> Document:
    """Compose one document; ``topic`` None draws one, "" leaves it out."""
    topic = rng.choice((*TOPICS, *TOPICS, "")) if topic is None else topic
    animals = [f"{_article(word)} {word}" for word in rng.sample(DESIGN_WORDS, rng.randint(4, 6))]
    scene = rng.choice(_SCENES).format(animals=", ".join(animals[:-1]) + " and " + animals[-1])
    sentences = [scene[0].upper() + scene[1:], rng.choice(_ACTIONS[topic]) if topic else "", rng.choice(_CLOSINGS)]
    return Document(identity, " ".join(filter(None, sentences)))


def write_corpus(path: Path = CORPUS_FILE, seed: int = 1) -> None:
    """Write the corpus that comes with the package."""
    rng = random.Random(f"nano corpus {seed}")
    documents = [write_document(rng, f"nano-{index:03}") for index in range(COUNT)]
    lines = [json.dumps({"id": document.id, "text": document.text}) for document in documents]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


if __name__ == "__main__":
    write_corpus()
