# proven: false
class ShopEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.sku, self.units = f"SKU-{self.rng.randint(100, 999)}", self.rng.randint(2, 9)
        self._state = {"orders": {}, "next": self.rng.randint(5000, 9000)}
        self._tools = [self._tool("create_order", "New order.", sku="string", units="integer"),
                       self._tool("pay_order", "Pay an order.", order_id="string")]
        self._user_messages = [f"Order {self.units} of {self.sku}.", "Pay for that order."]
        self._message_criteria = [
            lambda s: any(o["sku"] == self.sku and o["units"] == self.units for o in s["orders"].values()),
            lambda s: [o["paid"] for o in s["orders"].values() if o["sku"] == self.sku and o["units"] == self.units] == [True],
        ]
        return self._user_messages[0], {}

    @staticmethod
    def _tool(name, description, **properties):
        return {"type": "function", "function": {"name": name, "description": description, "parameters": {
            "type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()},
            "required": list(properties)}}}

    def tool_create_order(self, sku, units):
        self._state["next"] += 1
        number = f"ORD-{self._state['next']}"
        self._state["orders"][number] = {"sku": sku, "units": int(units), "paid": False}
        return {"order_id": number}

    def tool_pay_order(self, order_id):
        if order_id not in self._state["orders"]:
            return "Error: no such order"
        self._state["orders"][order_id]["paid"] = True
        return "paid"
