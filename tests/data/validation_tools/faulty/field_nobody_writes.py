# probe: criteria
# verdict: refuse
# says: can never hold: it reads state['approved']
class LeaveEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.who, self.days = self.rng.choice(["Ann", "Ben", "Cleo", "Dov"]), self.rng.randint(2, 20)
        self._state = {"requests": [], "approved": [], "staff": ["Ann", "Ben", "Cleo", "Dov"]}
        self._tools = [self._tool("request_leave", "Ask for leave.", who="string", days="integer"),
                       self._tool("list_staff", "Names of all.")]
        self._user_messages = [f"Give {self.who} {self.days} days of leave."]
        self._message_criteria = [lambda s: [self.who, self.days] in s["approved"]]
        return self._user_messages[0], {}

    @staticmethod
    def _tool(name, description, **properties):
        return {"type": "function", "function": {"name": name, "description": description, "parameters": {
            "type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()},
            "required": list(properties)}}}

    def tool_request_leave(self, who, days):
        self._state["requests"].append([who, int(days)])
        return "requested"

    def tool_list_staff(self):
        return ", ".join(self._state["staff"])
