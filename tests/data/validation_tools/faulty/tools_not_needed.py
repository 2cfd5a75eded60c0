# probe: criteria
# verdict: warn
# says: without calling any tool
import json


class SumEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        left, right = self.rng.randint(100, 999), self.rng.randint(100, 999)
        self._state = {"log": []}
        self._tools = [self._tool("add", "Add two numbers.", left="integer", right="integer")]
        self._user_messages = [f"What is {left} + {right}? Answer with the number."]
        self._message_criteria = [lambda s: True]
        self._expected_answer = str(left + right)
        return self._user_messages[0], {}

    def solution(self):
        return f"<answer>{self._expected_answer}</answer>"

    @staticmethod
    def _tool(name, description, **properties):
        return {"type": "function", "function": {"name": name, "description": description, "parameters": {
            "type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()},
            "required": list(properties)}}}

    def tool_add(self, left, right):
        self._state["log"].append([left, right])
        return str(left + right)
