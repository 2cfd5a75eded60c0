# kind: non-determinism, memory address in the observation
# verdict: refuse
# probe: determinism
import random
import re


class Node:
    def __init__(self, value):
        self.value = value
        self.children = []


class TreeDepthEnv(TextEnv):
    """Prints a node with its default representation."""

    def reset(self, seed=None):
        super().reset(seed)
        nodes = [Node(self.rng.randint(1, 99)) for _ in range(8)]
        parents = {}
        for index in range(1, 8):
            parent = self.rng.randrange(index)
            parents[index] = parent
            nodes[parent].children.append(nodes[index])
        self.sum = sum(node.value for node in nodes if not node.children)
        edges = ", ".join(f"{p}->{c}" for c, p in parents.items())
        values = ", ".join(f"{i}:{node.value}" for i, node in enumerate(nodes))
        return f"Root {nodes[0]}. Edges {edges}. Values {values}. Sum of the leaves? \\boxed{{sum}}", {}

    def solution(self):
        return str(self.sum)

    def step(self, action):
        ok = self.answer(action) == str(self.sum)
        return ("ok" if ok else "no"), float(ok), True, False, {}
