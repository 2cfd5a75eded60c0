from typing import Literal, Optional


class GreenhouseEnv(ToolEnv):
    """Water the beds of a greenhouse and report the driest one; typed methods are the tools."""

    BEDS = ["basil", "chives", "dill", "mint", "sage", "thyme"]

    def reset(self, seed=None):
        super().reset(seed)
        beds = self.rng.sample(self.BEDS, 4)
        levels = self.rng.sample(range(10, 70), 4)
        self._state = {"moisture": dict(zip(beds, levels)), "valve": "closed", "asked": 0}
        self._thirsty = [bed for bed, level in zip(beds, levels) if level < 40] or [beds[levels.index(min(levels))]]
        driest = beds[levels.index(min(levels))]
        thirsty = list(self._thirsty)
        self._expected_answer = driest
        self._user_messages = [
            "Open the valve, slowly please.",
            "Water every bed below 40 percent (or the driest one, if none is), each of them once, with 30 units.",
            "Close the valve again. Then answer with the name of the bed that was driest before.",
        ]
        before = dict(self._state["moisture"])
        self._message_criteria = [
            lambda state: state["valve"] == "slow" or state["asked"] > 0,
            lambda state: all(state["moisture"][bed] == before[bed] + 30 * (bed in thirsty) for bed in before),
            lambda state: state["valve"] == "closed" and all(state["moisture"][bed] >= 40 for bed in thirsty),
        ]
        return self._user_messages[0], {}

    def tool_read(self, bed: Optional[str] = None) -> dict:
        """Moisture in percent.

        bed: one bed; all of them if left out
        """
        return self._state["moisture"] if bed is None else {bed: self._state["moisture"][bed]}

    def tool_valve(self, position: Literal["closed", "slow", "fast"]) -> str:
        """Set the main valve."""
        if position not in ("closed", "slow", "fast"):
            raise ValueError("the valve knows closed, slow and fast")
        self._state["valve"] = position
        return f"valve {position}"

    def tool_water(self, bed: str, units: int) -> str:
        """Water one bed while the valve is open."""
        if self._state["valve"] == "closed":
            raise ValueError("the valve is closed")
        self._state["asked"] += 1
        self._state["moisture"][bed] += units
        return f"{bed}: {self._state['moisture'][bed]}"

    def tool_weather(self, city: str) -> str:
        """The weather of a city (of no use here)."""
        return f"{city}: cloudy"
