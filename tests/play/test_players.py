import pytest

from sample_programs import BOXED, FAULTY, GUESS, WALK
from spade_envs.play import PlayConfig, PlayTask, StopReason, play_episodes
from spade_envs.players import (
    PLAYER_NAMES,
    HumanPlayer,
    KnowNothingPlayer,
    RandomPlayer,
    SolutionPlayer,
    scripted_player,
)


@pytest.fixture
def tasks(sandbox):
    programs = []

    def make_tasks(source, count=4):
        programs.append(sandbox.open(source))
        return [PlayTask(programs[-1], seed) for seed in range(count)]

    yield make_tasks
    for program in programs:
        program.close()


@pytest.mark.parametrize("source", [GUESS, BOXED, WALK])
def test_solutions_win(sandbox, tasks, source):
    episodes = play_episodes(SolutionPlayer(sandbox), tasks(source), sandbox, PlayConfig())
    assert [episode.return_ for episode in episodes] == [1.0] * 4
    assert {episode.stop for episode in episodes} == {StopReason.TERMINATED}


def test_the_form_that_wins_is_played(sandbox, tasks):
    episodes = play_episodes(SolutionPlayer(sandbox), tasks(BOXED), sandbox, PlayConfig())
    assert all(episode.steps[0].action.startswith("\\boxed{") for episode in episodes)
    episodes = play_episodes(SolutionPlayer(sandbox), tasks(GUESS), sandbox, PlayConfig())
    assert all(episode.steps[0].action.isdigit() for episode in episodes)


def test_programs_without_a_solution_say_so(sandbox, tasks):
    episodes = play_episodes(SolutionPlayer(sandbox), tasks(FAULTY), sandbox, PlayConfig())
    assert {episode.stop for episode in episodes} == {StopReason.MODEL_ERROR}
    assert all("offers no solution()" in episode.error for episode in episodes)
    raising = WALK.replace('return ["right"]', 'raise KeyError("lost")')
    (episode,) = play_episodes(SolutionPlayer(sandbox), tasks(raising, 1), sandbox, PlayConfig())
    assert "KeyError" in episode.error


def test_solutions_respect_the_turn_limit(sandbox, tasks):
    episodes = play_episodes(SolutionPlayer(sandbox), tasks(WALK), sandbox, PlayConfig(max_turns=1))
    assert {episode.stop for episode in episodes} == {StopReason.TURN_LIMIT}


@pytest.mark.parametrize("player", [RandomPlayer, KnowNothingPlayer])
def test_players_that_draw_repeat(sandbox, tasks, player):
    given = tasks(GUESS, 6)
    first, second, other = (
        [episode.to_dict() for episode in play_episodes(player(seed), given, sandbox, PlayConfig(max_turns=4))]
        for seed in (1, 1, 2)
    )
    assert first == second
    assert first != other


def test_know_nothing_does_not_look(sandbox, tasks):
    config = PlayConfig(max_turns=1)
    said = []
    for source in (FAULTY, WALK):
        episodes = play_episodes(KnowNothingPlayer(3), tasks(source), sandbox, config)
        said.append([episode.messages[-1]["content"] for episode in episodes])
    assert said[0] == said[1]


def test_a_person_sees_the_conversation_and_may_leave(sandbox, tasks):
    shown, lines = [], iter(["left"])

    def read(prompt):
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    player = HumanPlayer(read, shown.append)
    (episode,) = play_episodes(player, tasks(WALK, 1), sandbox, PlayConfig(system_prompt="Walk."))
    assert shown[0].startswith("Walk.")
    assert shown[1] == episode.observation
    assert shown[2] == episode.steps[0].observation
    assert episode.stop is StopReason.MODEL_ERROR
    assert episode.error == "the input ended"


def test_a_person_is_shown_no_control_characters(sandbox, capsys):
    player = scripted_player("human", sandbox=sandbox)
    player._write("\x1b[2J cleared \x9b\u202e\ud800")
    assert capsys.readouterr().out == "\\x1b[2J cleared \\x9b\\x202e\\xd800\n"


def test_players_by_name(sandbox):
    for name in PLAYER_NAMES:
        assert scripted_player(name, sandbox=sandbox).name == name
    with pytest.raises(ValueError, match="expected one of human"):
        scripted_player("nobody", sandbox=sandbox)
