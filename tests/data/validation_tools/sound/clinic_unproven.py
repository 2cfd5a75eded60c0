# proven: false
import json


class ClinicEnv(ToolUseBaseEnv):
    def __init__(self, max_turns=15, **kwargs):
        super().__init__(max_turns=max_turns, **kwargs)

    def reset(self, seed=None):
        super().reset(seed)
        names = self.rng.sample(["Maya Ortiz", "Noel Frei", "Olga Brandt", "Pia Lund", "Quin Adler"], 4)
        self._state = {"patients": {f"PT{self.rng.randint(1000, 9999)}": {"name": name} for name in names},
                       "appointments": []}
        self.patient = self.rng.choice(sorted(self._state["patients"]))
        name = self._state["patients"][self.patient]["name"]
        self.day = f"2025-03-{self.rng.randint(10, 28)}"
        self._tools = {
            "find_patient": {"description": "Find patients by name.", "parameters": {"type": "object", "properties": {
                "name": {"type": "string"}}, "required": ["name"]}},
            "book": {"description": "Book an appointment.", "parameters": {"type": "object", "properties": {
                "patient_id": {"type": "string"}, "day": {"type": "string", "description": "YYYY-MM-DD"}},
                "required": ["patient_id", "day"]}},
        }
        self._user_messages = [f"Please book {name} for {self.day}."]
        self._message_criteria = [lambda s: s["appointments"] == [{"patient": self.patient, "day": self.day}]]
        return self._user_messages[0], {}

    def tool_find_patient(self, name: str):
        return [{"patient_id": key, **value} for key, value in self._state["patients"].items() if value["name"] == name]

    def tool_book(self, patient_id: str, day: str):
        if patient_id not in self._state["patients"]:
            raise ValueError(f"no patient {patient_id}")
        self._state["appointments"].append({"patient": patient_id, "day": day})
        return {"booked": True}
