"""Made-up programs that differ the way real ones do: in subject, words, mechanics, constants and length.

A program is a topic of twelve words, one to three mechanics out of twelve with their own constants, two to six
methods of random shape, and invented proper names. Nothing here is meant to be played; the text is what a memory sees.
"""

from __future__ import annotations

import random

from spade_envs.record import EnvironmentRecord, PlayStatistics

SKILLS = (
    "Mathematical Reasoning",
    "Logical Deduction",
    "Spatial Reasoning",
    "Pattern Recognition",
    "Optimization",
    "Causal Inference",
)

_TOPICS = """
auction bid reserve seller buyer lot hammer price catalogue paddle estimate gavel
maze corridor wall exit compass lantern room door key trapdoor torch map
cipher letter alphabet shift codebook message plaintext decode telegraph spy symbol frequency
garden seed soil bloom harvest irrigation frost fertiliser row greenhouse weed pollen
river dam flood canal reservoir valve upstream lock barge sluice delta current
molecule bond reaction acid catalyst reagent flask titration isotope ion solvent yield
bacteria colony antibiotic culture dose mutation petri resistance strain enzyme host incubation
election ballot candidate district coalition turnout poll runoff majority voter seat mandate
glacier ice moraine core temperature sediment melt climate sample layer crevasse expedition
volcano magma eruption ash vent seismograph crater lava alert evacuation tremor plume
satellite orbit thruster antenna telemetry eclipse downlink payload debris perigee inclination burn
robot gripper conveyor sensor joint torque calibration arm bin obstacle path battery
printer queue page toner tray job spool duplex jam priority driver network
elevator floor shaft passenger button cable schedule capacity idle lobby counterweight door
theatre scene actor rehearsal stage prop cue costume script curtain audience spotlight
violin string bow scale chord tempo octave melody score rest rhythm fugue
recipe ingredient oven simmer spice dough kitchen portion allergen menu whisk broth
chess bishop rook pawn castle checkmate opening sacrifice square board endgame fork
train platform timetable signal junction freight carriage delay track shunt depot driver
knapsack weight item treasure camel load value backpack caravan bundle spare limit
forest wolf deer trail ranger sapling canopy fungus logging survey beetle fire
island ferry lighthouse reef tide harbour anchor gull cove pilot storm buoy
market trader wheat ledger barter coin stall tariff guild monopoly dividend broker
hospital triage nurse ward symptom diagnosis bed ambulance surgeon infusion chart fever
library shelf author borrower archive index manuscript catalogue librarian loan edition fine
planet colony oxygen dome rover crater airlock greenhouse rocket gravity habitat dust
castle siege moat archer catapult drawbridge knight banner rampart tunnel granary truce
traffic lane intersection light pedestrian bus detour congestion roundabout cyclist toll ramp
bridge girder truss span cable pillar wind resonance deck bolt inspector arch
dinosaur fossil stratum quarry bone plaster excavation tooth museum amber claw era
detective alibi suspect weapon witness fingerprint butler motive mansion clue confession poison
circuit resistor capacitor voltage switch diode amplifier ground solder relay fuse transistor
weather forecast barometer cloud humidity front cyclone rainfall balloon radar drizzle drought
bakery loaf yeast crust proof butter croissant mixer batch counter flour glaze
orchard apple graft prune cider ladder crate blossom pest picker rootstock press
factory assembly defect shift foreman machine inventory lathe quota belt pallet inspection
submarine sonar periscope torpedo ballast depth hull pressure captain reactor crew trench
beehive queen drone nectar swarm honeycomb keeper smoker mite brood foraging wax
school pupil timetable teacher classroom exam bell locker grade chalk recess roster
airport runway gate luggage boarding control tower departure fuel customs hangar taxi
mosaic tile pattern grout symmetry rotation reflection colour tessellation border motif hexagon
lottery ticket draw odds jackpot prize number wheel expected urn ball sample
calendar week month leap holiday moon eclipse reminder appointment festival season solstice
vault dial combination alarm guard blueprint laser heist tumbler deposit code lever
genome gene allele chromosome trait cross pedigree dominant recessive offspring marker sequence
compiler token parser grammar register stack opcode branch loop memory label optimise
"""
_TOPIC_WORDS = [line.split() for line in _TOPICS.strip().splitlines()]
_SYLLABLE_TEXT = "ka ro mi ten val sor di lu bra no fen ash quo ri tal ve zu mar el cho pri gan do wi"
_SYLLABLES = _SYLLABLE_TEXT.split()
_VERB_TEXT = "find choose guess deduce arrange balance trace predict repair route rank split merge cover avoid match"
_VERBS = _VERB_TEXT.split()
_GOALS = (
    "before the {2} runs out",
    "with the fewest moves",
    "while the {3} stays hidden",
    "given {n} clues about each {2}",
    "so that no two share a {3}",
    "and report the total as a number",
    "although the {2} may lie",
    "under a budget of {n}",
)

