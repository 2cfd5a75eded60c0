import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_programs import BOXED, FAULTY, GUESS, WALK
from spade_envs.models.base import Completion, ModelError, Sampling
from spade_envs.play import (
    Episode,
    PlayConfig,
    PlayTask,
    StopReason,
    advance_episodes,
    episode_return,
    play_episodes,
    start_episodes,
    stop_episodes,
)

REWARDS = st.lists(st.floats(-5, 5), max_size=8)


class Saying:
    """A chat model that says what a function of the conversation tells it to."""

    name = "saying"

    def __init__(self, say, tokens=3):
        self.say, self.tokens = say, tokens
        self.calls = []

    def complete(self, conversations, sampling):
        self.calls.append(([list(conversation) for conversation in conversations], sampling))
        return [self._one(conversation, sampling) for conversation in conversations]

    def _one(self, conversation, sampling):
        said = self.say(conversation)
        if isinstance(said, Exception):
            return Completion("", finish_reason="error", error=str(said))
        return Completion(
            said, prompt_tokens=10 * len(conversation), completion_tokens=min(self.tokens, sampling.max_tokens)
        )

    def close(self):
        pass


@pytest.fixture
def program(sandbox):
    made = []

    def open_program(source):
        made.append(sandbox.open(source))
        return made[-1]

    yield open_program
    for one in made:
        one.close()


def secret(program, seed):
    session = program.session()
    session.reset(seed)
    (answer,) = session.solution()
    session.close()
    return answer


@given(REWARDS, st.booleans(), st.sampled_from(["final", "sum", "discounted"]), st.floats(0, 1))
def test_returns_lie_in_bounds(rewards, terminated, mode, discount):
    assert -1.0 <= episode_return(rewards, terminated, mode, discount) <= 1.0


def test_return_modes():
    rewards = [0.25, 0.5, 0.75]
    assert episode_return(rewards, True) == 0.75
    assert episode_return(rewards, False) == 0.0
    assert episode_return([], True) == 0.0
    assert episode_return([0.25, 0.5], False, "sum") == 0.75
    assert episode_return(rewards, True, "sum") == 1.0
    assert episode_return([3.0, -0.5], True, "sum") == 0.5
    assert episode_return(rewards, True, "discounted", 0.5) == pytest.approx(0.25 + 0.25 + 0.1875)
    assert episode_return([7.0], True) == 1.0


@pytest.mark.parametrize(
    "fields",
    [
        {"max_turns": 0},
        {"turn_tokens": 0},
        {"episode_tokens": -1},
        {"return_mode": "last"},
        {"discount": 1.5},
        {"hint_template": "Hint"},
    ],
)
def test_configurations_are_checked(fields):
    with pytest.raises(ValueError, match=next(iter(fields))):
        PlayConfig(**fields)


def test_an_episode_step_by_step(sandbox, program):
    guess = program(GUESS)
    answer = secret(guess, 5)
    config = PlayConfig(system_prompt="Play well.")
    (episode,) = start_episodes(sandbox, [PlayTask(guess, 5, key="abc")], config)
    assert [message["role"] for message in episode.messages] == ["system", "user"]
    assert episode.messages[1]["content"] == episode.observation
    assert episode.stop is None
    advance_episodes(sandbox, [(episode, "no number", 4)])
    assert episode.stop is None
    assert episode.messages[-2:] == [
        {"role": "assistant", "content": "no number"},
        {"role": "user", "content": "Not a number: no number"},
    ]
    advance_episodes(sandbox, [(episode, f"It is \\boxed{{{answer}}}", 6)])
    assert episode.stop is StopReason.TERMINATED
    assert episode.messages[-1]["role"] == "assistant"
    assert (episode.turns, episode.tokens, episode.rewards, episode.return_) == (2, 10, [0.0, 1.0], 1.0)
    with pytest.raises(ValueError, match="stopped by terminated"):
        advance_episodes(sandbox, [(episode, "more", 1)])
    transcript = json.loads(json.dumps(episode.to_dict()))
    assert transcript["key"] == "abc"
    assert transcript["return"] == 1.0
    assert transcript["stop"] == "terminated"
    assert transcript["steps"][1]["observation"] == "Right!"
    assert len(transcript["messages"]) == 5


