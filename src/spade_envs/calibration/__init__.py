"""How hard is an environment for a player: plain and hinted plays, win rate, regret, and how sure that is."""

from .calibrate import Calibration, CalibrationConfig, calibrate
from .intervals import difference_interval, mean_interval, wilson

__all__ = ["Calibration", "CalibrationConfig", "calibrate", "difference_interval", "mean_interval", "wilson"]
