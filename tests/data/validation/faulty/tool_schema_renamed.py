# kind: schema and parameters differ
# verdict: refuse
# probe: tools
import json
import random


class FlightToolsEnv(ToolUseBaseEnv):
    CITIES = ["Oslo", "Rome", "Cairo", "Lima", "Perth"]

    def reset(self, seed=None):
        super().reset(seed)
        rng = random.Random(seed)
        self.origin, self.goal = rng.sample(self.CITIES, 2)
        self.day = rng.randint(1, 28)
        self._state = {"booked": []}
        self._tools = {
            "search_flights": {"description": "Flights of a day.", "parameters": {"type": "object", "properties": {
                "origin": {"type": "string"}, "destination": {"type": "string"}, "day": {"type": "integer"}},
                "required": ["origin", "destination", "day"]}},
            "book": {"description": "Book a flight.", "parameters": {"type": "object", "properties": {
                "flight": {"type": "string"}}, "required": ["flight"]}},
        }
        self._user_messages = [f"Book me from {self.origin} to {self.goal} on the {self.day}th."]
        number = f"{self.origin[:2]}{self.goal[:2]}{self.day}".upper()
        self._message_criteria = [lambda s: s["booked"] == [number]]
        self.number = number
        return self._user_messages[0], {}

    def solution(self):
        call = json.dumps({"name": "book", "arguments": {"flight": self.number}})
        return [f"<tool_call>{call}</tool_call>", "<answer>done</answer>"]

    def tool_search_flights(self, from_city, to_city, day):
        return f"{from_city[:2]}{to_city[:2]}{day}".upper()

    def tool_book(self, flight):
        self._state["booked"].append(flight)
        return "booked"