def test_many_programs_advance_together(sandbox, program):
    guess, walk = program(GUESS), program(WALK)
    tasks = [PlayTask(walk if index % 2 else guess, index) for index in range(8)]
    episodes = start_episodes(sandbox, tasks, PlayConfig(max_turns=2))
    alone = [start_episodes(sandbox, [task], PlayConfig())[0] for task in tasks]
    assert [episode.messages for episode in episodes] == [episode.messages for episode in alone]
    advance_episodes(sandbox, [(episode, "right", 1) for episode in reversed(episodes)])
    assert all(
        ("steps to go" in episode.steps[0].observation) == bool(index % 2) for index, episode in enumerate(episodes)
    )


def test_the_hint_stands_in_the_first_observation_only(sandbox, program):
    guess = program(GUESS)
    config = PlayConfig(hint_template=" [{hint}] {braces}")
    plain, hinted = start_episodes(sandbox, [PlayTask(guess, 1), PlayTask(guess, 1, hint="Halve {it}.")], config)
    assert hinted.messages[0]["content"] == plain.messages[0]["content"] + " [Halve {it}.] {braces}"
    assert hinted.observation == plain.observation
    advance_episodes(sandbox, [(plain, "1", 1), (hinted, "1", 1)])
    assert hinted.messages[1:] == plain.messages[1:]


def test_tools_are_told_in_the_system_message(sandbox, program):
    (episode,) = start_episodes(sandbox, [PlayTask(program(WALK), 1)], PlayConfig(system_prompt="Play."))
    system = episode.messages[0]["content"]
    assert system.startswith("Play.\n\n")
    assert '"name": "look"' in system
    assert "<tool_call>" in system
    (bare,) = start_episodes(sandbox, [PlayTask(program(WALK), 1)], PlayConfig())
    assert bare.messages[0]["content"] == system.removeprefix("Play.\n\n")


def test_arguments_reach_the_constructor(sandbox, program):
    (episode,) = start_episodes(sandbox, [PlayTask(program(GUESS), 1, arguments={"max_turns": 1})], PlayConfig())
    advance_episodes(sandbox, [(episode, "x", 1)])
    assert episode.stop is StopReason.TRUNCATED
    assert episode.return_ == 0.0


def test_turn_and_token_budgets(sandbox, program):
    walk = program(WALK)
    short, tight = (
        start_episodes(sandbox, [PlayTask(walk, 1)], config)[0]
        for config in (PlayConfig(max_turns=1), PlayConfig(episode_tokens=10, turn_tokens=7))
    )
    assert tight.remaining_tokens == 7
    advance_episodes(sandbox, [(short, "left", 1), (tight, "left", 6)])
    assert short.stop is StopReason.TURN_LIMIT
    assert tight.stop is None
    assert tight.remaining_tokens == 4
    advance_episodes(sandbox, [(tight, "left", 4)])
    assert tight.stop is StopReason.TOKEN_BUDGET
    assert short.return_ == tight.return_ == 0.0
    assert short.config.return_mode == "final"
    assert short.rewards == [0.25]


@pytest.mark.parametrize(("action", "kind"), [("raise", "raised"), ("hang", "timeout"), ("nan", "protocol")])
def test_program_errors_stop_one_episode(sandbox, program, action, kind):
    faulty, walk = program(FAULTY), program(WALK)
    tasks = [PlayTask(faulty, 0), PlayTask(walk, 0)]
    broken, healthy = start_episodes(sandbox, tasks, PlayConfig(return_mode="sum"))
    advance_episodes(sandbox, [(broken, "long", 1), (healthy, "left", 1)])
    advance_episodes(sandbox, [(broken, action, 1), (healthy, "left", 1)])
    assert broken.stop is StopReason.PROGRAM_ERROR
    assert broken.error.startswith(f"{kind}: ")
    assert broken.return_ == 0.0
    assert healthy.stop is None
    assert healthy.return_ == 0.5
    (again,) = start_episodes(sandbox, tasks[:1], PlayConfig())
    assert again.stop is None


def test_programs_that_fail_at_the_start(sandbox, program):
    bad, good = start_episodes(sandbox, [PlayTask(program(FAULTY), 666), PlayTask(program(FAULTY), 1)], PlayConfig())
    assert bad.stop is StopReason.PROGRAM_ERROR
    assert "no such start" in bad.error
    assert bad.messages == []
    assert good.stop is None
    json.dumps(bad.to_dict())


