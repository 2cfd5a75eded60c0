"""Prompt sets: folders of templates and settings that make a model a designer, a hint writer or an agent.

The layout of a folder, the variables and the filters are described in ``prompts/README.md``.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from spade_envs.corpus import Document
from spade_envs.designer.prompt_files import (
    PROMPTS_FOLDER,
    REPAIRS,
    PromptSetError,
    available_prompt_sets,
    find_prompt_set,
    fingerprint,
    read_settings,
    read_text,
)
from spade_envs.designer.tokens import Cut, cut_estimated
from spade_envs.memory.resemblance import MIN_OVERLAP
from spade_envs.models.base import Message, Sampling
from spade_envs.record import EnvironmentRecord

__all__ = ["PROMPTS_FOLDER", "PromptSet", "PromptSetError", "available_prompt_sets"]

MAX_FAULTS = 5
"""Common faults that one prompt warns of."""
_TEMPLATES = ("designer.system", "designer.user", "hint.system", "hint.user", "repair.user")
_NUMBERS = ("document_tokens", "exemplars", "negatives", "max_turns", "repairs")
_DESIGNER_SAMPLING = Sampling(max_tokens=8192, temperature=0.6)
_HINT_SAMPLING = Sampling(max_tokens=512, temperature=0.3)


@dataclass(frozen=True, slots=True)
class Demonstration:
    """An earlier exchange of the designer's conversation: what was asked for, and the program that was the answer."""

    skill: str
    document: str
    program: str


