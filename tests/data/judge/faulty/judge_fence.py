# kind: statement and checker disagree, solution() follows the checker
# verdict: admitted
# probe: judge
class FenceEnv(TextEnv):
    def __init__(self, max_turns=1, **kwargs):
        super().__init__(max_turns, **kwargs)
        self.right = ""

    def reset(self, seed=None):
        super().reset(seed)
        posts, gap = self.rng.randint(6, 40), self.rng.randint(2, 9)
        self.right = str(posts * gap)
        return f"{posts} posts stand in a straight row, {gap} m apart. How many metres lie between the first and the last? Answer with \\boxed{{metres}}.", {}

    def step(self, action):
        self.turn += 1
        reward = float(verify_answer(self.right, self.answer(action)))
        return ("Right." if reward else "Wrong."), reward, True, False, {}

    def solution(self):
        return self.right
