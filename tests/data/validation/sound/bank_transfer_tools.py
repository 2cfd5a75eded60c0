"""Tools whose schema lists the accounts of this very episode; three messages, one to be declined."""
import json
import random


class BankToolsEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        people = self.rng.sample(["anna", "bert", "carl", "doris", "emma", "fritz"], 4)
        self.a, self.b, self.c = people[:3]
        self.sum = self.rng.randint(20, 80)
        self._state = {"balance": {p: self.rng.randint(100, 300) for p in people}, "declined": False}
        account = {"type": "string", "enum": sorted(people)}
        self._tools = [
            self._make("balance", {"account": account}),
            self._make("transfer", {"source": account, "target": account, "amount": {"type": "integer", "minimum": 1}}),
            self._make("decline", {"reason": {"type": "string"}}),
        ]
        start, a, b, amount = dict(self._state["balance"]), self.a, self.b, self.sum
        self._user_messages = [
            f"Move {amount} from {a} to {b}.", f"Now lend {self.c} two million, if the house rule (no sum above 1000) allows it; decline otherwise."]
        self._message_criteria = [
            lambda s: s["balance"][a] == start[a] - amount and s["balance"][b] == start[b] + amount,
            lambda s: s["declined"],
        ]
        return self._user_messages[0], {}

    def _make(self, name, properties):
        return {"type": "function", "function": {"name": name, "description": f"{name} an account", "parameters": {
            "type": "object", "properties": properties, "required": list(properties)}}}

    def solution(self):
        calls = [("transfer", {"source": self.a, "target": self.b, "amount": self.sum}), ("decline", {"reason": "above the limit"})]
        return [f"<tool_call>{json.dumps({'name': n, 'arguments': v})}</tool_call>" for n, v in calls] + ["<answer>done</answer>"]

    def tool_balance(self, account):
        return str(self._state["balance"].get(account, "no such account"))

    def tool_transfer(self, source, target, amount):
        balance = self._state["balance"]
        if source not in balance or target not in balance or not 0 < int(amount) <= balance[source]:
            return "refused"
        balance[source] -= int(amount)
        balance[target] += int(amount)
        return "moved"

    def tool_decline(self, reason):
        if self._current_msg < 1:
            return "There is nothing to decline yet."
        self._state["declined"] = True
        return "declined"
