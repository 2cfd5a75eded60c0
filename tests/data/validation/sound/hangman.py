import random
class HangmanEnv(TextEnv):
    WORDS = "planet rocket violin jungle winter summer bridge castle dragon forest garden hammer island jacket".split()
    def reset(self, seed=None):
        super().reset(seed)
        self.word = self.rng.choice(self.WORDS); self.seen = set(); self.lives = 7
        return f"Hangman: {self.mask()}. Say a letter or the word.", {}
    def mask(self): return " ".join(c if c in self.seen else "_" for c in self.word)
    def solution(self): return self.word
    def hint(self): return f"The word has {len(set('aeiou') & set(self.word))} different vowels; start with those."
    def step(self, action):
        self.turn += 1
        a = self.answer(action).strip().lower()
        if a == self.word: return "Right", 1.0, True, False, {}
        if len(a) == 1 and a in self.word: self.seen.add(a)
        else: self.lives -= 1
        if self.seen >= set(self.word): return "Right", 1.0, True, False, {}
        if self.lives <= 0: return f"Lost. The word was {self.word}.", 0.0, True, False, {}
        return f"{self.mask()} lives {self.lives}", 0.0, False, self.turn >= 20, {}