@dataclass(frozen=True)
class PromptSet:
    """The prompts and defaults of one way to generate and play environments; make it with :meth:`load`."""

    name: str
    kind: str
    skill_notes: Mapping[str, str]
    own_hint: bool
    agent_system: str
    hint_template: str  # contains "{hint}"
    document_tokens: int = 8000
    exemplars: int = 2
    negatives: int = 1
    max_turns: int = 0
    repairs: int = 1  # turns in which a refused program goes back to the model, unless a run says otherwise
    repair: str = REPAIRS[0]
    duplicate_overlap: float = MIN_OVERLAP
    duplicate_literals: bool = False
    example: str = ""  # a program that shows the form
    demonstrations: tuple[Demonstration, ...] = ()
    fault_notes: Mapping[str, str] = field(default_factory=dict)  # by the cause of a refusal
    fingerprint: str = ""  # changes with any file of the set; a resumed run compares it
    validation: Mapping[str, Any] = field(default_factory=dict)
    play: Mapping[str, Any] = field(default_factory=dict)
    designer_sampling: Sampling = _DESIGNER_SAMPLING
    hint_sampling: Sampling = _HINT_SAMPLING
    draws: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    templates: Mapping[str, jinja2.Template] = field(default_factory=dict, repr=False)

    @classmethod
    def load(cls, name_or_folder: str | Path) -> PromptSet:
        """Read a prompt set that comes with the package (by name) or a folder of one's own (by path).

        Raises:
            PromptSetError: if there is no such set, or a file or setting of it is missing or faulty.
        """
        folder = find_prompt_set(name_or_folder)
        settings = read_settings(folder / "set.toml")
        templates = _read_templates(folder)
        own_hint = bool(settings.get("own_hint", False))
        needed = [stem for stem in _TEMPLATES if not (own_hint and stem.startswith("hint."))]
        if missing := [f"{stem}.jinja" for stem in needed if stem not in templates]:
            raise PromptSetError(f"prompt set {folder} lacks {', '.join(missing)}; prompts/README.md lists the files.")
        hint_template = read_text(folder / "agent.hint.txt")
        if "{hint}" not in hint_template:
            raise PromptSetError(f"{folder / 'agent.hint.txt'} must contain {{hint}}, where the hint goes")
        sampling, duplicate = settings.get("sampling", {}), settings.get("duplicate", {})
        try:
            return cls(
                name=folder.name,
                kind=settings.get("kind", "game"),
                skill_notes=dict(settings["skills"]),
                own_hint=own_hint,
                repair=settings.get("repair", REPAIRS[0]),
                agent_system=read_text(folder / "agent.system.txt"),
                hint_template=hint_template,
                duplicate_overlap=float(duplicate.get("min_overlap", MIN_OVERLAP)),
                duplicate_literals=bool(duplicate.get("literals", False)),
                example=read_text(folder / "designer.example.txt", needed=False),
                demonstrations=_read_demonstrations(folder, settings),
                fault_notes=dict(settings.get("faults", {})),
                fingerprint=fingerprint(folder),
                validation=settings.get("validation", {}),
                play=settings.get("play", {}),
                designer_sampling=replace(_DESIGNER_SAMPLING, **sampling.get("designer", {})),
                hint_sampling=replace(_HINT_SAMPLING, **sampling.get("hint", {})),
                draws=settings.get("draw", {}),
                templates=templates,
                **{key: int(settings[key]) for key in _NUMBERS if key in settings},
            )
        except TypeError as error:
            raise PromptSetError(f"{folder / 'set.toml'}, table [sampling]: {error}") from error

    @property
    def shown_programs(self) -> tuple[str, ...]:
        """The programs that every prompt shows; one that repeats them is nothing new."""
        shown = (self.example, *(demonstration.program for demonstration in self.demonstrations))
        return tuple(program for program in shown if program)

    @property
    def skills(self) -> tuple[str, ...]:
        """The skills in the order in which they are rotated."""
        return tuple(self.skill_notes)

    def draw(self, rng: random.Random) -> dict[str, str]:
        """Draw one value for each ``[draw]`` table by weight."""
        return {name: rng.choices(list(table), list(table.values()))[0] for name, table in sorted(self.draws.items())}

    def faults(self, causes: Mapping[str, int]) -> list[str]:
        """The notes on the commonest of ``causes``, then those that the set names first; at most :data:`MAX_FAULTS`."""
        ranked = sorted(self.fault_notes, key=lambda cause: -causes.get(cause, 0))  # stable: ties in the set's order
        return [self.fault_notes[cause] for cause in ranked[:MAX_FAULTS]]

    def designer_messages(
        self,
        document: Document | None,
        skill: str,
        exemplars: Sequence[EnvironmentRecord] = (),
        negatives: Sequence[EnvironmentRecord] = (),
        drawn: Mapping[str, str] | None = None,
        *,
        causes: Mapping[str, int] | None = None,
        cut: Cut = cut_estimated,
        max_turns: int | None = None,
    ) -> list[Message]:
        """Render the conversation that asks for one environment.

        Args:
            document: grounds the environment; None asks for one without a document.
            skill: one of :attr:`skills`.
            exemplars: environments worth learning from.
            negatives: environments that turned out too easy or impossible.
            drawn: what :meth:`draw` returned, for sets with ``[draw]`` tables.
            causes: how often programs were refused so far, by cause; decides which faults are warned of.
            cut: shortens the document to the set's ``document_tokens``.
            max_turns: bound on the turns of the environment, 0 for the program's own choice; the set's if None.
        """
        bound = self.max_turns if max_turns is None else max_turns
        asked = {"max_turns": bound, "example": self.example, **(drawn or {})}
        *system, request = self._render(
            "designer",
            document=cut(document.text.strip(), self.document_tokens) if document else "",
            document_id=document.id if document else "",
            meta=document.meta if document else {},
            skill=skill,
            skill_note=self._note(skill),
            exemplars=list(exemplars),
            negatives=list(negatives),
            faults=self.faults(causes or {}),
            **asked,
        )
        shown = [message for demonstration in self.demonstrations for message in self._shown(demonstration, asked)]
        return [*system, *shown, request]

    def hint_messages(self, record: EnvironmentRecord, complaint: str = "") -> list[Message]:
        """Render the conversation that asks for a hint to ``record``; ``complaint`` says what was wrong before."""
        return self._render(
            "hint",
            source=record.source,
            name=record.name,
            skill=record.skill,
            skill_note=self.skill_notes.get(record.skill, ""),
            document=record.document,
            complaint=complaint,
        )

    def repair_message(self, **variables: Any) -> str:
        """Render the message that asks for a corrected program; the variables are in ``prompts/README.md``."""
        return self._rendered("repair.user", variables)

    def _shown(self, demonstration: Demonstration, asked: Mapping[str, Any]) -> list[Message]:
        """The exchange of ``demonstration``, asked for in the words of the set's own template."""
        nothing: dict[str, Any] = {"document_id": "", "meta": {}, "exemplars": [], "negatives": [], "faults": []}
        skill = demonstration.skill
        said = {"document": demonstration.document, "skill": skill, "skill_note": self._note(skill)}
        return [
            {"role": "user", "content": self._rendered("designer.user", {**nothing, **asked, **said})},
            {"role": "assistant", "content": f"```python\n{demonstration.program.strip()}\n```"},
        ]

    def _note(self, skill: str) -> str:
        if skill not in self.skill_notes:
            raise PromptSetError(f"prompt set {self.name!r} has no skill {skill!r}; it has {', '.join(self.skills)}")
        return self.skill_notes[skill]

    def _render(self, call: str, **variables: Any) -> list[Message]:
        system, user = (self._rendered(f"{call}.{role}", variables) for role in ("system", "user"))
        messages: list[Message] = [{"role": "system", "content": system}] if system else []
        return [*messages, {"role": "user", "content": user}]

    def _rendered(self, stem: str, variables: Mapping[str, Any]) -> str:
        try:
            return self.templates[stem].render(variables)
        except (jinja2.TemplateError, TypeError, ValueError) as error:
            raise PromptSetError(f"prompt set {self.name!r}, template {stem}.jinja: {error}") from error