def test_stopping_from_outside(sandbox, program):
    episodes = start_episodes(sandbox, [PlayTask(program(WALK), 0)] * 2, PlayConfig())
    stop_episodes(sandbox, episodes[:1], StopReason.CONTEXT_LIMIT)
    stop_episodes(sandbox, episodes, StopReason.MODEL_ERROR, "no reply")
    assert [episode.stop for episode in episodes] == [StopReason.CONTEXT_LIMIT, StopReason.MODEL_ERROR]
    assert [episode.error for episode in episodes] == ["", "no reply"]


def test_a_model_plays_in_lock_step(sandbox, program):
    model = Saying(lambda conversation: "right")
    tasks = [PlayTask(program(WALK), seed) for seed in range(5)]
    episodes = play_episodes(model, tasks, sandbox, PlayConfig(), Sampling(max_tokens=50, temperature=0.2, seed=9))
    assert all(episode.stop is StopReason.TERMINATED for episode in episodes)
    assert all(episode.return_ == 1.0 for episode in episodes)
    assert len(model.calls) == max(episode.turns for episode in episodes)
    assert [sampling.seed for _, sampling in model.calls] == [9 + turn for turn in range(len(model.calls))]
    assert {(sampling.max_tokens, sampling.temperature) for _, sampling in model.calls} == {(50, 0.2)}
    assert len(model.calls[0][0]) == 5


def test_token_budgets_bound_what_a_model_is_asked_for(sandbox, program):
    model = Saying(lambda conversation: "left", tokens=6)
    config = PlayConfig(turn_tokens=8, episode_tokens=20)
    (episode,) = play_episodes(model, [PlayTask(program(WALK), 0)], sandbox, config)
    assert [sampling.max_tokens for _, sampling in model.calls] == [8, 8, 8, 2]
    assert episode.stop is StopReason.TOKEN_BUDGET
    assert episode.tokens == 20


def test_context_limit(sandbox, program):
    model = Saying(lambda conversation: "left")
    (episode,) = play_episodes(model, [PlayTask(program(GUESS), 0)], sandbox, PlayConfig(context_tokens=25))
    assert episode.stop is StopReason.CONTEXT_LIMIT
    assert episode.turns == 2
    assert episode.context == 33


def test_a_failed_call_stops_one_episode(sandbox, program):
    def say(conversation):
        return RuntimeError("connection lost") if "3 steps" in conversation[-1]["content"] else "right"

    episodes = play_episodes(Saying(say), [PlayTask(program(WALK), seed) for seed in range(8)], sandbox, PlayConfig())
    reasons = {episode.stop for episode in episodes}
    assert reasons == {StopReason.MODEL_ERROR, StopReason.TERMINATED}
    for episode in episodes:
        if episode.stop is StopReason.MODEL_ERROR:
            assert episode.error == "connection lost"
            assert episode.return_ == 0.0


def test_a_model_that_is_not_there_stops_the_run(sandbox, program):
    def say(conversation):
        raise ModelError("no route to host")

    with pytest.raises(ModelError):
        play_episodes(Saying(say), [PlayTask(program(WALK), 0)], sandbox, PlayConfig())


def test_no_tasks_no_episodes(sandbox):
    assert play_episodes(Saying(lambda conversation: "x"), [], sandbox, PlayConfig()) == []
    advance_episodes(sandbox, [])


def test_replies_are_handed_over_unchanged(sandbox, program):
    texts = ["", " \n\0 ", "{0.__class__}", "数\U0001f600", "<answer>\\boxed{1}</answer>", "\ud800"]
    episodes = start_episodes(sandbox, [PlayTask(program(FAULTY), 0)] * len(texts), PlayConfig())
    advance_episodes(sandbox, [(episode, text, 1) for episode, text in zip(episodes, texts)])
    for episode, text in zip(episodes, texts):
        assert episode.steps[0].action == text
        assert episode.steps[0].observation == f"you said {text}".replace("\ud800", "?")
        json.dumps(episode.to_dict())


def test_boxed_programs(sandbox, program):
    boxed = program(BOXED)
    answer = secret(boxed, 3)
    (right, wrong) = start_episodes(sandbox, [PlayTask(boxed, 3)] * 2, PlayConfig())
    assert isinstance(right, Episode)
    advance_episodes(sandbox, [(right, f"\\boxed{{{answer}}}", 5), (wrong, answer, 5)])
    assert [right.return_, wrong.return_] == [1.0, -1.0]
