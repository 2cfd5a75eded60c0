# kind: schema without a method
# verdict: refuse
# probe: tools
import random
class LampEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self._state = {"level": random.Random(seed).randint(1, 50), "target": random.Random(seed).randint(51, 99)}
        self._tools = [{"type": "function", "function": {"name": "set_level", "description": "Dim the lamp.", "parameters": {
            "type": "object", "properties": {"level": {"type": "integer"}}, "required": ["level"]}}}]
        self._user_messages = [f"Set the lamp to {self._state['target']}."]
        self._message_criteria = [lambda state: state["level"] == state["target"]]
        self._current_msg = 0
        return self._user_messages[0], {}
    def tool_setlevel(self, level):
        self._state["level"] = int(level)
        return "ok"
