import json
import os
import subprocess
import sys
import textwrap
import warnings

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

import spade_envs
from sample_programs import GUESS, WALK, record
from spade_envs.env import SyntheticEnv
from spade_envs.memory import Memory, StoreError, UnknownRecord
from spade_envs.vector import SyntheticVectorEnv


@pytest.fixture(autouse=True)
def registry():
    before = dict(gymnasium.registry)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield gymnasium.registry
    gymnasium.registry.clear()
    gymnasium.registry.update(before)


def _python(code, home, expect=0):
    """Run ``code`` in a fresh interpreter whose default memory is ``home``."""
    script = home.parent / "script.py"
    script.write_text(textwrap.dedent(code))
    environment = {**os.environ, "SPADE_HOME": str(home)}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == expect, done.stderr
    return done.stdout.strip()


def test_register_fills_the_registry(memory, registry):
    guess, walk = record(GUESS), record(WALK)
    memory.add(guess)
    memory.add(walk)
    assert spade_envs.register(memory) == [guess.env_id, walk.env_id]
    spec = registry[guess.env_id]
    assert spec.namespace == "spade"
    assert spec.kwargs == {"record_id": guess.id, "memory": str(memory.path)}
    assert spade_envs.register(memory.path) == [guess.env_id, walk.env_id]
    assert spade_envs.register(str(memory.path)) == [guess.env_id, walk.env_id]


def test_register_refreshes(memory, registry, tmp_path):
    memory.commit_round("run", 0, [record(GUESS)])
    other = tmp_path / "other"
    with Memory.open(other) as second:
        second.add(record(WALK))
        spade_envs.register(second)
    spade_envs.register(memory)
    assert {record(GUESS).env_id, record(WALK).env_id} <= set(registry)
    memory.rollback("run", 0)
    assert spade_envs.register(memory) == []
    assert record(GUESS).env_id not in registry
    assert record(WALK).env_id in registry


def test_a_folder_without_a_memory_has_no_ids(tmp_path):
    assert spade_envs.register(tmp_path / "nothing") == []
    assert not (tmp_path / "nothing").exists()


