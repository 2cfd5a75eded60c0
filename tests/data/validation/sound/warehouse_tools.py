"""Tool use with two user messages and predicates on the state."""
import json
import random


class WarehouseEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        rng = random.Random(seed)
        self.item, self.other = rng.sample(["bolt", "nut", "gear", "belt", "valve", "pump"], 2)
        self.start, self.amount = rng.randint(20, 40), rng.randint(3, 15)
        self._state = {"stock": {self.item: self.start, self.other: rng.randint(20, 40)}, "flagged": []}
        self._tools = [
            self._schema("get_stock", {"item": {"type": "string"}}),
            self._schema("ship", {"item": {"type": "string"}, "units": {"type": "integer"}}),
            self._schema("flag", {"item": {"type": "string"}}),
        ]
        self._user_messages = [f"Please ship {self.amount} units of {self.item}.", f"Now flag {self.other} for review."]
        item, other, left = self.item, self.other, self.start - self.amount
        self._message_criteria = [
            lambda state: state["stock"][item] == left,
            lambda state: state["flagged"] == [other],
        ]
        self._current_msg = 0
        return self._user_messages[0], {}

    @staticmethod
    def _schema(name, properties):
        parameters = {"type": "object", "properties": properties, "required": list(properties)}
        return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}

    def solution(self):
        calls = [("ship", {"item": self.item, "units": self.amount}), ("flag", {"item": self.other})]
        texts = [f"<tool_call>{json.dumps({'name': n, 'arguments': a})}</tool_call>" for n, a in calls]
        return [*texts, "<answer>done</answer>"]

    def tool_get_stock(self, item):
        return str(self._state["stock"].get(item, "no such item"))

    def tool_ship(self, item, units):
        if item not in self._state["stock"]:
            return "no such item"
        self._state["stock"][item] -= int(units)
        return "shipped"

    def tool_flag(self, item):
        self._state["flagged"].append(item)
        return "flagged"
