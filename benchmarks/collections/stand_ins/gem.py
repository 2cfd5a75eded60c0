"""Stand-ins for the bases of a GEM-style collection: an environment that seeds the module-level generator."""

import random

TERMINAL_STATE = "<terminal>"


class LanguageGameReward:
    success_reward = 1.0
    internal_step_reward = 0.0
    fail_reward = 0.0
    invalid_action_reward = 0.0
    format_error_reward = -0.1


class Env:
    def reset(self, seed=None):
        if seed is not None:
            random.seed(seed)

    @property
    def unwrapped(self):
        return self

    def spawn(self, same_state=False, **kwargs):
        raise NotImplementedError


def extract_last_boxed_answer(text):
    begin = text.rfind("\\boxed{")
    if begin < 0:
        return None
    depth = 0
    for index in range(begin + 6, len(text)):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if not depth:
            return text[begin + 7 : index]
    return None
