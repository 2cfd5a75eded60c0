"""The adapter's way to vLLM: exact, without drift, under the names that vLLM's loaders read."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx
import pytest
import torch
from families import family_model, with_adapter
from safetensors.torch import load_file
from transformers.core_model_loading import revert_weight_conversion
from trl.generation import vllm_generation
from trl.generation.vllm_generation import VLLMGeneration

from spade_train.lora.merge import MergeError, merged_weights
from spade_train.lora.serving import ServingError, check_folder, check_servable, served_rank
from spade_train.lora.sync import AdapterSync, SyncError, VllmServer, choose_sync, lora_settings
from spade_train.lora.trl_sync import adapter_engine, adapter_off, check_vllm_generation, install_sync
from spade_train.trl_adapter import TrlContractError

SERVES = {"lora_config": {"max_lora_rank": 16}, "parallel_config": {"data_parallel_size": 1}}


class FakeServer:
    """The adapter endpoints of ``vllm serve``: names, codes and the checks of its loader."""

    def __init__(self, *, routes: bool = True, settings: dict[str, Any] | None = None) -> None:
        self._routes, self._settings = routes, settings
        self.loaded: dict[str, dict[str, torch.Tensor]] = {}
        self.log: list[tuple[str, str]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/server_info":
            return httpx.Response(404 if self._settings is None else 200, json={"vllm_config": self._settings})
        if not self._routes:
            return httpx.Response(404, json={"detail": "Not Found"})
        body = json.loads(request.content)
        name = body["lora_name"]
        if request.url.path == "/v1/unload_lora_adapter":
            self.log.append(("unload", name))
            self.loaded.pop(name)
            return httpx.Response(200)
        assert request.url.path == "/v1/load_lora_adapter"
        self.log.append(("load", name))
        if name in self.loaded:
            return httpx.Response(400, text=f"The lora adapter '{name}' has already been loaded.")
        if not (Path(body["lora_path"]) / "adapter_config.json").is_file():
            return httpx.Response(404, text=f"No adapter found for {body['lora_path']}")
        check_folder(body["lora_path"], max_rank=16)
        self.loaded[name] = load_file(Path(body["lora_path"]) / "adapter_model.safetensors")
        return httpx.Response(200, text=f"Success: LoRA adapter '{name}' added successfully.")

    def client(self) -> VllmServer:
        """Return what the trainer uses of it."""
        inner = httpx.Client(base_url="http://vllm", transport=httpx.MockTransport(self))
        return VllmServer("http://vllm", client=inner)


class FakeLLM:
    """What TRL and the adapter's synchronisation use of ``vllm.LLM``."""

    def __init__(self, **arguments: Any) -> None:
        self.arguments = arguments
        self.asked: list[Any] = []
        self.adapters: dict[int, Any] = {}
        lora = SimpleNamespace(**arguments) if arguments.get("enable_lora") else None
        self.llm_engine = SimpleNamespace(
            vllm_config=SimpleNamespace(lora_config=lora),
            add_lora=self._add,
            remove_lora=self.adapters.pop,
            add_request=self._add_request,
        )

    def _add(self, request: Any) -> bool:
        assert self.arguments["enable_lora"]
        check_folder(request.lora_path, max_rank=self.arguments["max_lora_rank"])
        self.adapters[request.lora_int_id] = request
        return True

    def generate(
        self, prompts: Any, sampling_params: Any = None, use_tqdm: bool = True, lora_request: Any = None
    ) -> None:
        """Note under which adapter a call was made."""
        self.asked.append(lora_request)

    def _add_request(self, request_id: str, prompt: Any, params: Any, lora_request: Any = None) -> None:
        self.asked.append(lora_request)

    def sleep(self, level: int = 1) -> None:
        """TRL calls it at the start, where the engine is to sleep."""


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    class LoRARequest(SimpleNamespace):
        def __init__(self, lora_name: str, lora_int_id: int, lora_path: str) -> None:
            super().__init__(lora_name=lora_name, lora_int_id=lora_int_id, lora_path=lora_path)

    request = ModuleType("vllm.lora.request")
    request.LoRARequest = LoRARequest  # type: ignore[attr-defined]
    for name, module in {"vllm": ModuleType("vllm"), "vllm.lora": ModuleType("vllm.lora")}.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "vllm.lora.request", request)
    monkeypatch.setattr(vllm_generation, "LLM", FakeLLM, raising=False)


