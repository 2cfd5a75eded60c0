# kind: statement and checker disagree, solution() follows the checker
# verdict: admitted
# probe: judge
class QueueEnv(TextEnv):
    def __init__(self, max_turns=1, **kwargs):
        super().__init__(max_turns, **kwargs)
        self.right = ""

    def reset(self, seed=None):
        super().reset(seed)
        first, count = self.rng.randint(11, 60), self.rng.randint(5, 25)
        self.right = str(first + count)
        return f"Tickets are numbered without gaps. The first is {first}, and {count} tickets are sold. What number has the last one? Answer with \\boxed{{number}}.", {}

    def step(self, action):
        self.turn += 1
        reward = float(verify_answer(self.right, self.answer(action)))
        return ("Right." if reward else "Wrong."), reward, True, False, {}

    def solution(self):
        return self.right
