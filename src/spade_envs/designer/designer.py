"""The designer's pipeline: from a document to a prompt, from a reply to a validated record."""

from __future__ import annotations

import dataclasses
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from spade_envs.corpus import Document
from spade_envs.designer.attempt import Attempt, DesignPrompt
from spade_envs.designer.contradictions import MemoryContradictions
from spade_envs.designer.prompts import PromptSet, PromptSetError
from spade_envs.designer.tokens import Cut, cut_estimated
from spade_envs.laps import Laps
from spade_envs.record import EnvironmentRecord, source_id
from spade_envs.source_text.extract import extract_program
from spade_envs.validation import Probe, Report, ValidationConfig, validate
from spade_envs.validation.finding import Severity

if TYPE_CHECKING:
    from spade_envs.memory import Memory
    from spade_envs.sandbox import Sandbox

EXCERPT = 500
"""Characters of the grounding document that a record keeps, for people."""

EXAMPLE_OVERLAP = 0.6
"""Lexical overlap with the prompt's example from which on a program is a copy of it.

Small models copy the example with a line or two of their own: 0.85 to 1 was seen, where the programs of the tests, each
written on its own, reach 0.35.
"""


class Validator(Protocol):
    """Validates sources elsewhere, many at once."""

    def submit(self, sources: Iterable[str]) -> None:
        """Begin with these sources."""
        ...

    def report(self, source: str) -> Report:
        """Return the report of one source, submitted before or not."""
        ...


