# probe: criteria
# verdict: warn
# says: raises at reset on
import json


class NoteEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.text = f"call extension {self.rng.randint(100, 999)}"
        count = self.rng.randint(0, 1)
        self._state = {"notes": [f"note {n}" for n in range(count)]}
        self._tools = [self._tool("add_note", "Add a note.", text="string")]
        self._user_messages = [f"Write down: '{self.text}'"]
        self._message_criteria = [lambda s: s["notes"][-1] == self.text]
        return self._user_messages[0], {}

    def solution(self):
        return [self._call_text("add_note", {"text": self.text}), "<answer>done</answer>"]

    @staticmethod
    def _tool(name, description, **properties):
        return {"type": "function", "function": {"name": name, "description": description, "parameters": {
            "type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()},
            "required": list(properties)}}}

    @staticmethod
    def _call_text(name, arguments):
        return "<tool_call>" + json.dumps({"name": name, "arguments": arguments}) + "</tool_call>"

    def tool_add_note(self, text):
        self._state["notes"].append(text)
        return "noted"