def _generation(policy: Any, mode: str = "colocate", **fields: Any) -> Any:
    """Return TRL's own object for vLLM, without what needs a GPU."""
    generation: Any = VLLMGeneration.__new__(VLLMGeneration)
    generation.model, generation.mode, generation.enable_sleep_mode = policy, mode, False
    generation._dist = SimpleNamespace(
        is_fsdp=False, is_zero3=False, fsdp_version=None, gather_params=lambda _: contextlib.nullcontext()
    )
    generation.server_base_url, generation.llm = "http://vllm", FakeLLM()
    for name, value in fields.items():
        setattr(generation, name, value)
    return generation


def _trainer(generation: Any) -> Any:
    accelerator = SimpleNamespace(
        is_main_process=True,
        num_processes=1,
        wait_for_everyone=lambda: None,
        state=SimpleNamespace(deepspeed_plugin=None, fsdp_plugin=None),
    )
    state = SimpleNamespace(global_step=0)
    return SimpleNamespace(
        use_vllm=True, vllm_generation=generation, accelerator=accelerator, state=state, _last_loaded_step=-1
    )


def _base(policy: Any) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in policy.named_parameters() if ".lora_" not in name}


def _drift(policy: Any, generation: Any, syncs: int) -> float:
    before = _base(policy)
    for _ in range(syncs):
        for _name, _weight in generation._iter_named_params():
            pass
    return max((_base(policy)[name].float() - value.float()).abs().max().item() for name, value in before.items())


@pytest.mark.parametrize(
    ("family", "targets"),
    [("qwen3", "auto"), ("qwen3_moe", "attention,experts")],
)
def test_base_weights_do_not_drift_over_200_synchronisations(family: str, targets: str) -> None:
    policy = with_adapter(family_model(family, torch.bfloat16, num_hidden_layers=1), targets)
    generation = _generation(policy)
    assert _drift(policy, generation, 20) > 1e-4, "TRL's own way must drift, or this test shows nothing"
    policy = with_adapter(family_model(family, torch.bfloat16, num_hidden_layers=1), targets)
    generation = _generation(policy)
    assert install_sync(_trainer(generation), wanted="merge", folder="unused") == "merge"
    assert _drift(policy, generation, 200) == 0.0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize(
    ("family", "targets"),
    [("qwen3", "auto"), ("qwen2", "q_proj"), ("gemma2", "auto"), ("llama", "q_proj,lm_head"), ("mixtral", "attention"),
     ("qwen3_moe", "attention,experts"), ("qwen2_moe", "all-linear,experts"), ("llama", "q_proj,embed_tokens")],
)  # fmt: skip
def test_sent_weights_are_the_merged_weights(family: str, targets: str, dtype: torch.dtype) -> None:
    policy = with_adapter(family_model(family, dtype), targets)
    changed = {name: value.clone() for name, value in merged_weights(policy)}
    everything = {name: value.clone() for name, value in merged_weights(policy, everything=True)}
    before = _base(policy)
    policy.merge_adapter()
    plain = {
        name.removeprefix("base_model.model.").replace(".base_layer", ""): value
        for name, value in _base(policy).items()
    }
    merged = revert_weight_conversion(policy.get_base_model(), plain)
    assert everything.keys() == merged.keys()
    assert all(torch.equal(everything[name], merged[name]) for name in merged)
    original = {
        name.removeprefix("base_model.model.").replace(".base_layer", ""): value for name, value in before.items()
    }
    original = revert_weight_conversion(policy.get_base_model(), original)
    moved = {name for name in merged if not torch.equal(merged[name], original[name])}
    assert moved <= changed.keys(), "every weight that the adapter changes is sent"
    assert all(torch.equal(changed[name], merged[name]) for name in changed)
    assert len(changed) < len(merged)