class Designer:
    """Asks for environments and judges what comes.

    It holds no model: :meth:`prompt` gives the conversation, whoever samples gives the reply to :meth:`admit`.
    """

    def __init__(
        self,
        prompts: PromptSet,
        memory: Memory | None,
        sandbox: Sandbox,
        *,
        validation: ValidationConfig | None = None,
        generator: str = "",
        own_hint: bool | None = None,
        max_turns: int | None = None,
        allow: Sequence[str] = (),
        licence: str = "",
        cut: Cut = cut_estimated,
        validator: Validator | None = None,
        probes: Sequence[Probe] = (),
        refuse: Callable[[str], str] | None = None,
    ) -> None:
        """Put the parts together.

        Args:
            prompts: the prompt set; its ``[validation]`` table overrides ``validation``.
            memory: where exemplars come from and duplicates are looked for; None for neither.
            sandbox: runs the programs.
            validation: how strictly programs are judged.
            generator: the model's name for the records.
            own_hint: whether the hint is what the program's ``hint()`` returns; the prompt set's choice if None.
            max_turns: stored in the records, 0 is the program's own default; the prompt set's choice if None.
            allow: opt-in modules for the programs.
            licence: stored in the records.
            cut: shortens documents to a number of tokens, :func:`~spade_envs.designer.tokens.cut_for` the model.
            validator: validates elsewhere, by the same configuration; None: here, in ``sandbox``.
            probes: further probes of your own, where programs are validated here.
            refuse: says what is wrong with a source besides ("" for nothing), before it is validated: that it holds a
                benchmark's question, see :mod:`spade_envs.contamination`.

        Raises:
            ValueError: if there are probes of your own and a validator elsewhere, which does not know them.
        """
        if probes and validator is not None:
            raise ValueError("probes of your own run here: leave out validator, or give that one the probes")
        self.prompts, self.memory, self.sandbox, self.probes = prompts, memory, sandbox, tuple(probes)
        self._contradictions = None if memory is None else MemoryContradictions(memory)
        self.validation = validation_config(prompts, validation)
        self.generator, self.allow, self.licence = generator, tuple(allow), licence
        self.cut = cut
        self.validator = validator
        self._refuse = refuse
        self.own_hint = prompts.own_hint if own_hint is None else own_hint
        self.max_turns = prompts.max_turns if max_turns is None else max_turns

    def prompt(
        self,
        document: Document | None,
        skill: str,
        rng: random.Random,
        causes: Mapping[str, int] | None = None,
        *,
        exemplars: bool = True,
    ) -> DesignPrompt:
        """Draw exemplars and a negative one from the memory and render the request.

        ``causes`` says how often programs were refused so far, by cause; the request warns of the commonest. Without
        ``exemplars`` nothing of the memory is shown.
        """
        shown: list[EnvironmentRecord] = []
        negatives: list[EnvironmentRecord] = []
        if self.memory is not None and exemplars:
            if self.prompts.exemplars:
                shown = self.memory.exemplars(skill, rng, self.prompts.exemplars)
            if self.prompts.negatives and (negative := self.memory.negative(skill, rng)) is not None:
                negatives = [negative]
        drawn = self.prompts.draw(rng)
        messages = self.prompts.designer_messages(
            document, skill, shown, negatives, drawn, causes=causes, cut=self.cut, max_turns=self.max_turns
        )
        return DesignPrompt(messages, skill, document, tuple(record.id for record in shown), drawn)

    def expect(self, texts: Iterable[str]) -> None:
        """Say which replies :meth:`admit` will get, so that a validator elsewhere can begin with all of them."""
        if self.validator is not None:
            self.validator.submit(filter(None, (extract_program(text).source for text in texts)))

    def _report(self, source: str) -> Report:
        if self.validator is not None:
            return self.validator.report(source)
        return validate(
            source, sandbox=self.sandbox, allow=self.allow, config=self.validation, probes=self.probes
        )  # fmt: skip

    def admit(self, text: str, prompt: DesignPrompt) -> Attempt:
        """Judge one reply: extract, compare with the memory, validate, make the record (not yet stored).

        Raises:
            SandboxError: if the sandbox itself fails; whatever the program does is the attempt's reason.
        """
        lap = Laps()

        document = prompt.document
        extracted = extract_program(text)
        lap("extract")
        attempt = Attempt(
            skill=prompt.skill,
            status="no_code",
            document_id=document.id if document else "",
            parents=prompt.parents,
            raw=text,
            source=extracted.source,
            mends=extracted.mends,
            reason="the reply holds no program (no class, fenced or bare)",
            cause="no_code",
            seconds=lap.seconds,
        )
        if not extracted.source:
            return attempt
        repeated = self._repeated(extracted.source)
        lap("duplicate")
        if repeated:
            return dataclasses.replace(attempt, status="duplicate", cause="duplicate", reason=repeated)
        if self._refuse is not None and (wrong := self._refuse(extracted.source)):
            return dataclasses.replace(attempt, status="refused", cause="contaminated", reason=f"contaminated: {wrong}")
        report = self._report(extracted.source)
        if report.admitted and self._contradictions is not None:
            report = self._contradictions.check(
                extracted.source, report, sandbox=self.sandbox, allow=self.allow, config=self.validation
            )
        lap("validate")
        attempt = dataclasses.replace(attempt, report=report)
        if not report.admitted:
            first = report.refusals[0]
            return dataclasses.replace(
                attempt, status="refused", cause=first.probe, reason=f"{first.probe}: {first.reason}"
            )
        try:
            record = EnvironmentRecord.create(
                extracted.source,
                report.name,
                kind=self.prompts.kind,
                skill=prompt.skill,
                document_id=attempt.document_id,
                document=document.text[:EXCERPT] if document else "",
                parents=prompt.parents,
                generator=self.generator,
                max_turns=self.max_turns,
                allow=self.allow,
                licence=self.licence,
                proven=report.proven,
                report=report.to_dict(),
                meta={"prompt_set": self.prompts.name, "mends": list(extracted.mends), **prompt.drawn},
                created_at=time.time(),
            )
        except ValueError as error:
            return dataclasses.replace(attempt, status="refused", cause="name", reason=f"name: {error}")
        return dataclasses.replace(attempt, status="admitted", cause="admitted", reason="", record=record)

    def repeats(self, record: EnvironmentRecord, others: Iterable[EnvironmentRecord]) -> EnvironmentRecord | None:
        """Return the first of ``others``, records not yet stored, that ``record`` repeats."""
        from spade_envs.memory import lexical

        literals, min_overlap = self.prompts.duplicate_literals, self.prompts.duplicate_overlap
        mine = _shingles(record.source, literals)
        for other in others:
            if other.id == record.id or lexical.overlap(mine, _shingles(other.source, literals)) >= min_overlap:
                return other
        return None

    def _repeated(self, source: str) -> str:
        """Say which record of the memory, or that a program of the prompt is repeated by ``source``; "" if none."""
        from spade_envs.memory import lexical

        literals = self.prompts.duplicate_literals
        for example in self.prompts.shown_programs:
            if lexical.overlap(_shingles(source, literals), _shingles(example, literals)) >= EXAMPLE_OVERLAP:
                return "repeats the example of the prompt"
        if self.memory is None:
            return ""
        if (identity := source_id(source)) in self.memory:
            return f"the same program as {identity[:16]}"
        found = self.memory.duplicate_of(
            source, min_overlap=self.prompts.duplicate_overlap, literals=self.prompts.duplicate_literals
        )
        return f"repeats {found.id[:16]} (overlap {found.overlap:.2f})" if found else ""


@lru_cache(maxsize=256)
def _shingles(source: str, literals: bool) -> Counter[int]:
    from spade_envs.memory import lexical

    return lexical.shingles(source, literals=literals)


def validation_config(prompts: PromptSet, base: ValidationConfig | None = None) -> ValidationConfig:
    """Return ``base`` (default: the defaults) with the overrides of the prompt set.

    Raises:
        PromptSetError: if the prompt set names a setting that does not exist, or gives it an impossible value.
    """
    base = base or ValidationConfig()
    overrides: dict[str, Any] = {}
    known = {field.name: getattr(base, field.name) for field in dataclasses.fields(base)}
    for name, value in prompts.validation.items():
        if name not in known:
            raise PromptSetError(f"prompt set {prompts.name!r}, table [validation]: no setting {name!r}; "
                                 f"there are {', '.join(known)}")  # fmt: skip
        try:
            if isinstance(known[name], Severity):
                value = Severity(value)
            overrides[name] = tuple(value) if isinstance(value, list) else value
        except ValueError as error:
            raise PromptSetError(f"prompt set {prompts.name!r}, [validation] {name}: {error}") from error
    try:
        return dataclasses.replace(base, **overrides)
    except (ValueError, TypeError) as error:
        raise PromptSetError(f"prompt set {prompts.name!r}, table [validation]: {error}") from error
