# kind: schema, two tools of one name
# verdict: refuse
# probe: tools
import json
import random


class RecipeBoxEnv(ToolEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.dish, self.people = self.rng.choice(["soup", "stew", "curry", "pie"]), self.rng.randint(2, 12)
        self._state = {"scaled": {}}
        dish = {"dish": {"type": "string"}}
        self._tools = [
            {"type": "function", "function": {"name": "recipe", "description": "Show a recipe.", "parameters": {
                "type": "object", "properties": dish, "required": ["dish"]}}},
            {"type": "function", "function": {"name": "recipe", "description": "Scale a recipe.", "parameters": {
                "type": "object", "properties": {**dish, "people": {"type": "integer"}}, "required": ["dish"]}}},
        ]
        self._user_messages = [f"Scale the {self.dish} for {self.people} people."]
        want = (self.dish, self.people)
        self._message_criteria = [lambda s: s["scaled"].get(want[0]) == want[1]]
        return self._user_messages[0], {}

    def solution(self):
        call = json.dumps({"name": "recipe", "arguments": {"dish": self.dish, "people": self.people}})
        return [f"<tool_call>{call}</tool_call>", "<answer>done</answer>"]

    def tool_recipe(self, dish, people=4):
        self._state["scaled"][dish] = people
        return f"{dish} for {people}"
