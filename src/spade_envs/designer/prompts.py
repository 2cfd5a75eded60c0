"""Prompt sets: folders of templates and settings that make a model a designer, a hint writer or an agent.

The layout of a folder, the variables and the filters are described in ``prompts/README.md``.
"""

from __future__ import annotations

import hashlib
import random
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from spade_envs.corpus import Document, cut_words
from spade_envs.memory.memory import MIN_OVERLAP
from spade_envs.models.base import Message, Sampling
from spade_envs.record import EnvironmentRecord

PROMPTS_FOLDER = Path(__file__).parent / "prompts"

_TEMPLATES = ("designer.system", "designer.user", "hint.system", "hint.user")
_KEYS = {
    "kind", "own_hint", "document_words", "exemplars", "negatives", "max_turns",
    "skills", "validation", "duplicate", "play", "sampling", "draw",
}  # fmt: skip
_DESIGNER_SAMPLING = Sampling(max_tokens=8192, temperature=0.6)
_HINT_SAMPLING = Sampling(max_tokens=512, temperature=0.3)


class PromptSetError(ValueError):
    """A prompt set is missing, incomplete or has a faulty template or setting."""


@dataclass(frozen=True)
class PromptSet:
    """The prompts and defaults of one way to generate and play environments; make it with :meth:`load`."""

    name: str
    kind: str
    skill_notes: Mapping[str, str]
    own_hint: bool
    agent_system: str
    hint_template: str  # contains "{hint}"
    document_words: int = 6000
    exemplars: int = 2
    negatives: int = 1
    max_turns: int = 0
    duplicate_overlap: float = MIN_OVERLAP
    duplicate_literals: bool = False
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
        folder = _find(name_or_folder)
        settings = _read_settings(folder / "set.toml")
        environment = ImmutableSandboxedEnvironment(
            undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
        )
        environment.filters.update(cut=_cut, tenths=_tenths, percent=_percent)
        templates = {}
        for stem in _TEMPLATES:
            if (path := folder / f"{stem}.jinja").is_file():
                try:
                    templates[stem] = environment.from_string(path.read_text(encoding="utf-8"))
                except jinja2.TemplateSyntaxError as error:
                    raise PromptSetError(f"{path}, line {error.lineno}: {error.message}") from error
        own_hint = bool(settings.get("own_hint", False))
        needed = [stem for stem in _TEMPLATES if not (own_hint and stem.startswith("hint."))]
        if missing := [f"{stem}.jinja" for stem in needed if stem not in templates]:
            raise PromptSetError(f"prompt set {folder} lacks {', '.join(missing)}; prompts/README.md lists the files.")
        hint_template = _verbatim(folder / "agent.hint.txt")
        if "{hint}" not in hint_template:
            raise PromptSetError(f"{folder / 'agent.hint.txt'} must contain {{hint}}, where the hint goes")
        sampling, duplicate = settings.get("sampling", {}), settings.get("duplicate", {})
        try:
            return cls(
                name=folder.name,
                kind=settings.get("kind", "game"),
                skill_notes=dict(settings["skills"]),
                own_hint=own_hint,
                agent_system=_verbatim(folder / "agent.system.txt"),
                hint_template=hint_template,
                duplicate_overlap=float(duplicate.get("min_overlap", MIN_OVERLAP)),
                duplicate_literals=bool(duplicate.get("literals", False)),
                fingerprint=_fingerprint(folder),
                validation=settings.get("validation", {}),
                play=settings.get("play", {}),
                designer_sampling=replace(_DESIGNER_SAMPLING, **sampling.get("designer", {})),
                hint_sampling=replace(_HINT_SAMPLING, **sampling.get("hint", {})),
                draws=settings.get("draw", {}),
                templates=templates,
                **{
                    key: int(settings[key])
                    for key in ("document_words", "exemplars", "negatives", "max_turns")
                    if key in settings
                },
            )
        except TypeError as error:
            raise PromptSetError(f"{folder / 'set.toml'}, table [sampling]: {error}") from error

    @property
    def skills(self) -> tuple[str, ...]:
        """The skills in the order in which they are rotated."""
        return tuple(self.skill_notes)

    def draw(self, rng: random.Random) -> dict[str, str]:
        """Draw one value for each ``[draw]`` table by weight."""
        return {name: rng.choices(list(table), list(table.values()))[0] for name, table in sorted(self.draws.items())}

    def designer_messages(
        self,
        document: Document | None,
        skill: str,
        exemplars: Sequence[EnvironmentRecord] = (),
        negatives: Sequence[EnvironmentRecord] = (),
        drawn: Mapping[str, str] | None = None,
    ) -> list[Message]:
        """Render the conversation that asks for one environment.

        Args:
            document: grounds the environment; None asks for one without a document.
            skill: one of :attr:`skills`.
            exemplars: environments worth learning from.
            negatives: environments that turned out too easy or impossible.
            drawn: what :meth:`draw` returned, for sets with ``[draw]`` tables.
        """
        return self._render(
            "designer",
            document=cut_words(document.text.strip(), self.document_words) if document else "",
            document_id=document.id if document else "",
            meta=document.meta if document else {},
            skill=skill,
            skill_note=self._note(skill),
            exemplars=list(exemplars),
            negatives=list(negatives),
            max_turns=self.max_turns,
            **(drawn or {}),
        )

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

    def _note(self, skill: str) -> str:
        if skill not in self.skill_notes:
            raise PromptSetError(f"prompt set {self.name!r} has no skill {skill!r}; it has {', '.join(self.skills)}")
        return self.skill_notes[skill]

    def _render(self, call: str, **variables: Any) -> list[Message]:
        try:
            system = self.templates[f"{call}.system"].render(variables)
            user = self.templates[f"{call}.user"].render(variables)
        except (jinja2.TemplateError, TypeError, ValueError) as error:
            raise PromptSetError(f"prompt set {self.name!r}, template of the {call} call: {error}") from error
        messages: list[Message] = [{"role": "system", "content": system}] if system else []
        return [*messages, {"role": "user", "content": user}]


