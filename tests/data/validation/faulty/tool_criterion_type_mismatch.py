# kind: criterion that no tool can satisfy
# verdict: refuse
# probe: solution, tools, criteria
import json
import random


class PharmacyEnv(ToolUseBaseEnv):
    """The tool stores the dose as text, the predicate compares it with a number."""

    DRUGS = ["aspirin", "ibuprofen", "codeine", "zinc"]

    def __init__(self, max_turns=8, **kwargs):
        super().__init__(max_turns=max_turns, **kwargs)

    def reset(self, seed=None):
        super().reset(seed)
        rng = random.Random(seed)
        self.drug, self.dose = rng.choice(self.DRUGS), rng.choice([100, 200, 250, 400, 500])
        self._state = {"prescriptions": {}}
        self._tools = {"prescribe": {"description": "Write a prescription.", "parameters": {"type": "object", "properties": {
            "drug": {"type": "string"}, "mg": {"type": "integer"}}, "required": ["drug", "mg"]}}}
        self._user_messages = [f"Prescribe {self.drug}, {self.dose} mg."]
        drug, dose = self.drug, self.dose
        self._message_criteria = [lambda s: s["prescriptions"].get(drug) == dose]
        return self._user_messages[0], {}

    def solution(self):
        call = json.dumps({"name": "prescribe", "arguments": {"drug": self.drug, "mg": self.dose}})
        return [f"<tool_call>{call}</tool_call>", "<answer>done</answer>"]

    def tool_prescribe(self, drug, mg):
        self._state["prescriptions"][drug] = f"{mg} mg"
        return "written"
