# kind: criterion true at reset
# verdict: refuse
# probe: know_nothing, criteria
import random
class LightSwitchEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        rng = random.Random(seed)
        self._state = {"light": "on", "room": rng.choice(["hall", "attic", "cellar"])}
        self._tools = [{"type": "function", "function": {"name": "switch", "description": "Set the light.", "parameters": {
            "type": "object", "properties": {"value": {"type": "string", "enum": ["on", "off"]}}, "required": ["value"]}}}]
        self._user_messages = [f"Make sure that the light in the {self._state['room']} is on."]
        self._message_criteria = [lambda state: state["light"] == "on"]
        self._current_msg = 0
        return self._user_messages[0], {}
    def tool_switch(self, value):
        self._state["light"] = value
        return "ok"
