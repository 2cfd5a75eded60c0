# probe: criteria
# verdict: refuse
# says: holds at reset already on 8 of 8 seeds
class ThermostatEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.goal = self.rng.randint(15, 28)
        self._state = {"target": self.goal, "room": self.rng.choice(["den", "loft", "study", "hall"]), "fan": "off"}
        self._tools = [self._tool("set_target", "Set the temperature.", degrees="integer"),
                       self._tool("set_fan", "Switch the fan.", mode="string")]
        self._user_messages = [f"Set the {self._state['room']} to {self.goal} degrees.", "Switch the fan off."]
        self._message_criteria = [lambda s: s["target"] == self.goal, lambda s: s["fan"] == "off"]
        return self._user_messages[0], {}

    @staticmethod
    def _tool(name, description, **properties):
        return {"type": "function", "function": {"name": name, "description": description, "parameters": {
            "type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()},
            "required": list(properties)}}}

    def tool_set_target(self, degrees):
        self._state["target"] = int(degrees)
        return "ok"

    def tool_set_fan(self, mode):
        self._state["fan"] = mode
        return "ok"
