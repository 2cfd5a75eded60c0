"""Partial credit by share of right fields."""
import json
import random


class AddressParserEnv(TextEnv):
    STREETS = ["Mill Lane", "High Street", "Abbey Road", "Kings Parade"]
    TOWNS = ["Bath", "York", "Ely", "Wells", "Truro"]

    def __init__(self, max_turns=2, **kwargs):
        super().__init__(max_turns)

    def reset(self, seed=None):
        super().reset(seed)
        rng = self.rng
        self.want = {"house": rng.randint(1, 300), "street": rng.choice(self.STREETS), "town": rng.choice(self.TOWNS), "zip": rng.randint(10000, 99999)}
        w = self.want
        text = rng.choice(["{town} {zip}, {street} {house}", "{house} {street}, {zip} {town}", "{street} no. {house} in {town} ({zip})"]).format(**w)
        return f"Turn this address into JSON with the keys house, street, town and zip: {text}", {}

    def solution(self):
        return json.dumps(self.want)

    def step(self, action):
        try:
            data = json.loads(self.answer(action)[:2000])
        except (ValueError, RecursionError):
            return "No JSON.", 0.0, True, False, {}
        if not isinstance(data, dict):
            return "No object.", 0.0, True, False, {}
        hits = sum(str(data.get(k)) == str(v) for k, v in self.want.items())
        return f"{hits} of 4 fields.", hits / 4, True, False, {}
