# kind: criterion that raises
# verdict: refuse
# probe: tools, criteria
import random
class TicketEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        rng = random.Random(seed)
        self.ticket = rng.randint(100, 999)
        self._state = {"closed": []}
        self._tools = [{"type": "function", "function": {"name": "close_ticket", "description": "Close a ticket.", "parameters": {
            "type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}}}]
        self._user_messages = [f"Close ticket {self.ticket}."]
        self._message_criteria = [lambda state: state["tickets"][0]["status"] == "closed"]
        self._current_msg = 0
        return self._user_messages[0], {}
    def tool_close_ticket(self, number):
        self._state["closed"].append(int(number))
        return "closed"
