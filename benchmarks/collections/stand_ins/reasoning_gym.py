"""Stand-ins for the bases of a reasoning-gym-style collection: indexed datasets made from a seed and a config."""

import enum
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

REGISTERED = []


def register_dataset(name, dataset_class, config_class, curriculum_class=None):
    REGISTERED.append((dataset_class, config_class))


class ProceduralDataset:
    def __init__(self, config: Any, seed: int | None = None, size: int = 500):
        if hasattr(config, "validate"):
            config.validate()
        self.config, self.size = config, size
        self.seed = Random().randint(0, 2**32) if seed is None else seed

    def __len__(self):
        return self.size

    def score_answer(self, answer, entry):
        return float(answer == entry["answer"])


class StrEnum(enum.StrEnum):
    pass


@dataclass(kw_only=True)
class AttributeDefinition:
    name: str
    levels: list
    default_level: int = 0
    description: str | None = None


@dataclass(kw_only=True)
class ScalarAttributeDefinition(AttributeDefinition):
    field_name: str


@dataclass(kw_only=True)
class RangeAttributeDefinition(AttributeDefinition):
    lower_field_name: str
    upper_field_name: str
    ensure_interval: bool = False


class BaseCurriculum:
    def __init__(self, name, config_class):
        self.name, self.attributes = name, {}

    def _define_attributes(self, *attributes):
        for attribute in attributes:
            self.attributes[attribute.name] = attribute


def compute_decimal_reward(answer, oracle_answer, strip_commas=True):
    try:
        return float(Decimal(answer.replace(",", "")) == Decimal(oracle_answer.replace(",", "")))
    except Exception:
        return 0.0


def extract_answer(completion, tag_name="answer", strip=True):
    return completion.rpartition(f"<{tag_name}>")[2].partition(f"</{tag_name}>")[0].strip() or None


def format_number(number, max_decimals=2, round_if_needed=False):
    return str(int(number)) if number == int(number) else f"{number:.{max_decimals}f}".rstrip("0").rstrip(".")


def is_integer(value):
    return value == int(value)


class utils:  # noqa: N801 - a module, in the collection
    compute_decimal_reward = staticmethod(compute_decimal_reward)
    extract_answer = staticmethod(extract_answer)
    format_number = staticmethod(format_number)
    is_integer = staticmethod(is_integer)