_MECHANICS = (
    """
    def _{0}_grid(self):
        self.{0} = [[self.rng.randint(0, {n}) for _ in range({m})] for _ in range({m})]
        self.{1} = sum(max(row) for row in self.{0}) % {p}
        return "\\n".join(" ".join(str(cell) for cell in row) for row in self.{0})
""",
    """
    def _{0}_path(self, start, goal):
        frontier, seen = [(0, start)], {{start: 0}}
        while frontier:
            cost, {1} = heapq.heappop(frontier)
            if {1} == goal:
                return cost
            for step in self.{2}.get({1}, ()):
                total = cost + {n} + len(step) % {m}
                if total < seen.get(step, {p}):
                    seen[step] = total
                    heapq.heappush(frontier, (total, step))
        return -1
""",
    """
    def _best_{0}(self, {1}s, limit={n}):
        table = [0] * (limit + 1)
        for weight, value in {1}s:
            for room in range(limit, weight - 1, -1):
                table[room] = max(table[room], table[room - weight] + value * {m})
        return table[limit]
""",
    """
    def _encode_{0}(self, text):
        shift = (self.{1} * {n} + {m}) % 26
        return "".join(chr((ord(c) - 97 + shift) % 26 + 97) if c.isalpha() else c for c in text.lower())
""",
    """
    def _{0}_rules(self):
        rules = []
        for {1} in ("{2}", "{3}", "{4}"):
            first, second = self.rng.sample(range(1, {n} + 4), 2)
            rules.append(f"The {{{1}}} comes {{'before' if first < second else 'after'}} the {5}.")
            self.order[{1}] = (first, second)
        return " ".join(rules)
""",
    """
    def _spread_{0}(self, days={m}):
        healthy, {1} = {p}, {n}
        for day in range(days):
            new = int(min(healthy, {1} * self.rate))
            healthy, {1} = healthy - new, {1} + new - {1} // {m}
            self.history.append({1})
        return self.history[-1]
""",
    """
    def _match_{0}(self, guess):
        black = sum(a == b for a, b in zip(guess, self.{1}))
        common = sum(min(guess.count(c), self.{1}.count(c)) for c in set(guess))
        return f"{{black}} {2} and {{common - black}} {3} out of {n}"
""",
    """
    def _schedule_{0}(self):
        jobs = sorted(self.{1}, key=lambda job: (job["{2}"], -job["{3}"]))
        clock = 0
        for job in jobs:
            clock += job["{3}"] + {n}
            if clock > job["{2}"] * {m}:
                self.late.append(job["name"])
        return len(self.late)
""",
    """
    def _simulate_{0}(self, program):
        stack = [{n}]
        for word in program.split():
            if word.isdigit():
                stack.append(int(word) % {p})
            elif word == "{1}":
                stack.append(stack.pop() + {m})
            elif word == "{2}" and len(stack) > 1:
                a, b = stack.pop(), stack.pop()
                stack.append(a * b - {n})
        return stack[-1] if stack else 0
""",
    """
    def _cause_of_{0}(self):
        {1} = self.rng.random() < 0.{n}
        {2} = {1} or self.rng.random() < 0.{m}
        {3} = {2} and not self.rng.random() < 0.{p}
        self.truth = "{1}" if {1} else "{2}" if {2} else "{3}"
        return {{"{1}": {1}, "{2}": {2}, "{3}": {3}}}
""",
    """
    def _next_{0}(self, terms):
        a, b = terms[-2], terms[-1]
        value = ({n} * a + {m} * b) % {p}
        self.{1}.append(value)
        return value if self.turn % 2 else -value
""",
    """
    def _offer_{0}(self, bid):
        rivals = [self.rng.gauss({p}, {n}) for _ in range({m})]
        if bid <= max(rivals):
            return "The {1} goes to another {2}."
        self.money -= sorted([*rivals, bid])[-2]
        self.owned.append("{3}")
        return f"You hold the {1}; {{self.money}} left."
""",
)


def _name(rng: random.Random) -> str:
    return "".join(rng.choices(_SYLLABLES, k=rng.randint(2, 3))).title()


def _expression(rng: random.Random, words: list[str], depth: int) -> str:
    if depth == 0 or rng.random() < 0.2:
        word = rng.choice(words)
        return rng.choice(
            (f"self.{word}", word, str(rng.randint(0, 99)), f"len(self.{word})", f"'{word}'", "self.turn")
        )
    left, right = (_expression(rng, words, depth - 1) for _ in range(2))
    forms = (
        "({0} + {1})", "{0} * {1}", "max({0}, {1})", "[{0}, {1}]", "({0} if {1} else self.turn)", "{0} % {1}",
        "(not {0})", "{{{0}: {1}}}", "sorted({0})[:{1}]", "self._{2}({0}, {1})", "sum({2} for {2} in {0})",
        "({0} in {1})", "str({0}).split({1})", "{0} <= {1}", "min(map(abs, {0}), default={1})",
        "self.rng.choice({0})", "{0} ^ {1}",
    )  # fmt: skip
    return rng.choice(forms).format(left, right, rng.choice(words))


