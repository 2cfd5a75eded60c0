"""Tool use with an expected final answer."""
import json
import random


class LookupEnv(ToolUseBaseEnv):
    def reset(self, seed=None):
        super().reset(seed)
        rng = random.Random(seed)
        self.names = rng.sample(["Ada", "Bo", "Cy", "Di", "Ed", "Flo"], 3)
        self._state = {"salary": {name: rng.randint(1000, 9000) for name in self.names}}
        self._tools = [{"type": "function", "function": {"name": "salary", "description": "Salary of a person.",
            "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}}]
        self._user_messages = [f"What do {' and '.join(self.names)} earn together? Give the sum as <answer>number</answer>."]
        self._expected_answer = str(sum(self._state["salary"].values()))
        self._current_msg = 0
        return self._user_messages[0], {}

    def solution(self):
        calls = [{"name": "salary", "arguments": {"name": name}} for name in self.names]
        return [f"<tool_call>{json.dumps(call)}</tool_call>" for call in calls] + [
            f"<answer>{self._expected_answer}</answer>"
        ]

    def tool_salary(self, name):
        return str(self._state["salary"].get(name, "unknown"))
