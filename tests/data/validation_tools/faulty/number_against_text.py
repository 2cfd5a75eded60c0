# probe: criteria
# verdict: refuse
# says: a number as text
class SeatEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.row, self.guest = self.rng.randint(1, 40), self.rng.choice(["Ida", "Jon", "Kim", "Lev"])
        self._state = {"seats": {}}
        self._tools = [self._tool("assign_seat", "Give a guest a row.", guest="string", row="integer")]
        self._user_messages = [f"Please put {self.guest} into row {self.row}."]
        self._message_criteria = [lambda s: s["seats"].get(self.guest) == str(self.row)]
        return self._user_messages[0], {}

    @staticmethod
    def _tool(name, description, **properties):
        return {"type": "function", "function": {"name": name, "description": description, "parameters": {
            "type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()},
            "required": list(properties)}}}

    def tool_assign_seat(self, guest, row):
        self._state["seats"][guest] = int(row)
        return "assigned"
