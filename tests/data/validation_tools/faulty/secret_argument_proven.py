# probe: criteria
# verdict: refuse
# says: which no instruction says
import json


class SafeEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.code = "".join(self.rng.choice("ABCDEFGHJK23456789") for _ in range(4)) + str(self.rng.randint(10, 99))
        self.room = self.rng.choice(["attic", "cellar", "office", "lobby"])
        self._state = {"safe": {"code": self.code, "open": False}, "lights": {}}
        self._tools = [self._tool("open_safe", "Open the safe.", code="string"),
                       self._tool("switch_light", "Light in a room.", room="string", on="boolean")]
        self._user_messages = [f"Switch on the light of the {self.room}.", "Now open the safe."]
        self._message_criteria = [lambda s: s["lights"].get(self.room) is True, lambda s: s["safe"]["open"]]
        return self._user_messages[0], {}

    def solution(self):
        return [self._call_text("switch_light", {"room": self.room, "on": True}),
                self._call_text("open_safe", {"code": self.code}), "<answer>done</answer>"]

    @staticmethod
    def _tool(name, description, **properties):
        return {"type": "function", "function": {"name": name, "description": description, "parameters": {
            "type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()},
            "required": list(properties)}}}

    @staticmethod
    def _call_text(name, arguments):
        return "<tool_call>" + json.dumps({"name": name, "arguments": arguments}) + "</tool_call>"

    def tool_open_safe(self, code):
        if code != self._state["safe"]["code"]:
            return "Error: wrong code"
        self._state["safe"]["open"] = True
        return "open"

    def tool_switch_light(self, room, on):
        self._state["lights"][room] = bool(on)
        return "ok"
