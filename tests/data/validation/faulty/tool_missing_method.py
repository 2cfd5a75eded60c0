# kind: schema without a method
# verdict: refuse
# probe: tools
import json
import random


class GardenBotEnv(ToolUseBaseEnv):
    """Three tools are announced, two are there."""

    def __init__(self, max_turns=10, **kwargs):
        super().__init__(max_turns=max_turns, **kwargs)

    def reset(self, seed=None):
        super().reset(seed)
        rng = random.Random(seed)
        self.bed, self.litres = rng.choice(["roses", "beans", "mint"]), rng.randint(2, 15)
        self._state = {"watered": {}, "moisture": {"roses": 30, "beans": 45, "mint": 60}}
        bed = {"bed": {"type": "string", "enum": ["roses", "beans", "mint"]}}
        self._tools = {
            "read_moisture": {"description": "Moisture in percent.", "parameters": {"type": "object", "properties": bed}},
            "water": {"description": "Water a bed.", "parameters": {"type": "object", "properties": {**bed, "litres": {"type": "integer"}}}},
            "forecast": {"description": "Will it rain?", "parameters": {"type": "object", "properties": {}}},
        }
        self._user_messages = [f"Give the {self.bed} {self.litres} litres, unless rain is forecast."]
        want = {self.bed: self.litres}
        self._message_criteria = [lambda s: s["watered"] == want]
        return self._user_messages[0], {}

    def solution(self):
        call = json.dumps({"name": "water", "arguments": {"bed": self.bed, "litres": self.litres}})
        return [f"<tool_call>{call}</tool_call>", "<answer>done</answer>"]

    def tool_read_moisture(self, bed):
        return str(self._state["moisture"].get(bed))

    def tool_water(self, bed, litres):
        self._state["watered"][bed] = litres
        return "watered"