def test_what_engines_keep_in_one_piece_is_sent_in_one_piece() -> None:
    policy = with_adapter(family_model("qwen2", num_hidden_layers=1), "q_proj,up_proj")
    sent = [name.removeprefix("model.layers.0.") for name, _ in merged_weights(policy)]
    assert sent == [
        *(f"self_attn.{part}_proj.{kind}" for part in "qkv" for kind in ("weight", "bias")),
        "mlp.gate_proj.weight",
        "mlp.up_proj.weight",
    ]


def test_experts_are_sent_one_by_one() -> None:
    policy = with_adapter(family_model("qwen3_moe", num_hidden_layers=1), "experts.down_proj")
    sent = {name for name, _ in merged_weights(policy)}
    parts = ("gate_proj", "up_proj", "down_proj")
    assert sent == {f"model.layers.0.mlp.experts.{one}.{part}.weight" for one in range(4) for part in parts}
    attention = with_adapter(family_model("qwen3_moe", num_hidden_layers=1), "attention")
    assert not any("experts" in name for name, _ in merged_weights(attention)), "what nothing changes is not sent"


def test_sleeping_engines_get_everything(vllm: None) -> None:
    policy = with_adapter(family_model("qwen3"))
    generation = _generation(policy, enable_sleep_mode=True)
    assert install_sync(_trainer(generation), wanted="auto", folder="unused") == "merge"
    assert "lm_head.weight" in dict(generation._iter_named_params())
    with pytest.raises(SyncError, match="lora_sync: adapter"), adapter_off(_trainer(generation)):
        pass
    with pytest.raises(SyncError, match="sleeps"):
        install_sync(_trainer(_generation(policy, enable_sleep_mode=True)), wanted="adapter", folder="unused")


def test_an_adapter_that_is_no_sum_is_refused() -> None:
    from peft import LoraConfig, get_peft_model

    policy = get_peft_model(family_model("qwen3"), LoraConfig(r=2, target_modules=["q_proj"], use_dora=True))
    with pytest.raises(MergeError, match="plain LoRA"):
        list(merged_weights(policy))


def test_a_server_gets_one_adapter_for_each_step(tmp_path: Path) -> None:
    policy = with_adapter(family_model("qwen3"))
    server = FakeServer()
    sync = AdapterSync(policy, tmp_path, server.client())
    names = []
    for step in range(4):
        adapter = sync.sync(step)
        names.append(adapter.name)
        assert list(server.loaded) == [adapter.name]
        layer = policy.get_submodule("base_model.model.model.layers.0.self_attn.q_proj")
        key = "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight"
        assert torch.equal(server.loaded[adapter.name][key], layer.lora_B["default"].weight)
        with torch.no_grad():
            layer.lora_B["default"].weight.add_(1.0)
    assert len(set(names)) == 4
    assert [kind for kind, _ in server.log] == ["load", "load", "unload", "load", "unload", "load", "unload"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[-2:]), "old folders go, one sync later"
    again = AdapterSync(policy, tmp_path, server.client()).sync(0)
    assert again.name not in names, "a resumed run must not ask for what the server holds of the run before"


def test_reader_never_sees_a_part_of_an_adapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = with_adapter(family_model("qwen3"))
    seen: list[bool] = []
    save = type(policy).save_pretrained

    def watched(self: Any, folder: Any, **arguments: Any) -> None:
        save(self, folder, **arguments)
        seen.append(any(not path.name.startswith(".") for path in tmp_path.iterdir()))

    monkeypatch.setattr(type(policy), "save_pretrained", watched)
    adapter = AdapterSync(policy, tmp_path, None).sync(3)
    assert seen == [False]
    check_folder(adapter.path)
    assert [path.name for path in tmp_path.iterdir()] == [adapter.name]


