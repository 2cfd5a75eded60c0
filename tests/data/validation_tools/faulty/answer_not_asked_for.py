# probe: criteria
# verdict: warn
# says: no instruction asks for one
import json


class MeterEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.meter = f"M{self.rng.randint(100, 999)}"
        self._state = {"read": [], "values": {self.meter: self.rng.randint(1000, 9999)}}
        self._tools = [self._tool("read_meter", "Read a meter.", meter="string")]
        self._user_messages = [f"Please read meter {self.meter} today."]
        self._message_criteria = [lambda s: self.meter in s["read"]]
        self._expected_answer = str(self._state["values"][self.meter])
        return self._user_messages[0], {}

    def solution(self):
        return [self._call_text("read_meter", {"meter": self.meter}), f"<answer>{self._expected_answer}</answer>"]

    @staticmethod
    def _tool(name, description, **properties):
        return {"type": "function", "function": {"name": name, "description": description, "parameters": {
            "type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()},
            "required": list(properties)}}}

    @staticmethod
    def _call_text(name, arguments):
        return "<tool_call>" + json.dumps({"name": name, "arguments": arguments}) + "</tool_call>"

    def tool_read_meter(self, meter):
        self._state["read"].append(meter)
        return str(self._state["values"].get(meter, "no such meter"))
