# probe: criteria
# verdict: refuse
# says: raises on every seed and after every call
class OrderEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.order = f"ORD-{self.rng.randint(100, 999)}"
        self._state = {"orders": {self.order: {"status": "new", "items": self.rng.randint(1, 9)}}}
        self._tools = [self._tool("ship_order", "Ship an order.", order_id="string")]
        self._user_messages = [f"Ship order {self.order}."]
        self._message_criteria = [lambda s: s["orders"][self.order]["state"] == "shipped"]
        return self._user_messages[0], {}

    @staticmethod
    def _tool(name, description, **properties):
        return {"type": "function", "function": {"name": name, "description": description, "parameters": {
            "type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()},
            "required": list(properties)}}}

    def tool_ship_order(self, order_id):
        if order_id not in self._state["orders"]:
            return "Error: no such order"
        self._state["orders"][order_id]["status"] = "shipped"
        return "shipped"