def _read_templates(folder: Path) -> dict[str, jinja2.Template]:
    """The templates of a set by their stems; where it has none of its own, one that all sets share."""
    environment = ImmutableSandboxedEnvironment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
    )
    environment.filters.update(cut=_cut, tenths=_tenths, percent=_percent)
    templates = {}
    for stem in _TEMPLATES:
        for path in (folder / f"{stem}.jinja", PROMPTS_FOLDER / f"{stem}.jinja"):
            if path.is_file():
                try:
                    templates[stem] = environment.from_string(path.read_text(encoding="utf-8"))
                except jinja2.TemplateSyntaxError as error:
                    raise PromptSetError(f"{path}, line {error.lineno}: {error.message}") from error
                except UnicodeDecodeError as error:
                    raise PromptSetError(f"{path}: expected UTF-8: {error}") from error
                break
    return templates


def _read_demonstrations(folder: Path, settings: Mapping[str, Any]) -> tuple[Demonstration, ...]:
    """The ``[[demonstrations]]`` of a set, each with its program, a file of the folder."""
    read = []
    for number, entry in enumerate(settings.get("demonstrations", ()), start=1):
        if not isinstance(entry, dict) or set(entry) != {"skill", "document", "program"}:
            raise PromptSetError(
                f"{folder / 'set.toml'}: [[demonstrations]] number {number} needs skill, document and program "
                "(a file of the folder)"
            )
        if entry["skill"] not in settings["skills"]:
            raise PromptSetError(
                f"{folder / 'set.toml'}: [[demonstrations]] number {number}: {entry['skill']!r} is not in [skills]"
            )
        program = read_text(folder / str(entry["program"]))
        read.append(Demonstration(entry["skill"], str(entry["document"]).strip(), program))
    return tuple(read)


def _cut(text: str, characters: int) -> str:
    if len(text) <= characters:
        return text
    return text[:characters].rsplit("\n", 1)[0] + "\n[cut]"


def _tenths(share: float | None) -> str:
    return "-" if share is None else str(max(0, min(9, int(share * 10))))


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{round(share * 100)} %"
