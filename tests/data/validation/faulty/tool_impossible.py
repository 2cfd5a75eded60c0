# kind: criterion that no tool can satisfy
# verdict: refuse
# probe: solution, criteria
import json
import random
class TicketEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.ticket = random.Random(seed).randint(100, 999)
        self._state = {"closed": []}
        self._tools = [{"type": "function", "function": {"name": "close_ticket", "description": "Close a ticket.", "parameters": {
            "type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}}}]
        self._user_messages = [f"Close ticket {self.ticket}."]
        self._message_criteria = [lambda state: state["closed"] == [str(self.ticket)]]
        self._current_msg = 0
        return self._user_messages[0], {}
    def solution(self):
        call = {"name": "close_ticket", "arguments": {"number": self.ticket}}
        return [f"<tool_call>{json.dumps(call)}</tool_call>", "<answer>done</answer>"]
    def tool_close_ticket(self, number):
        self._state["closed"].append(int(number))
        return "closed"
