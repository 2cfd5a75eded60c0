"""A grammar of programs that try to get out: what is reached for, by which means, and in which surroundings.

A program is a list of fragments. Each fragment combines a target, a name and a means of access (reading, writing,
defining, copying, changing in place, hiding a built-in), inside statements that change scopes and control flow. Half of
the fragments take an object and a name that belong together (a traceback and ``tb_frame``), the others any of both.
The choices come from outside, so hypothesis can shrink them and a plain generator can make them by the ten thousand.
"""

import textwrap
from collections.abc import Sequence
from random import Random

import attack_targets as targets
import attack_templates as templates

MEANS = (
    *(templates.READS,) * 2,
    *(templates.STRINGS,) * 2,
    *(templates.WRITES,) * 2,
    templates.DEFINES,
    templates.PATTERNS,
    templates.FIELDS,
    templates.DECORATES,
    templates.COPIES,
    templates.HIDES,
    templates.IN_PLACE,
)


class Grammar:
    """Makes fragments with the choices of ``random``; half of them are about numpy if ``numpy``."""

    def __init__(self, random: Random, numpy: bool = False) -> None:
        self.random = random
        self.numpy = numpy
        self.count = 0

    def pick(self, items: Sequence) -> str:
        """Choose one of ``items``."""
        return items[self.random.randint(0, len(items) - 1)]

    def name(self) -> str:
        """An attribute name, mostly one that must not be reached."""
        kind = self.random.randint(0, 9)
        if kind < 2:
            return "_hidden"
        return self.pick(targets.PLAIN if kind == 2 else targets.DUNDERS if kind == 3 else targets.FORBIDDEN)

    def text(self, name: str) -> str:
        """An expression for ``name`` as a string."""
        half = len(name) // 2
        forms = (
            repr(name),
            f"{name[:half]!r} + {name[half:]!r}",
            f"''.join({list(name)!r})",
            f"{name[::-1]!r}[::-1]",
            f"Text({name!r})",
            f"f'{name[:half]}{{{name[half:]!r}}}'",
            f"{name.upper()!r}.lower()",
            f"chr({ord(name[0])}) + {name[1:]!r}",
            f"'%s' % {name!r}",
            repr(chr(ord(name[-1]) + 0xFEE0) if name.isalpha() else name),
        )
        return self.pick(forms)

    def target(self) -> str:
        """An object to reach into."""
        if self.random.randint(0, 2) == 0:
            return self.pick(targets.KEEPERS)
        return self.pick(targets.TARGETS)

    def pair(self, kinds: Sequence) -> tuple[str, str]:
        """An object and a name that belong together: a canary's private, any of ``kinds``, or none such."""
        kind = self.random.randint(0, 2)
        if kind == 0:
            return self.target(), self.name()
        objects, names = targets.SECRETS if kind == 1 else self.pick(kinds)
        return self.pick(objects), self.pick(names.split())

    def held(self, target: str) -> str:
        """``target``, at times handed on first."""
        forms = ("[*{{1: {}}}.values()][0]", "(lambda o: o)({})", "partial({})", *("{}",) * 17)
        return self.pick(forms).format(target)

    def fragment(self) -> str:
        """One attempt, in its surroundings."""
        self.count += 1
        about_numpy = self.numpy and self.random.randint(0, 1)
        means = templates.NUMPY if about_numpy else self.pick(MEANS)
        template = self.pick(means)
        target, name = self.pair(targets.NUMPY_KINDS if about_numpy else targets.KINDS)
        value = self.pick(targets.VALUES)
        if means is templates.COPIES:
            name, value = self.pick(targets.COPY_NAMES), self.pick(targets.COPY_VALUES)
        elif means in (templates.IN_PLACE, templates.FIELDS) and self.random.randint(0, 1):
            name = self.pick(targets.GUARDED_NAMES)
        elif "{v}" in template and self.random.randint(0, 1):
            name = self.pick(("public", "_hidden"))
        text = self.text(name)
        body = self.filled(template, self.held(target), name, text, value)
        for _ in range(self.random.randint(0, 2)):
            self.count += 1
            block = textwrap.indent(body, "    ")
            wrapper = self.pick(templates.WRAPPERS)
            inner = textwrap.indent(block, "    ").lstrip(" ")
            body = wrapper.format(body=body, block=block, block2="    " + inner, i=self.count)
        return body

    def filled(self, template: str, target: str, name: str, text: str, value: str) -> str:
        """The template with its fields."""
        memo = ("None", "None", "None", f"{{ {text}: {value} }}", f"{{ {text}: {value} }}", target)
        parts = template.split("{w}")
        template = parts[0] + "".join(
            self.pick(memo).replace("{", "{{").replace("}", "}}") + part for part in parts[1:]
        )
        return template.format(
            t=target,
            n=name,
            s=text,
            u="".join(chr(ord(c) + 0xFEE0) if c.isalpha() else c for c in name),
            v=value,
            d=self.pick(targets.DUNDERS),
            b=self.pick(("super", "super", "type", "object", "int", "str")),
            m=self.pick(targets.MODULES),
            o=self.pick(("+", "|", "*")),
            e=self.pick(targets.ENUM_NAMES),
            c=self.pick(targets.CODE),
            dt=self.pick(targets.DTYPES),
            y=self.pick(targets.NUMPY_CALLS),
            i=self.count,
        )

    def program(self, fragments: int = 8) -> list[str]:
        """A list of fragments; those that the policy refuses are left out by whoever runs it."""
        return [self.fragment() for _ in range(fragments)]