def test_server_in_trl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = with_adapter(family_model("qwen3"))
    server = FakeServer(settings=SERVES)
    monkeypatch.setattr("spade_train.lora.trl_sync.VllmServer", lambda _: server.client())
    generation = _generation(policy, "server", vllm_client=SimpleNamespace(model="base"))
    trainer = _trainer(generation)
    assert install_sync(trainer, wanted="auto", folder=tmp_path) == "adapter"
    trainer.state.global_step = 7
    generation.sync_weights()
    assert generation.vllm_client.model == generation.served_model == next(iter(server.loaded))
    assert "-7-" in generation.served_model
    with adapter_off(trainer):
        assert generation.vllm_client.model == generation.served_model == "base"
    assert "-7-" in generation.vllm_client.model
    trainer.state.global_step = 8
    with adapter_off(trainer):  # the step's adapter is loaded first, so that nothing loads it in between
        assert generation.served_model == "base"
        assert trainer._last_loaded_step == 8
    assert "-8-" in generation.vllm_client.model == generation.served_model


def test_engine_in_this_process(vllm: None, tmp_path: Path) -> None:
    policy = with_adapter(family_model("qwen3"))
    with adapter_engine(wanted="auto", r=4, colocated=True, sleeps=False):
        llm = vllm_generation.LLM(model="m")
    assert vllm_generation.LLM is FakeLLM
    assert llm.arguments == {"model": "m", "enable_lora": True, "max_lora_rank": 8, "max_loras": 1, "max_cpu_loras": 2}
    generation = _generation(policy, llm=llm)
    trainer = _trainer(generation)
    assert install_sync(trainer, wanted="adapter", folder=tmp_path) == "adapter"
    for step in range(3):
        trainer.state.global_step = step
        generation.sync_weights()
        llm.generate([], sampling_params=None, use_tqdm=False)
        llm.llm_engine.add_request("a", [], None)
        assert [request.lora_int_id for request in llm.asked[-2:]] == [step + 1] * 2
        assert list(llm.adapters) == [step + 1]
    trainer._last_loaded_step = 2
    with adapter_off(trainer):
        llm.generate([], sampling_params=None, use_tqdm=False)
        llm.llm_engine.add_request("a", [], None)
    assert llm.asked[-2:] == [None, None]
    llm.generate([], sampling_params=None, use_tqdm=False)
    assert llm.asked[-1].lora_int_id == 3
    with adapter_engine(wanted="merge", r=4, colocated=True, sleeps=False):
        assert vllm_generation.LLM is FakeLLM
    plain = _trainer(_generation(policy))
    assert install_sync(plain, wanted="auto", folder=tmp_path) == "merge"
    with pytest.raises(SyncError, match="without enable_lora"):
        install_sync(plain, wanted="adapter", folder=tmp_path)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [(None, "merge"), ({"lora_config": None}, "merge"), (SERVES, "adapter"),
     (SERVES | {"parallel_config": {"data_parallel_size": 2}}, "merge")],
)  # fmt: skip
def test_auto_asks_the_server(settings: Any, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer(settings=settings)
    monkeypatch.setattr("spade_train.lora.trl_sync.VllmServer", lambda _: server.client())
    generation = _generation(with_adapter(family_model("qwen3")), "server", vllm_client=SimpleNamespace(model="base"))
    assert install_sync(_trainer(generation), wanted="auto", folder=tmp_path) == expected
    if expected == "merge":
        with pytest.raises(SyncError, match="enable-lora"):
            install_sync(_trainer(generation), wanted="adapter", folder=tmp_path)


def test_server_faults_say_what_to_start_it_with(tmp_path: Path) -> None:
    policy = with_adapter(family_model("qwen3"))
    with pytest.raises(SyncError, match="VLLM_ALLOW_RUNTIME_LORA_UPDATING"):
        AdapterSync(policy, tmp_path, FakeServer(routes=False).client()).sync(0)
    small = FakeServer(settings={"lora_config": {"max_lora_rank": 8}})
    with pytest.raises(SyncError, match="--max-lora-rank 16"):
        small.client().serves_adapters(16)

    class Down(FakeServer):
        def __call__(self, request: httpx.Request) -> httpx.Response:
            raise httpx.ConnectError("refused")

    with pytest.raises(SyncError, match="Is it running"):
        Down().client().serves_adapters(8)

    class Elsewhere(FakeServer):
        def __call__(self, request: httpx.Request) -> httpx.Response:
            return httpx.Response(404, text="No adapter found for /nowhere")

    with pytest.raises(SyncError, match="must see this path"):
        AdapterSync(policy, tmp_path, Elsewhere().client()).sync(0)


def test_experts_are_merged_whatever_the_engine_serves() -> None:
    settings = lora_settings(with_adapter(family_model("qwen3_moe"), "experts"))
    assert choose_sync("auto", settings, engine_serves=True) == "merge"
    with pytest.raises(SyncError, match="target_parameters"):
        choose_sync("adapter", settings, engine_serves=True)
    assert choose_sync("merge", settings, engine_serves=True) == "merge"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"use_dora": True}, "use_dora"),
        ({"bias": "all"}, "biases"),
        ({"lora_bias": True}, "biases"),
        ({"r": 64}, "max_lora_rank 16; start it with 64"),
        ({"target_parameters": ["experts.down_proj"]}, "target_parameters"),
        ({"rank_pattern": {"q_proj": 2}}, "rank_pattern"),
        ({"target_modules": ["q_proj", "lm_head"]}, "head"),
        ({"target_modules": []}, "lacks target_modules"),
        ({"peft_type": "IA3"}, "IA3"),
    ],
)
def test_what_vllm_refuses_is_refused_first(change: dict[str, Any], said: str) -> None:
    good = lora_settings(with_adapter(family_model("qwen3")))
    check_servable(good, max_rank=16)
    with pytest.raises(ServingError, match=said):
        check_servable(good | change, max_rank=16)


