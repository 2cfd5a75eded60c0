"""Published style: dict of tools, expected answer, module-level random."""
import json
import random
from typing import Dict, Tuple


class WeatherStationEnv(ToolUseBaseEnv):
    STATIONS = ["Alp", "Bay", "Cape", "Dale", "Edge", "Fen"]

    def __init__(self, max_turns=14, **kwargs):
        super().__init__(max_turns=max_turns, **kwargs)
        self.reset()

    def reset(self, seed=None) -> Tuple[str, Dict]:
        random.seed(seed)
        self.turn_count = 0
        self._call_history = []
        self._state = {"readings": {s: random.randint(-150, 350) for s in self.STATIONS}}
        self.asked = random.sample(self.STATIONS, 3)
        self._tools = {
            "list_stations": {"description": "Names of all stations.", "parameters": {"type": "object", "properties": {}}},
            "read": {"description": "Temperature in tenths of a degree.", "parameters": {
                "type": "object", "properties": {"station": {"type": "string", "description": "a name from list_stations"}}, "required": ["station"]}},
        }
        self._expected_answer = str(max(self._state["readings"][s] for s in self.asked))
        return f"Which is the highest reading among {', '.join(self.asked)}? Finish with <answer>tenths</answer>.", {}

    def solution(self):
        calls = [json.dumps({"name": "read", "arguments": {"station": s}}) for s in self.asked]
        return [f"<tool_call>{c}</tool_call>" for c in calls] + [f"<answer>{self._expected_answer}</answer>"]

    def tool_list_stations(self):
        return ", ".join(self.STATIONS)

    def tool_read(self, station):
        if station not in self._state["readings"]:
            raise ValueError(f"no station {station!r}")
        return str(self._state["readings"][station])
