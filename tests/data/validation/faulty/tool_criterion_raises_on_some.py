# kind: criterion that raises, on some seeds
# verdict: refuse
# probe: tools, solution, criteria
import json
import random


class PlaylistEnv(ToolUseBaseEnv):
    """Move a song to the top; the criterion reads a list that is empty on some seeds."""

    SONGS = ["Blue Hour", "Sand", "Harbour", "Nine Lives", "Paper Moon"]

    def reset(self, seed=None):
        super().reset(seed)
        rng = random.Random(seed)
        self.song = rng.choice(self.SONGS)
        liked = rng.sample(self.SONGS, rng.randint(0, 2))
        self._state = {"queue": rng.sample(self.SONGS, 5), "liked": liked}
        self._tools = {"play_next": {"description": "Put a song at the head of the queue.", "parameters": {
            "type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}}}
        self._user_messages = [f"Play '{self.song}' next, please."]
        song = self.song
        self._message_criteria = [lambda s: s["queue"][0] == song and s["liked"][0] is not None]
        return self._user_messages[0], {}

    def solution(self):
        call = json.dumps({"name": "play_next", "arguments": {"title": self.song}})
        return [f"<tool_call>{call}</tool_call>", "<answer>done</answer>"]

    def tool_play_next(self, title):
        if title not in self._state["queue"]:
            return "not in the queue"
        self._state["queue"].remove(title)
        self._state["queue"].insert(0, title)
        return "queued"
