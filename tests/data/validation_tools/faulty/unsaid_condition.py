# probe: criteria
# verdict: refuse
# says: 1 instructions and 2 success conditions
class ShelfEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.item, self.shelf = self.rng.choice(["vase", "clock", "globe", "lamp"]), self.rng.randint(2, 30)
        self._state = {"shelves": {}, "labels": {}}
        self._tools = [self._tool("put", "Put an item on a shelf.", item="string", shelf="integer"),
                       self._tool("label", "Label a shelf.", shelf="integer", text="string")]
        self._user_messages = [f"Put the {self.item} on shelf {self.shelf}."]
        self._message_criteria = [lambda s: s["shelves"].get(self.item) == self.shelf, lambda s: s["labels"].get(self.shelf) == self.item]
        return self._user_messages[0], {}

    @staticmethod
    def _tool(name, description, **properties):
        return {"type": "function", "function": {"name": name, "description": description, "parameters": {
            "type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()},
            "required": list(properties)}}}

    def tool_put(self, item, shelf):
        self._state["shelves"][item] = int(shelf)
        return "done"

    def tool_label(self, shelf, text):
        self._state["labels"][int(shelf)] = text
        return "done"
