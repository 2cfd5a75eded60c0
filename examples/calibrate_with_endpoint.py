"""How hard are your environments for a model behind an endpoint, and does the hint help?

    python examples/calibrate_with_endpoint.py runs/quickstart/memory openai:my-model --base-url http://localhost:8000/v1
    python examples/calibrate_with_endpoint.py runs/quickstart/memory nano

The key is read from OPENAI_API_KEY. Plays are stored with the environments, so exemplars and replays know them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from spade_envs.calibration import CalibrationConfig, calibrate
from spade_envs.designer import PromptSet
from spade_envs.memory import Memory
from spade_envs.models import Sampling, load_model
from spade_envs.play import PlayConfig
from spade_envs.sandbox import Sandbox


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("memory", type=Path, help="folder of the environments")
    parser.add_argument("model", help="nano, hf:<directory or hub id>, openai:<model>")
    parser.add_argument("--base-url", help="endpoint of an openai: model")
    parser.add_argument("--plays", type=int, default=16, help="most plays of each environment, plain and hinted")
    parser.add_argument("-n", type=int, default=0, help="only so many environments")
    args = parser.parse_args()

    prompts = PromptSet.load("nano" if args.model == "nano" else "games")
    play = PlayConfig(system_prompt=prompts.agent_system, hint_template=prompts.hint_template, **prompts.play)
    config = CalibrationConfig(plays=args.plays, seed=1)  # stops earlier where the intervals are narrow
    model = load_model(args.model, base_url=args.base_url)
    with Memory.open(args.memory) as memory, Sandbox() as sandbox:
        records = memory.records()[: args.n or None]
        for result in calibrate(model, records, sandbox, play, config, sampling=Sampling(temperature=0.6)):
            facts = result.to_dict()
            low, high = facts["plain"]["win_rate_interval"]
            print(
                f"{result.record.env_id:50} win rate {facts['plain']['win_rate']:.2f} ({low:.2f} to {high:.2f}) "
                f"regret {facts['regret'] if facts['regret'] is None else round(facts['regret'], 2)}"
            )
            for hinted, arm in ((False, result.plain), (True, result.hinted)):
                memory.record_plays(result.record.id, tuple(arm.returns), hinted=hinted, run="calibrate", step=0)


if __name__ == "__main__":
    main()