def available_prompt_sets() -> tuple[str, ...]:
    """The names of the prompt sets that come with the package."""
    return tuple(sorted(path.parent.name for path in PROMPTS_FOLDER.glob("*/set.toml")))


def _find(name_or_folder: str | Path) -> Path:
    for folder in (PROMPTS_FOLDER / str(name_or_folder), Path(name_or_folder)):
        if (folder / "set.toml").is_file():
            return folder.resolve()
    raise PromptSetError(
        f"no prompt set {str(name_or_folder)!r}: expected one of {', '.join(available_prompt_sets())}, "
        f"or a folder with a set.toml"
    )


def _read_settings(path: Path) -> dict[str, Any]:
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PromptSetError(f"{path}: {error}") from error
    if unknown := sorted(set(settings) - _KEYS):
        raise PromptSetError(f"{path}: unknown setting {', '.join(unknown)}; known are {', '.join(sorted(_KEYS))}")
    if not settings.get("skills"):
        raise PromptSetError(f"{path}: a table [skills] with at least one skill is needed")
    return settings


def _fingerprint(folder: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(folder.iterdir()):
        if path.suffix in (".toml", ".jinja", ".txt"):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _verbatim(path: Path) -> str:
    if not path.is_file():
        raise PromptSetError(f"prompt set {path.parent} lacks {path.name}; prompts/README.md lists the files.")
    return path.read_text(encoding="utf-8").removesuffix("\n")


def _cut(text: str, characters: int) -> str:
    if len(text) <= characters:
        return text
    return text[:characters].rsplit("\n", 1)[0] + "\n[cut]"


def _tenths(share: float | None) -> str:
    return "-" if share is None else str(max(0, min(9, int(share * 10))))


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{round(share * 100)} %"
