# probe: criteria
# verdict: warn
# says: condition 1
import json


class PlaylistEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.song = self.rng.choice(["Aria", "Bolero", "Canon", "Dirge", "Elegy"]) + f" {self.rng.randint(2, 99)}"
        self._state = {"queue": [], "volume": 40, "shuffle": False}
        self._tools = [self._tool("add_song", "Queue a song.", title="string"),
                       self._tool("set_shuffle", "Shuffle or not.", on="boolean")]
        self._user_messages = [f"Queue '{self.song}'.", "Turn shuffle off."]
        self._message_criteria = [lambda s: self.song in s["queue"], lambda s: not s["shuffle"]]
        return self._user_messages[0], {}

    def solution(self):
        return [self._call_text("add_song", {"title": self.song}), "<answer>done</answer>"]

    @staticmethod
    def _tool(name, description, **properties):
        return {"type": "function", "function": {"name": name, "description": description, "parameters": {
            "type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()},
            "required": list(properties)}}}

    @staticmethod
    def _call_text(name, arguments):
        return "<tool_call>" + json.dumps({"name": name, "arguments": arguments}) + "</tool_call>"

    def tool_add_song(self, title):
        self._state["queue"].append(title)
        return "queued"

    def tool_set_shuffle(self, on):
        self._state["shuffle"] = bool(on)
        return "ok"
