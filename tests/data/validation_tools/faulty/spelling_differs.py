# probe: criteria
# verdict: warn
# says: would hold with
class TicketEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.ticket = f"T-{self.rng.randint(100, 999)}"
        self._state = {"tickets": {self.ticket: "new"}}
        self._tools = [self._tool("set_status", "Change a ticket.", ticket="string", status="string")]
        self._user_messages = [f"Set ticket {self.ticket} to 'Resolved'."]
        self._message_criteria = [lambda s: s["tickets"][self.ticket] == "Resolved"]
        return self._user_messages[0], {}

    @staticmethod
    def _tool(name, description, **properties):
        return {"type": "function", "function": {"name": name, "description": description, "parameters": {
            "type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()},
            "required": list(properties)}}}

    def tool_set_status(self, ticket, status):
        if ticket not in self._state["tickets"]:
            raise ValueError("unknown ticket")
        self._state["tickets"][ticket] = status.lower()
        return "ok"
