# kind: criterion true at reset
# verdict: refuse
# probe: know_nothing, tools, criteria
import json
import random


class CalendarToolsEnv(ToolUseBaseEnv):
    """Free a room. The predicate asks that no meeting of 'Zoe' is booked, which is so from the start."""

    ROOMS = ["Oak", "Elm", "Ash"]

    def __init__(self, max_turns=10, **kwargs):
        super().__init__(max_turns=max_turns, **kwargs)

    def reset(self, seed=None):
        super().reset(seed)
        rng = random.Random(seed)
        self.room, self.hour = rng.choice(self.ROOMS), rng.randint(8, 17)
        self._state = {"bookings": [{"room": self.room, "hour": self.hour, "who": "Zora"}]}
        self._tools = {
            "list_bookings": {"description": "All bookings.", "parameters": {"type": "object", "properties": {}}},
            "cancel": {"description": "Cancel a booking.", "parameters": {"type": "object", "properties": {
                "room": {"type": "string"}, "hour": {"type": "integer"}}, "required": ["room", "hour"]}},
        }
        self._user_messages = [f"Please cancel Zora's meeting in room {self.room} at {self.hour}."]
        self._message_criteria = [lambda s: all(b["who"] != "Zoe" for b in s["bookings"])]
        return self._user_messages[0], {}

    def solution(self):
        call = {"name": "cancel", "arguments": {"room": self.room, "hour": self.hour}}
        return [f"<tool_call>{json.dumps(call)}</tool_call>", "<answer>done</answer>"]

    def tool_list_bookings(self):
        return json.dumps(self._state["bookings"])

    def tool_cancel(self, room, hour):
        before = len(self._state["bookings"])
        self._state["bookings"] = [b for b in self._state["bookings"] if (b["room"], b["hour"]) != (room, int(hour))]
        return f"{before - len(self._state['bookings'])} cancelled"
