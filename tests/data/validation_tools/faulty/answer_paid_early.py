# probe: criteria
# verdict: refuse
# says: while condition 1 does not hold
import json


class PublishEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.page = f"page-{self.rng.randint(100, 999)}"
        self._state = {"published": [], "announced": []}
        self._tools = [self._tool("publish", "Publish a page.", page="string"),
                       self._tool("announce", "Announce a page.", page="string")]
        self._user_messages = [f"Publish {self.page}.", f"Announce {self.page}."]
        self._message_criteria = [lambda s: self.page in s["published"], lambda s: self.page in s["announced"]]
        return self._user_messages[0], {}

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        if terminated and self._message_criteria[0](self._state):
            reward = 1.0
        return observation, reward, terminated, truncated, info

    def solution(self):
        return [self._call_text("publish", {"page": self.page}), self._call_text("announce", {"page": self.page}),
                "<answer>done</answer>"]

    @staticmethod
    def _tool(name, description, **properties):
        return {"type": "function", "function": {"name": name, "description": description, "parameters": {
            "type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()},
            "required": list(properties)}}}

    @staticmethod
    def _call_text(name, arguments):
        return "<tool_call>" + json.dumps({"name": name, "arguments": arguments}) + "</tool_call>"

    def tool_publish(self, page):
        self._state["published"].append(page)
        return "published"

    def tool_announce(self, page):
        self._state["announced"].append(page)
        return "announced"