def _block(rng: random.Random, words: list[str], depth: int, indent: str) -> str:
    lines = []
    for _ in range(rng.randint(1, 4)):
        value, word = _expression(rng, words, 2), rng.choice(words)
        forms = ["{i}{w} = {v}", "{i}self.{w} = {v}", "{i}self.{w}.append({v})", "{i}{w} += {v}", "{i}return {v}"]
        if depth:
            forms += ["{i}for {w} in {v}:\n{b}", "{i}if {v}:\n{b}", "{i}while {v}:\n{b}\n{i}    break"]
            forms += ["{i}try:\n{b}\n{i}except ValueError:\n{i}    {w} = {v}", "{i}if {v}:\n{b}\n{i}else:\n{b}"]
        form = rng.choice(forms)
        inner = _block(rng, words, depth - 1, indent + "    ") if "{b}" in form else ""
        lines.append(form.format(i=indent, w=word, v=value, b=inner))
    return "\n".join(lines)


def _method(rng: random.Random, words: list[str]) -> str:
    """A method of random statements: no two programs share its shape."""
    name, other = rng.sample(words, 2)
    return f"\n    def _{name}(self, {other}=None):\n" + _block(rng, words, 2, "        ") + "\n"


def program(rng: random.Random) -> str:
    """Return a program of 40 to 110 lines on one of the topics, with a pinch of another."""
    words = rng.sample(rng.choice(_TOPIC_WORDS), 8) + rng.sample(rng.choice(_TOPIC_WORDS), 2)
    rng.shuffle(words)

    def fill(template: str) -> str:
        numbers = {"n": rng.randint(2, 9), "m": rng.randint(2, 7), "p": rng.randint(11, 99)}
        return template.format(*rng.sample(words, 6), **numbers)

    title = "".join(word.title() for word in words[:2])
    task = f"{rng.choice(_VERBS)} the {words[2]} of the {words[0]} {fill(rng.choice(_GOALS))}"
    names = [_name(rng) for _ in range(rng.randint(1, 4))]
    lines = [
        "import heapq\nimport random\n\n",
        f'class {title}Env:\n    """{task.capitalize()}, as {" and ".join(names)} did."""\n',
        f"    def __init__(self, max_turns={rng.randint(1, 20)}):",
        "        self.max_turns = max_turns\n        self.history, self.late, self.owned, self.order = [], [], [], {}",
        f"        self.rate = 0.{rng.randint(1, 9)}\n        self.reset()\n",
        "    def reset(self, seed=None):\n        self.rng = random.Random(seed)\n        self.turn = 0",
    ]
    for word in rng.sample(words, rng.randint(2, 6)):
        lines.append(
            f"        self.{word} = "
            + rng.choice(
                (
                    f"self.rng.randint({rng.randint(0, 9)}, {rng.randint(10, 99)})",
                    f"[self.rng.choice({rng.sample(words, 3)!r}) for _ in range({rng.randint(2, 9)})]",
                    f"{{name: self.rng.random() for name in {names!r}}}",
                    f"'{rng.choice(names)} keeps the {rng.choice(words)}'",
                )
            )
        )
    lines.append(f'        return f"{rng.choice(names)} asks you to {task}. Turn {{self.turn}}.", {{}}')
    lines += [fill(mechanic) for mechanic in rng.sample(_MECHANICS, rng.randint(1, 3))]
    lines += [_method(rng, words) for _ in range(rng.randint(2, 6))]
    lines += ["    def step(self, action):\n        self.turn += 1\n        text = action.strip().lower()"]
    for _ in range(rng.randint(1, 5)):
        word = rng.choice(words)
        lines.append(
            f'        if "{word}" in text and self.turn < {rng.randint(2, 9)}:\n'
            f'            return "{rng.choice(names)} shows you the {rng.choice(words)}.", 0.0, False, False, {{}}'
        )
    lines.append(f"        won = text == str(self.{words[0]} if hasattr(self, '{words[0]}') else {rng.randint(0, 99)})")
    lines.append("        return 'Done.', float(won), won, self.turn >= self.max_turns, {}")
    return "\n".join(lines)


def record(rng: random.Random) -> EnvironmentRecord:
    """Return a record of such a program; half of them played, with all kinds of win rates."""
    source = program(rng)
    statistics = PlayStatistics()
    if rng.random() < 0.5:
        wins, hinted = rng.randint(0, 16), rng.randint(0, 16)
        statistics = PlayStatistics(16, float(wins), wins, 16, float(hinted), hinted)
    name = source.split("class ", 1)[1].split(":", 1)[0]
    return EnvironmentRecord.create(
        source, name, skill=rng.choice(SKILLS), proven=rng.random() < 0.8, statistics=statistics, generator="made-up"
    )


def near_version(source: str, rng: random.Random) -> str:
    """Return the same program with two words and a few constants changed and a line added."""
    for word in rng.sample(sorted({word for topic in _TOPIC_WORDS for word in topic if word in source}), 2):
        source = source.replace(word, _name(rng).lower())
    source = source.replace("        self.turn = 0", f"        self.turn = 0\n        self.mark = {rng.randint(0, 99)}")
    return source.replace("max_turns=1", f"max_turns={rng.randint(2, 9)}")
