class DepotReturnsEnv(ToolUseBaseEnv):
    """Parcels of a depot, in the style of the published pools: no imports, a listing of tools, lambdas as criteria."""

    def __init__(self, max_turns=12, **kwargs):
        super().__init__(max_turns=max_turns, **kwargs)
        self.reset()

    def reset(self, seed=None):
        random.seed(seed)
        self.turn_count = 0
        self._current_msg = 0
        self._call_history = []
        names = random.sample(["Ines", "Jonas", "Kofi", "Lena", "Mara"], 3)
        parcels = {}
        for name in names:
            parcels["P" + str(random.randint(100, 999))] = {"owner": name, "status": "shelf", "weight": random.randint(1, 9)}
        self._state = {"parcels": parcels, "fees": {}}
        first, second = list(parcels)[:2]
        self._first, self._second = first, second
        self._fee = parcels[second]["weight"] * 2
        self._tools = {
            "search_parcels": {
                "description": "Find the parcels of an owner",
                "parameters": {"type": "object", "properties": {"owner": {"type": "string"}}, "required": ["owner"]},
            },
            "set_status": {
                "description": "Set the status of a parcel: shelf, returned or held",
                "parameters": {
                    "type": "object",
                    "properties": {"parcel_id": {"type": "string"}, "status": {"type": "string"}},
                    "required": ["parcel_id", "status"],
                },
            },
            "charge_fee": {
                "description": "Charge an owner",
                "parameters": {
                    "type": "object",
                    "properties": {"owner": {"type": "string"}, "amount": {"type": "integer"}},
                    "required": ["owner", "amount"],
                },
            },
            "opening_hours": {"description": "When the depot is open", "parameters": {"type": "object", "properties": {}}},
        }
        owner_1, owner_2 = parcels[first]["owner"], parcels[second]["owner"]
        self._owners = [owner_1, owner_2]
        self._user_messages = [
            f"Please send the parcel of {owner_1} back.",
            f"Hold the parcel of {owner_2}, and charge {owner_2} two euros for each kilogram of it.",
        ]
        self._message_criteria = [
            lambda s: s["parcels"][first]["status"] == "returned",
            lambda s: s["parcels"][second]["status"] == "held" and s["fees"].get(owner_2) == self._fee,
        ]
        return self._user_messages[0], {"tools": len(self._tools)}

    def tool_search_parcels(self, owner):
        found = [dict(parcel, parcel_id=key) for key, parcel in self._state["parcels"].items() if parcel["owner"] == owner]
        return json.dumps(found)

    def tool_set_status(self, parcel_id, status):
        if parcel_id not in self._state["parcels"]:
            return "Error: no such parcel"
        self._state["parcels"][parcel_id]["status"] = status
        return "ok"

    def tool_charge_fee(self, owner, amount):
        self._state["fees"][owner] = amount
        return "charged"

    def tool_opening_hours(self):
        return "8 to 18"
