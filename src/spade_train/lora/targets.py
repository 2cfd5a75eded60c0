"""What an adapter touches: linear layers and fused experts, found in the model's own module tree.

Three things are left alone whatever a keyword says: routers (a moved router undoes the balance of its experts),
the output head and the embeddings (no sampling engine serves adapters of them well), and everything outside the
text decoder (a vision tower has layers of the same names).

``auto`` is all linear layers of a dense model, after "LoRA Without Regret" (Schulman et al., 2025: adapters on
attention alone learn worse, also with equally many parameters), and attention alone for a mixture of experts: its
experts are fused into one parameter a layer, an adapter for each of them is large, and engines cannot take it as an
adapter.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from torch import Tensor, nn

from spade_train.settings.base import ConfigError

if TYPE_CHECKING:
    from peft import LoraConfig

KEYWORDS = ("auto", "attention", "all-linear", "experts")
"""What ``lora_targets`` can say besides names of modules."""

_ROUTERS = {"gate", "router", "shared_expert_gate", "wg"}
_EXPERT_DIMENSIONS = 3  # (experts, out, in): how transformers 5 keeps the experts of one layer


@dataclass(frozen=True, slots=True)
class Targets:
    """Names in the form that ``peft.LoraConfig`` takes: suffixes where they are unambiguous, else whole paths."""

    modules: tuple[str, ...]
    parameters: tuple[str, ...] = ()  # fused experts


def resolve_targets(model: nn.Module, targets: str) -> Targets:
    """Return what ``targets`` means for this model.

    Args:
        model: a ``transformers`` causal language model without adapters; it may be on the meta device.
        targets: keywords (:data:`KEYWORDS`) and names of modules or parameters, comma-separated.

    Raises:
        ConfigError: if a name does not exist, is a router's, or nothing is left.
    """
    tree = _Tree(model)
    modules: set[str] = set()
    parameters: set[str] = set()
    for word in filter(None, (part.strip() for part in targets.split(","))):
        if word == "auto":
            modules |= tree.attention if tree.routers or tree.experts else tree.linear
        elif word == "attention":
            modules |= tree.attention
        elif word == "all-linear":
            modules |= tree.linear
        elif word == "experts":
            parameters |= tree.fused()
        else:
            named_modules, named_parameters = tree.named(word)
            modules |= named_modules
            parameters |= named_parameters
    if not modules and not parameters:
        raise ConfigError(f"lora_targets {targets!r} names nothing in {tree.family}; it has {', '.join(tree.leaves())}")
    every = set(dict(model.named_modules()))
    return Targets(_short(modules, every), _short(parameters, tree.experts, least=2))


def adapter_config(model: nn.Module, *, targets: str, r: int, alpha: int, rslora: bool = False) -> LoraConfig:
    """Return the adapter's configuration for ``peft``.

    There is no dropout: sampled and trained log-probabilities must agree.

    Raises:
        ConfigError: as :func:`resolve_targets`; or if peft would adapt something else than what is named.
    """
    from peft import LoraConfig

    found = resolve_targets(model, targets)
    config = LoraConfig(
        r=r,
        lora_alpha=alpha,
        use_rslora=rslora,
        target_modules=list(found.modules),
        target_parameters=list(found.parameters) or None,
        task_type="CAUSAL_LM",
    )
    if taken := _taken_for_experts(model, config):
        raise ConfigError(
            f"lora_targets {targets!r}: peft takes {', '.join(taken)} of a mixture for its fused experts and would "
            f"adapt those instead of the dense layers of that name; use attention, or attention,experts"
        )
    return config


def _taken_for_experts(model: nn.Module, config: LoraConfig) -> list[str]:
    """Return the modules that peft rewrites to experts, as transformers 4 called them; asked of peft itself."""
    from peft.utils.transformers_weight_conversion import convert_peft_config_for_transformers

    converted, before = copy.deepcopy(config), set(config.target_modules or ())
    try:
        convert_peft_config_for_transformers(converted, model, None)
    except ValueError:  # only some of the names that were fused into one parameter
        return sorted(before)
    return sorted(before - set(converted.target_modules or ()))


def adapter_parameters(model: nn.Module, targets: Targets, r: int) -> int:
    """Return how many parameters an adapter of rank ``r`` has; ``model`` may be on the meta device."""
    total = 0
    for name, module in model.named_modules():
        if _matches(name, targets.modules):
            total += r * sum(cast(Tensor, module.weight).shape)
    for name, parameter in model.named_parameters():
        if _matches(name, targets.parameters):
            experts, rows, columns = parameter.shape
            total += r * experts * (rows + columns)
    return total


class _Tree:
    """The parts of a model that an adapter may touch, by whole name."""

    def __init__(self, model: nn.Module) -> None:
        config: Any = getattr(model, "config", None)
        self.family = str(getattr(config, "model_type", type(model).__name__))
        self._tied = bool(getattr(config, "tie_word_embeddings", False))
        self._everything = dict(model.named_modules())
        self._heads = {name for name, module in self._everything.items() if module in _embeddings(model)}
        inside = set(_decoder(model).modules())
        self.routers = {name for name, module in self._everything.items() if _is_router(name, module)}
        self.linear = {
            name
            for name, module in self._everything.items()
            if _is_linear(module) and module in inside and name not in self._heads and not self._routes(name)
        }
        self.attention = {name for name in self.linear if any("att" in part for part in name.split(".")[:-1])}
        self.experts = {
            name
            for name, parameter in model.named_parameters()
            if parameter.dim() == _EXPERT_DIMENSIONS and ".experts." in f".{name}" and "bias" not in name
        }

    def fused(self) -> set[str]:
        """Return the fused experts.

        Raises:
            ConfigError: if there are none.
        """
        if not self.experts:
            raise ConfigError(f"lora_targets names experts, and {self.family} has no fused experts")
        return self.experts

    def named(self, word: str) -> tuple[set[str], set[str]]:
        """Return the modules and the fused experts that ``word`` names, whole or as the end of their name."""
        modules = {name for name in self._everything if _matches(name, (word,))}
        parameters = {name for name in self.experts if _matches(name, (word,))}
        if parameters:
            return set(), parameters
        if not modules:
            known = [*KEYWORDS, *self.leaves()]
            near = difflib.get_close_matches(word, known, 1)
            raise ConfigError(
                f"lora_targets: {self.family} has no {word!r}{f'; did you mean {near[0]}?' if near else ''} "
                f"Expected any of {', '.join(known)}"
            )
        if routing := [name for name in modules if self._routes(name)]:
            raise ConfigError(f"lora_targets: {routing[0]} of {self.family} is a router, which is never adapted")
        if self._tied and modules & self._heads:
            raise ConfigError(
                f"lora_targets: {word} of {self.family} is tied to the embeddings: one adapter would change both"
            )
        if wrong := [name for name in modules if not _is_linear(self._everything[name]) and name not in self._heads]:
            kind = type(self._everything[wrong[0]]).__name__
            raise ConfigError(f"lora_targets: {wrong[0]} of {self.family} is a {kind}; expected linear layers")
        return modules, set()

    def leaves(self) -> list[str]:
        """Return the last parts of what can be named, sorted."""
        names = {name.rpartition(".")[2] for name in self.linear | self._heads}
        return sorted(names | {".".join(name.split(".")[-2:]) for name in self.experts})

    def _routes(self, name: str) -> bool:
        return any(name == router or name.startswith(f"{router}.") for router in self.routers)


def _embeddings(model: nn.Module) -> list[nn.Module]:
    """Return the output head and the input embeddings."""
    getters = (getattr(model, name, None) for name in ("get_output_embeddings", "get_input_embeddings"))
    return [part for getter in getters if getter is not None and (part := getter()) is not None]


def _decoder(model: nn.Module) -> nn.Module:
    """Return the text decoder: the model itself where it says of none."""
    getter = getattr(model, "get_decoder", None)
    found = getter() if getter is not None else None
    return found if isinstance(found, nn.Module) else model


def _is_linear(module: nn.Module) -> bool:
    return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"


def _is_router(name: str, module: nn.Module) -> bool:
    return name.rpartition(".")[2] in _ROUTERS or "Router" in type(module).__name__


def _matches(name: str, words: Iterable[str]) -> bool:
    """Whether ``peft`` would take ``name`` for one of ``words``: it is one, or ends with one after a dot."""
    return any(name == word or name.endswith(f".{word}") for word in words)


def _short(wanted: set[str], everything: set[str], least: int = 1) -> tuple[str, ...]:
    """Return the shortest names, of at least ``least`` parts, that match exactly ``wanted``; sorted."""
    found: set[str] = set()
    for name in wanted:
        if not _matches(name, found):
            found.add(next(suffix for suffix in _suffixes(name, least) if _only(suffix, wanted, everything)))
    return tuple(sorted(found))


def _only(suffix: str, wanted: set[str], everything: set[str]) -> bool:
    return all(name in wanted for name in everything if _matches(name, (suffix,)))


def _suffixes(name: str, least: int) -> Iterator[str]:
    """Yield the ends of a dotted name, the shortest first, the whole name last."""
    parts = name.split(".")
    for start in range(max(len(parts) - least, 0), -1, -1):
        yield ".".join(parts[start:])