def test_tensor_names_are_checked() -> None:
    good = lora_settings(with_adapter(family_model("qwen3")))
    check_servable(good, ["base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"])
    wrong = ("model.q_proj.lora_A.weight", "base_model.model.q_proj.weight", "base_model.model.x.lora_A.default.weight")
    for key in (*wrong, "base_model.model.e.lora_embedding_A", "base_model.model.experts.base_layer.lora_A.weight"):
        with pytest.raises(ServingError, match="is not named"):
            check_servable(good, [key])
    assert [served_rank(r) for r in (1, 4, 8, 33, 512)] == [1, 8, 8, 64, 512]
    with pytest.raises(ServingError, match="up to rank 512"):
        served_rank(513)


def test_trl_that_has_changed_is_refused() -> None:
    check_vllm_generation(VLLMGeneration)

    class Changed:
        def sync_weights(self) -> None: ...
        def generate(self) -> None: ...
        def _init_vllm(self) -> None: ...

    with pytest.raises(TrlContractError, match="_iter_named_params"):
        check_vllm_generation(Changed)


def test_fsdp_1_is_refused_before_anything_is_trained() -> None:
    trainer = _trainer(_generation(with_adapter(family_model("qwen3"))))
    trainer.accelerator.state.fsdp_plugin = SimpleNamespace(fsdp_version=1)
    with pytest.raises(SyncError, match="fsdp_version: 2"):
        install_sync(trainer, wanted="auto", folder="unused")


def test_server_is_told_what_it_will_get_and_gets_it() -> None:
    policy = with_adapter(family_model("qwen3_moe"), "attention,experts")
    sent: dict[str, torch.Tensor] = {}

    def take(metadata: list[tuple[str, str, list[int]]], weights: Any) -> None:
        for (name, kind, shape), (streamed, value) in zip(metadata, weights, strict=True):
            assert (name, kind, shape) == (streamed, "float32", list(value.shape))
            sent[name] = value.clone()

    client = SimpleNamespace(update_named_params=take, reset_prefix_cache=lambda: None)
    generation = _generation(policy, "server", vllm_client=client, _weight_metadata=None)
    trainer = _trainer(generation)
    generation.accelerator = trainer.accelerator
    assert install_sync(trainer, wanted="merge", folder="unused") == "merge"
    generation.sync_weights()  # TRL's own
    assert sent.keys() == dict(merged_weights(policy)).keys()
    assert all(torch.equal(sent[name], value) for name, value in merged_weights(policy))
