# probe: criteria
# verdict: warn
# says: the final answer is not paid
class BellEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.times = self.rng.randint(2, 60)
        self._state = {"alarm": 0}
        self._tools = [self._tool("set_alarm", "Set the alarm.", minutes="integer")]
        self._user_messages = [f"Ring the bell in {self.times} minutes."]
        self._message_criteria = [lambda s: s["alarm"] == self.times]
        self._expected_answer = None
        return self._user_messages[0], {}

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, 0.9 * reward, terminated, truncated, info

    @staticmethod
    def _tool(name, description, **properties):
        return {"type": "function", "function": {"name": name, "description": description, "parameters": {
            "type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()},
            "required": list(properties)}}}

    def tool_set_alarm(self, minutes):
        self._state["alarm"] = int(minutes)
        return "set"
