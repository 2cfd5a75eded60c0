"""A probe of your own: what it refuses never reaches the memory.

A probe is a function from the evidence that the validator collected (seeds, observations, plays of ``solution()`` and
of players that know nothing) to findings. It runs nothing itself.

    python examples/custom_probe.py
"""

from spade_envs.sandbox import Sandbox
from spade_envs.validation import Evidence, Finding, Severity, validate

LONGEST = 400

SOURCE = r'''
class SumEnv(TextEnv):
    """Add two numbers; the statement is padded."""

    def reset(self, seed=None):
        super().reset(seed)
        self.total = self.rng.randint(100, 999), self.rng.randint(100, 999)
        story = "Once upon a time there was a shop. " * {padding}
        return f"{story}What is {self.total[0]} + {self.total[1]}? Answer in \\boxed{}.", {}

    def step(self, action):
        return "", float(self.answer(action) == str(sum(self.total))), True, False, {}

    def solution(self):
        return str(sum(self.total))
'''


def short_statement(evidence: Evidence) -> list[Finding]:
    """Refuse programs whose task takes more than ``LONGEST`` characters on any seed."""
    longest = max(evidence.survey, key=lambda entry: len(entry.observation))
    if len(longest.observation) <= LONGEST:
        return []
    reason = (
        f"the first observation has {len(longest.observation)} characters on seed {longest.seed}; write {LONGEST} "
        "at most, only what a player needs."
    )
    return [Finding("short_statement", Severity.REFUSE, reason, {"seed": longest.seed})]


def main() -> None:
    with Sandbox() as sandbox:
        for padding in (0, 40):
            source = SOURCE.replace("{padding}", str(padding)).replace("boxed{}", "boxed{{}}")
            report = validate(source, sandbox=sandbox, probes=[short_statement])
            print(f"padding {padding}: admitted {report.admitted}")
            for finding in report.refusals:
                print(f"  {finding.probe}: {finding.reason}")
    # The same list goes to Designer(…, probes=[short_statement]): refusals go back to the model as reasons to mend.


if __name__ == "__main__":
    main()
