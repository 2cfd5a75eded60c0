"""Stand-ins for the bases of an RLVE-style collection: seeded generator, prompt, scorer, parameter controller."""

import copy
import random
import re


class TimeoutException(Exception):
    pass


def timeout(seconds):
    return lambda function: function


class ParameterController:
    """Nothing of its own."""


class VerifiableEnvironment:
    def __init__(self, answer_markers=None):
        self.seed, self.parameter = None, None
        self.answer_markers = answer_markers or ("<answer>", "</answer>")
        self.passing_reward_threshold = 1.0

    def generator(self, seed, parameter=None, timeout_second=10):
        self.seed, self.parameter = seed, copy.deepcopy(parameter) or {}
        random.seed(seed)
        self._generate()
        return self.parameter is not None

    def prompt_generator(self):
        return self._prompt_generate()

    def processor(self, output):
        begin, end = map(re.escape, self.answer_markers)
        answers = re.findall(f"{begin}(.*?){end}", output, re.DOTALL)
        return self._process(answers[-1] if answers else None)
