# proven: true
import json


class BankEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.source, self.target = f"AC{self.rng.randint(1000, 9999)}", f"AC{self.rng.randint(1000, 9999)}"
        self.balance = 2 * self.rng.randint(1000, 9000)
        self._state = {"accounts": {self.source: self.balance, self.target: self.rng.randint(100, 900)}}
        self._tools = [self._tool("balance", "Balance of an account.", account="string"),
                       self._tool("transfer", "Transfer money.", source="string", target="string", amount="integer")]
        self._user_messages = [f"Transfer half of what is on {self.source} to {self.target}."]
        half = self.balance // 2
        self._message_criteria = [lambda s: s["accounts"][self.source] == half]
        return self._user_messages[0], {}

    def solution(self):
        return [self._call_text("balance", {"account": self.source}), self._call_text("transfer", {
            "source": self.source, "target": self.target, "amount": self.balance // 2}), "<answer>done</answer>"]

    @staticmethod
    def _tool(name, description, **properties):
        return {"type": "function", "function": {"name": name, "description": description, "parameters": {
            "type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()},
            "required": list(properties)}}}

    @staticmethod
    def _call_text(name, arguments):
        return "<tool_call>" + json.dumps({"name": name, "arguments": arguments}) + "</tool_call>"

    def tool_balance(self, account):
        return {"account": account, "balance": self._state["accounts"].get(account)}

    def tool_transfer(self, source, target, amount):
        accounts = self._state["accounts"]
        if source not in accounts or target not in accounts or not 0 < int(amount) <= accounts[source]:
            raise ValueError("impossible transfer")
        accounts[source] -= int(amount)
        accounts[target] += int(amount)
        return "transferred"
