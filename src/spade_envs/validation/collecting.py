"""Collecting the evidence: the program is played under all policies, and replayed in several ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from spade_envs.record import WIN_RETURN
from spade_envs.sandbox import Program
from spade_envs.sandbox.addresses import shows_address
from spade_envs.sandbox.types import Operation, Outcome, ProgramError, ProgramInfo
from spade_envs.validation import policies
from spade_envs.validation.comparing import comparing_players
from spade_envs.validation.config import ValidationConfig
from spade_envs.validation.evidence import Evidence, Malformed, SeedSurvey, mean_return
from spade_envs.validation.finding import Severity
from spade_envs.validation.probes_information import leak
from spade_envs.validation.probes_leak import leaks
from spade_envs.validation.replay import cross_replay, replay
from spade_envs.validation.rollout import CollectionStopped, Policy, Rollout, Runner, SolutionPolicy
from spade_envs.validation.secret_draws import find_twins
from spade_envs.validation.wording import wording

_ASKED_FIRST, _COMPARED = 2, 3  # seeds


def collect(
    program: Program,
    twin: Callable[[bool], Program] | None,
    info: ProgramInfo,
    source: str,
    hint: str | None,
    config: ValidationConfig,
) -> Evidence:
    """Play the program under all policies.

    Stops early (``complete`` False) when the program cannot be reset, times out, dies or is too slow. ``twin``
    loads the same program in a second process with another memory layout; its argument says whether all instances
    share one module.

    Raises:
        SandboxError: if the machinery fails.
    """
    evidence = Evidence(info, source, config, Runner(program, config.seconds), given_hint=hint)
    try:
        _survey(evidence)
        if any("make" in entry.errors or "reset" in entry.errors for entry in evidence.survey):
            return evidence
        evidence.runner.check_pace()
        _play_solutions(evidence)
        _play_know_nothing(evidence)
        _confirm(evidence)
        _compare(evidence)
        _look_for_leaks(evidence)
        evidence.wording = wording(evidence)
        find_twins(evidence, answer_forms(evidence))
        _try_malformed(evidence)
        chosen = _traces(evidence)
        questions = [name for name, has in (("hint", info.has_hint), ("solution", info.has_solution)) if has]
        evidence.replays = replay(evidence.runner, chosen, questions, tools=info.has_tools)
        if twin is not None and config.cross_process and _sees_addresses(evidence, chosen):
            _replay_elsewhere(twin, chosen, evidence)
        else:
            cross_replay(evidence.runner, chosen, evidence.replays.together, shared=True)
        evidence.complete = True
    except CollectionStopped:
        pass
    return evidence


def _sees_addresses(evidence: Evidence, chosen: Sequence[Rollout]) -> bool:
    """Whether another process could make a difference."""
    shown = [turn.observation for rollout in chosen for turn in rollout.trace()]
    return evidence.info.sees_addresses or any(map(shows_address, shown))


def _replay_elsewhere(twin: Callable[[bool], Program], chosen: Sequence[Rollout], evidence: Evidence) -> None:
    """Replay in another process whose instances share their module, as they do outside the sandbox.

    Where that makes a difference, an unshared one tells whether it is the sharing or the process.
    """
    replays = evidence.replays
    for shared, differences in ((True, replays.together), (False, replays.process)):
        try:
            runner = Runner(twin(shared), evidence.config.seconds)
        except ProgramError as error:
            replays.process_error = error
            return
        try:
            cross_replay(runner, chosen, differences)
        except CollectionStopped:
            replays.process_error = runner.trouble.error if runner.trouble else None
            return
        if not differences:
            return


def _survey(evidence: Evidence) -> None:
    """Reset every seed on an instance of its own; the first seed alone, so that a broken program costs little."""
    asked = ["make", *_asked(evidence)]
    seeds = evidence.config.seeds
    for batch in (seeds[:1], seeds[1:]):
        operations: list[Operation] = []
        for seed in batch:
            session = evidence.runner.new_session()
            operations += [Operation(name, session, {"make": {}, "reset": seed}.get(name)) for name in asked]
        if not evidence.survey:  # a first contact on another instance: a hanging step() costs one time-out only
            other = evidence.runner.new_session()
            operations += [
                Operation("make", other, {}),
                Operation("reset", other, seeds[0]),
                Operation("step", other, ""),
            ]
        outcomes = evidence.runner.run(operations)
        for index, seed in enumerate(batch):
            answers = dict(zip(asked, outcomes[index * len(asked) : (index + 1) * len(asked)], strict=True))
            evidence.survey.append(_read_survey(seed, answers))
        if evidence.survey[0].errors:
            return


def _asked(evidence: Evidence) -> list[str]:
    """Operations that show how an episode starts."""
    info = evidence.info
    offered = (("solution", info.has_solution), ("hint", info.has_hint), ("tools", info.has_tools))
    return ["reset", *(name for name, has in offered if has)]


def _read_survey(seed: int, outcomes: dict[str, Outcome]) -> SeedSurvey:
    entry = SeedSurvey(seed)
    for name, outcome in outcomes.items():
        if outcome.error is not None:
            entry.errors[name] = outcome.error
        elif name == "reset":
            entry.observation, entry.info = outcome.value.observation, outcome.value.info
        elif name == "solution":
            entry.solution = outcome.value
        elif name == "hint":
            entry.hint = outcome.value
        elif name == "tools":
            entry.tools = outcome.value or []
    return entry


def _play_solutions(evidence: Evidence) -> None:
    """Find the form that wins the first seed, then play that on the others, and other forms where it fails."""
    solutions, config = evidence.solutions, evidence.config
    if not solutions:
        return
    first, *others = solutions
    in_order = [(form, False) for form in policies.FORMS]
    asked = [(form, True) for form in policies.FORMS]

    def attempt(seeds: Sequence[int], variants: Sequence[tuple[str, bool]]) -> None:
        pairs: list[tuple[Rollout, Policy]] = []
        for seed in seeds:
            for form, ask in variants:
                if ask and len(solutions[seed]) == 1:
                    continue  # the same play as the list in order
                rollout = Rollout(f"solution_{form}" + ("_asked" if ask else ""), seed)
                pairs.append((rollout, SolutionPolicy(solutions[seed], partial(policies.wrap, form=form), ask)))
        evidence.runner.play(pairs, config.max_steps)
        for rollout, _ in pairs:
            evidence.solution_plays.setdefault(rollout.seed, []).append(rollout)
        for seed in seeds:
            evidence.solution_plays.get(seed, []).sort(key=lambda rollout: -rollout.return_(config))

    def lost(seeds: Sequence[int]) -> list[int]:
        plays = evidence.solution_plays
        return [seed for seed in seeds if seed not in plays or plays[seed][0].return_(config) < WIN_RETURN]

    attempt([first], in_order)
    attempt(lost([first]), asked)
    best = evidence.solution_plays[first][0]
    variant = next(v for v in in_order + asked if best.policy == f"solution_{v[0]}" + ("_asked" if v[1] else ""))
    if best.return_(config) > 0:
        evidence.solution_form = variant[0]
    attempt(others, [variant])
    attempt([seed for seed in others if seed not in evidence.solution_plays], [(variant[0], False)])
    attempt(lost(others)[:2], [v for v in in_order + asked if v != variant])
    if evidence.proven:
        _ask_first(evidence, partial(policies.wrap, form=variant[0]), variant[1])


def _ask_first(evidence: Evidence, form: Callable[[str], str], ask: bool) -> None:
    """Play what solution() says on the very instance that is asked, as whoever shows a solution does."""
    pairs: list[tuple[Rollout, Policy]] = []
    for seed in list(evidence.solutions)[:_ASKED_FIRST]:
        rollout = Rollout("solution_asked_first", seed, evidence.runner.new_session())
        operations = [Operation("make", rollout.session, {}), Operation("reset", rollout.session, seed)]
        *_, reset, told = evidence.runner.run([*operations, Operation("solution", rollout.session)])
        if reset.error is None and told.value:
            rollout.first = reset.value.observation
            pairs.append((rollout, SolutionPolicy(told.value, form, ask)))
    evidence.runner.play_on(pairs, evidence.config.max_steps)
    evidence.asked_first = [rollout for rollout, _ in pairs]


def answer_forms(evidence: Evidence) -> tuple[str, ...]:
    """Forms in which guesses are played: the one that won, else what the prompt speaks of, else raw and boxed."""
    if evidence.solution_form is not None:
        answer = evidence.solutions[next(iter(evidence.solutions))][-1]
        wrapped = "boxed" if "\\boxed{" in answer else "answer" if "<answer>" in answer else evidence.solution_form
        return (wrapped,)
    text = evidence.survey[0].observation
    if "boxed" in text or "boxed" in evidence.source:
        return ("boxed",)
    if "<answer>" in text:
        return ("answer",)
    return ("raw", "boxed")


def _play_know_nothing(evidence: Evidence) -> None:
    observations = [entry.observation for entry in evidence.survey]
    players = policies.general_policies()
    players += policies.guessing_policies(
        answer_forms(evidence), evidence.solutions, observations, hidden=bool(evidence.look_alikes)
    )
    if evidence.survey[0].tools:
        players.append(policies.tool_policy(evidence.survey[0].tools))
    pairs: list[tuple[Rollout, Policy]] = []
    config = evidence.config
    order = evidence.play_order
    for player in players:
        brief = player.contentless and player.name != "tool_sweep"
        # Where the text hides something, all are needed: comparing seeds shows what play reveals.
        guess = not player.contentless and not evidence.look_alikes
        seeds = order[: config.contentless_seeds if brief or guess else None]
        rollouts = [Rollout(player.name, seed) for seed in seeds]
        evidence.known_nothing[player.name] = (player, rollouts)
        pairs += [(rollout, player.policy) for rollout in rollouts]
    evidence.runner.play(pairs, config.max_steps, watch=order[0], steps=config.play_steps)
    # Guesses that earned anything on the first seeds are played on the others too.
    more: list[tuple[Rollout, Policy]] = []
    for player, rollouts in evidence.known_nothing.values():
        if not player.contentless and any(rollout.return_(config) > 0 for rollout in rollouts):
            added = [Rollout(player.name, seed) for seed in order[len(rollouts) :]]
            rollouts += added
            more += [(rollout, player.policy) for rollout in added]
    if more:
        evidence.runner.play(more, config.max_steps, watch=order[0], steps=config.play_steps)
        pairs += more
    # A long game that paid the watched play: see what it pays the others.
    paid = [
        rollouts for _, rollouts in evidence.known_nothing.values() if rollouts[0].return_(config) >= config.warn_return
    ]
    cut = {id(rollout) for rollouts in paid for rollout in rollouts if rollout.cut}
    evidence.runner.play_on([pair for pair in pairs if id(pair[0]) in cut], config.max_steps)


def _compare(evidence: Evidence) -> None:
    """Have seeds that look alike played by the players that do the same on each."""
    seeds = [entry.seed for entry in evidence.look_alikes][:_COMPARED]
    players = comparing_players(answer_forms(evidence)[0], evidence.solutions) if seeds else {}
    pairs = [(Rollout(name, seed), policy) for name, policy in players.items() for seed in seeds]
    if pairs:
        evidence.runner.play(pairs, evidence.config.play_steps)
    evidence.compared = [rollout for rollout, _ in pairs]


def _confirm(evidence: Evidence) -> None:
    """Play policies that look as if they win on many more seeds, so that a lucky guess is told from a free win."""
    config = evidence.config
    pairs: list[tuple[Rollout, Policy]] = []
    for player, rollouts in evidence.known_nothing.values():
        mean = mean_return(rollouts, config)
        if not player.contentless and mean >= config.suspect_return:
            more = [Rollout(player.name, seed) for seed in config.further_seeds]
            rollouts += more
            pairs += [(rollout, player.policy) for rollout in more]
    if pairs:
        evidence.runner.play(pairs, config.max_steps)


def _look_for_leaks(evidence: Evidence) -> None:
    """Look for answers that are given away; on many more seeds where there seem to be, as they may stand by chance."""
    evidence.leaks = [*leak(evidence), *leaks(evidence)]
    if not any(finding.severity is Severity.REFUSE for finding in evidence.leaks):
        return
    session, asked = evidence.runner.new_session(), _asked(evidence)
    operations = [Operation("make", session, {})]
    seeds = evidence.config.further_seeds
    for seed in seeds:
        operations += [Operation(name, session, seed if name == "reset" else None) for name in asked]
    outcomes = evidence.runner.run(operations)[1:]
    for index, seed in enumerate(seeds):
        answers = dict(zip(asked, outcomes[index * len(asked) : (index + 1) * len(asked)], strict=True))
        evidence.further.append(_read_survey(seed, answers))
    evidence.leaks = [*leak(evidence), *leaks(evidence)]


def _try_malformed(evidence: Evidence) -> None:
    """Each malformed action right after a reset, on one instance; the huge ones last, one to a batch."""
    seed, session = evidence.config.seeds[0], evidence.runner.new_session()
    make = [Operation("make", session, {})]
    for batch in (policies.NOISE, *((action,) for action in policies.HUGE)):
        operations = [
            op for action in batch for op in (Operation("reset", session, seed), Operation("step", session, action))
        ]
        outcomes = evidence.runner.run([*make, *operations])[len(make) :]
        make = []
        evidence.malformed += [Malformed(seed, action, outcomes[2 * i + 1]) for i, action in enumerate(batch)]


def _traces(evidence: Evidence) -> list[Rollout]:
    """The plays worth replaying: for two seeds, that of the solution and the one that saw most."""
    chosen: list[Rollout] = []
    for seed in evidence.play_order[:2]:
        plays = evidence.solution_plays.get(seed, [])[:1]
        others = [r for _, rollouts in evidence.known_nothing.values() for r in rollouts if r.seed == seed]
        others = [r for r in others if r.error is None and r.turns]
        others.sort(key=lambda r: (-len({turn.observation for turn in r.turns}), len(r.turns), r.policy))
        chosen += [r for r in plays + others[:1] if r.error is None and r.turns]
    return chosen
