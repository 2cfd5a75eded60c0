# proven: false
class LampEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.room = self.rng.choice(["kitchen", "nursery", "veranda", "workshop"])
        self.colour, self.level = self.rng.choice(["amber", "cyan", "violet"]), self.rng.randint(5, 95)
        self._state = {"lamps": {room: {"colour": "white", "level": 0} for room in ["kitchen", "nursery", "veranda", "workshop"]}}
        self._tools = {"set_lamp": {"description": "Change a lamp.", "parameters": {"type": "object", "properties": {
            "room": {"type": "string", "enum": ["kitchen", "nursery", "veranda", "workshop"]},
            "colour": {"type": "string", "enum": ["white", "amber", "cyan", "violet"]},
            "level": {"type": "integer"}}, "required": ["room"]}}}
        self._user_messages = [f"Make the {self.room} lamp {self.colour}.", f"Dim the {self.room} lamp to {self.level}."]
        self._message_criteria = [lambda s: s["lamps"][self.room]["colour"] == self.colour,
                                  lambda s: s["lamps"][self.room]["level"] == self.level]
        return self._user_messages[0], {}

    def tool_set_lamp(self, room, colour=None, level=None, **more):
        lamp = self._state["lamps"][room]
        lamp["colour"] = colour or lamp["colour"]
        lamp["level"] = lamp["level"] if level is None else int(level)
        return lamp
