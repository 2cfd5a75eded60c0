# probe: tools
# verdict: warn
# says: is integer in the schema and str in the method
import json


class ReserveEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.title, self.days = self.rng.choice(["Emma", "Ulysses", "Dune", "Hamlet"]), self.rng.randint(2, 28)
        self._state = {"loans": []}
        self._tools = [{"type": "function", "function": {"name": "reserve", "description": "Reserve a book.",
            "parameters": {"type": "object", "properties": {"title": {"type": "string"}, "days": {"type": "integer"}}, "required": ["title", "days"]}}}]
        self._user_messages = [f"Reserve {self.title} for {self.days} days."]
        self._message_criteria = [lambda s: [self.title, self.days] in s["loans"]]
        return self._user_messages[0], {}

    def solution(self):
        return [self._call_text("reserve", {"title": self.title, "days": self.days}), "<answer>done</answer>"]

    @staticmethod
    def _call_text(name, arguments):
        return "<tool_call>" + json.dumps({"name": name, "arguments": arguments}) + "</tool_call>"

    def tool_reserve(self, title: str, days: str):
        self._state["loans"].append([title, int(days)])
        return "reserved"
