# kind: criterion that raises
# verdict: refuse
# probe: tools, solution, criteria
import json
import random


class HotelDeskEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.guest = self.rng.choice(["Ivo", "Jana", "Karl", "Lena"])
        self.room = self.rng.randint(101, 120)
        self._state = {"guests": {}, "rooms": {r: "free" for r in range(101, 121)}}
        string = {"type": "string"}
        self._tools = [{"type": "function", "function": {"name": "check_in", "description": "Check a guest in.", "parameters": {
            "type": "object", "properties": {"guest": string, "room": {"type": "integer"}}, "required": ["guest", "room"]}}}]
        self._user_messages = [f"Give {self.guest} room {self.room}."]
        guest, room = self.guest, self.room
        self._message_criteria = [lambda state: state["check_ins"][guest] == room]
        return self._user_messages[0], {}

    def solution(self):
        call = json.dumps({"name": "check_in", "arguments": {"guest": self.guest, "room": self.room}})
        return [f"<tool_call>{call}</tool_call>", "<answer>done</answer>"]

    def tool_check_in(self, guest, room):
        if self._state["rooms"].get(room) != "free":
            return "not free"
        self._state["rooms"][room] = "taken"
        self._state["guests"][guest] = room
        return "checked in"