def test_a_file_that_is_no_memory_is_an_error(tmp_path):
    (tmp_path / "memory.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(StoreError):
        spade_envs.register(tmp_path)


def test_made_environments_pass_check_env(memory):
    memory.add(record(GUESS))
    (env_id,) = spade_envs.register(memory)
    for arguments in ({}, {"render_mode": "ansi"}, {"max_turns": 3}):
        env = gymnasium.make(env_id, **arguments)
        assert type(env.unwrapped).__name__ == "GuessEnv"
        assert isinstance(env.unwrapped, SyntheticEnv)
        check_env(env.unwrapped)
        env.close()
    env = gymnasium.make(env_id)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*different from the unwrapped version.*")
        check_env(env)
    env.close()


def test_an_episode_as_made(memory):
    memory.add(record(GUESS))
    (env_id,) = spade_envs.register(memory)
    with gymnasium.make(env_id, render_mode="ansi_list", max_episode_steps=2) as env:
        env.reset(seed=3)
        assert env.step("x")[2:4] == (False, False)
        assert env.step("x")[2:4] == (False, True)
        assert len(env.render()) == 3
    with gymnasium.make(env_id) as env, pytest.raises(gymnasium.error.ResetNeeded):
        env.step("3")


def test_specs_round_trip_through_json(memory):
    memory.add(record(GUESS))
    (env_id,) = spade_envs.register(memory)
    spec = EnvSpec.from_json(gymnasium.spec(env_id).to_json())
    assert spec == gymnasium.spec(env_id)
    gymnasium.registry.clear()
    with gymnasium.make(spec, max_turns=4) as env:
        first = env.reset(seed=5)
        again = EnvSpec.from_json(env.spec.to_json())
    json.loads(again.to_json())
    with gymnasium.make(again) as env:
        assert env.reset(seed=5) == first
        assert env.unwrapped.max_turns == 4


def test_unknown_ids_get_gymnasiums_advice(memory):
    memory.add(record(GUESS))
    (env_id,) = spade_envs.register(memory)
    name = env_id.removeprefix("spade/").removesuffix("-v0")
    with pytest.raises(gymnasium.error.NameNotFound, match=f"Did you mean: `{name}`"):
        gymnasium.make(env_id.replace("Guess", "Gess"))
    with pytest.raises(gymnasium.error.NameNotFound, match=f"Did you mean: `{name}`"):
        gymnasium.make("spade_envs:" + env_id.replace("Guess", "Gess"))


def test_records_that_have_gone_are_named(memory):
    memory.commit_round("run", 0, [record(GUESS)])
    (env_id,) = spade_envs.register(memory)
    memory.rollback("run", 0)
    with pytest.raises(UnknownRecord, match="no record"):
        gymnasium.make(env_id)


def test_make_vec(memory):
    memory.add(record(GUESS))
    (env_id,) = spade_envs.register(memory)
    envs = gymnasium.make_vec(env_id, num_envs=3, max_turns=5, workers=2)
    assert isinstance(envs, SyntheticVectorEnv)
    observations, _ = envs.reset(seed=1)
    assert observations in envs.observation_space
    assert envs.spec.id == env_id
    limited = gymnasium.make_vec(env_id, num_envs=1, max_episode_steps=1)
    limited.reset(seed=1)
    assert limited.step(("no",))[3].tolist() == [True]
    limited.close()
    envs.spec.to_json()
    envs.close()
    envs = gymnasium.make_vec(env_id, num_envs=2, vectorization_mode="sync")
    assert envs.reset(seed=1)[0] == observations[:2]
    envs.close()


def test_forked_workers_leave_the_sandbox_of_their_parent_alone(memory):
    memory.add(record(GUESS))
    (env_id,) = spade_envs.register(memory)
    with gymnasium.make(env_id) as env:
        first, _ = env.reset(seed=7)
        envs = gymnasium.make_vec(env_id, 2, vectorization_mode="async", vector_kwargs={"context": "fork"})
        observations, _ = envs.reset(seed=[7, 8])
        assert observations[0] == first
        assert envs.step(("no", "no"))[0][1] == "Not a number: no"
        envs.close()
        assert env.step("no")[0] == "Not a number: no"


def test_isolation_may_be_asked_for_by_name(memory):
    memory.add(record(GUESS))
    (env_id,) = spade_envs.register(memory)
    with gymnasium.make(env_id, minimum_isolation="static") as env:
        first = env.reset(seed=1)
        json.loads(env.spec.to_json())
    envs = gymnasium.make_vec(env_id, num_envs=1, minimum_isolation="static")
    assert envs.reset(seed=1)[0] == (first[0],)
    envs.close()


def test_public_names():
    for name in spade_envs.__all__:
        assert getattr(spade_envs, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        spade_envs.nothing  # noqa: B018


def test_a_fresh_process_finds_the_default_memory(memory):
    memory.add(record(GUESS))
    code = f"""
        import warnings
        warnings.simplefilter("error")
        import gymnasium
        with gymnasium.make("spade_envs:{record(GUESS).env_id}") as env:
            print(env.reset(seed=7)[0])
            print(type(env.unwrapped).__name__)
    """
    text, name = _python(code, memory.path).splitlines()
    assert text.startswith("Guess my number")
    assert name == "GuessEnv"


def test_spawned_workers_make_environments(memory):
    memory.add(record(GUESS))
    code = f"""
        import gymnasium
        from functools import partial

        if __name__ == "__main__":
            made = partial(gymnasium.make, "spade_envs:{record(GUESS).env_id}")
            for shared in (True, False):
                envs = gymnasium.vector.AsyncVectorEnv([made, made], context="spawn", shared_memory=shared)
                observations, _ = envs.reset(seed=[7, 7])
                assert observations[0] == observations[1], observations
                print(observations[0])
                print(envs.step(("no", "5"))[0][0])
                envs.close()
            envs = gymnasium.make_vec(
                "{record(GUESS).env_id}", 2, vectorization_mode="async", vector_kwargs={{"context": "spawn"}}
            )
            print(envs.reset(seed=[7, 7])[0][1])
            envs.close()
    """
    lines = _python(code, memory.path).splitlines()
    assert lines[0] == lines[2] == lines[4]
    assert lines[1] == lines[3] == "Not a number: no"


def test_import_is_light_and_never_fails(tmp_path):
    home = tmp_path / "home"
    code = """
        import sys
        import spade_envs
        heavy = {"torch", "faiss", "wordllama", "transformers", "pyarrow", "httpx", "jinja2", "rich"}
        print(sorted(heavy & set(sys.modules)))
    """
    assert _python(code, home) == "[]"
    assert not home.exists()
    home.mkdir()
    (home / "memory.sqlite").write_bytes(b"not a database" * 100)
    code = """
        import warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import spade_envs
        print(len(caught), "the default memory was not registered" in str(caught[0].message))
    """
    assert _python(code, home) == "1 True"
