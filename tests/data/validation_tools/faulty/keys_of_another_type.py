# probe: criteria
# verdict: warn
# says: These never succeeded: close_issue
class IssueEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.issue = self.rng.randint(100, 999)
        self._state = {"issues": {self.issue: {"status": "open"}, self.issue + 1: {"status": "open"}}}
        self._tools = [self._tool("close_issue", "Close an issue.", issue_id="string")]
        self._user_messages = [f"Close issue {self.issue}."]
        self._message_criteria = [lambda s: s["issues"][self.issue]["status"] == "closed"]
        return self._user_messages[0], {}

    @staticmethod
    def _tool(name, description, **properties):
        return {"type": "function", "function": {"name": name, "description": description, "parameters": {
            "type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()},
            "required": list(properties)}}}

    def tool_close_issue(self, issue_id):
        if issue_id not in self._state["issues"]:
            return f"Error: no issue {issue_id}"
        self._state["issues"][issue_id]["status"] = "closed"
        return "closed"
