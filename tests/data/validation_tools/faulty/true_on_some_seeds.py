# probe: criteria
# verdict: refuse
# says: holds at reset already on
import json


class DoorEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.door = f"D{self.rng.randint(10, 99)}"
        self._state = {"doors": {self.door: self.rng.choice(["locked", "open"])}}
        self._tools = [self._tool("set_door", "Change a door.", door="string", status="string")]
        self._user_messages = [f"See to it that door {self.door} is locked."]
        self._message_criteria = [lambda s: s["doors"][self.door] == "locked"]
        return self._user_messages[0], {}

    def solution(self):
        return [self._call_text("set_door", {"door": self.door, "status": "locked"}), "<answer>done</answer>"]

    @staticmethod
    def _tool(name, description, **properties):
        return {"type": "function", "function": {"name": name, "description": description, "parameters": {
            "type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()},
            "required": list(properties)}}}

    @staticmethod
    def _call_text(name, arguments):
        return "<tool_call>" + json.dumps({"name": name, "arguments": arguments}) + "</tool_call>"

    def tool_set_door(self, door, status):
        if door not in self._state["doors"]:
            raise ValueError("no such door")
        self._state["doors"][door] = status
        return "ok"
