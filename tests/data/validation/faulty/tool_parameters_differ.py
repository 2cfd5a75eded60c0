# kind: schema and parameters differ
# verdict: refuse
# probe: tools
import random, json
class StockEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        rng = random.Random(seed)
        self._state = {"count": rng.randint(1, 50), "target": rng.randint(100, 200)}
        self._tools = [{"type": "function", "function": {"name": "set_count", "description": "Set the stock.", "parameters": {
            "type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}}}]
        self._user_messages = [f"Set the stock to {self._state['target']}."]
        self._message_criteria = [lambda state: state["count"] == state["target"]]
        self._current_msg = 0
        return self._user_messages[0], {}
    def tool_set_count(self, count):
        self._state["count"] = int(count)
        return "ok"
