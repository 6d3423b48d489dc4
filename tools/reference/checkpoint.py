"""Random weights that all matter, reference results, and the checks on both."""

import torch
from transformers import AutoConfig, AutoModelForCausalLM

PROMPT = 20
NEW = 24
MATTERS = 0.02


def build(entry, change=None):
    config = AutoConfig.for_model(entry["model_type"], **{**entry["config"], **(change or {})})
    model = AutoModelForCausalLM.from_config(config, attn_implementation=attention_of(config), dtype=torch.float32)
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")
    return model.eval()


def attention_of(config):
    """Falcon's eager attention adds ALiBi twice, once in the mask; the default one adds it once."""
    return "sdpa" if getattr(config, "alibi", False) and config.model_type == "falcon" else "eager"


OUTPUTS = ("o_proj", "down_proj", "c_proj", "dense", "dense_4h_to_h", "fc2", "out_proj")
FINAL_NORMS = ("model.norm.weight", "ln_f.weight", "final_layer_norm.weight")
QUERIES = ("q_proj", "k_proj", "qkv_proj", "c_attn", "query_key_value")


def randomize(model, seed, rounded, qk_gain=1.2, out_gain=1.2, embed=None, embed_norm=1, final_norm=1,
              bias=0.3):
    """Weights whose every part shows in the logits: norms and biases too. `rounded(model, name, value)` is what will be
    stored; it's kept in float32.

    Layers that add little to an embedding tied to the head make it repeat its last token: hence `out_gain`, a small
    `embed` or `embed_norm`, and a `final_norm` that makes up for it.
    """
    generator = torch.Generator().manual_seed(seed)
    zero_centred = "Gemma" in type(model).__name__
    tied = model.get_input_embeddings().weight is model.get_output_embeddings().weight
    hidden = model.config.hidden_size
    for name, parameter in model.named_parameters():
        shape = parameter.shape
        normal = torch.randn(shape, generator=generator)
        part = name.removesuffix(".weight").split(".")[-1]
        if name.endswith("bias"):
            value = normal * bias
        elif len(shape) == 1:
            uniform = torch.rand(shape, generator=generator) + 0.5
            uniform *= embed_norm if "embeddings_layernorm" in name else 1
            uniform *= final_norm if name.endswith(FINAL_NORMS) else 1
            value = uniform - 1 if zero_centred else uniform
        elif parameter is model.get_output_embeddings().weight and not tied:
            value = normal * 2.2 / hidden**0.5
        elif parameter is model.get_input_embeddings().weight:
            value = normal * (embed or (2.2 / hidden**0.5 if tied else 0.7))
        elif "embed" in name or "wpe" in name:
            value = normal * 0.4
        elif part == "gate" and shape[0] == 4:
            value = normal * 1.5 / hidden**0.5
        else:
            fan_in = shape[0] if type(model).__name__.startswith("GPT2") else shape[-1]
            gain = qk_gain if part in QUERIES else out_gain if part in OUTPUTS else 1.2
            value = normal * gain / fan_in**0.5
        with torch.no_grad():
            parameter.copy_(rounded(model, name, value))


def prompt_ids(seed, vocab, length=PROMPT):
    generator = torch.Generator().manual_seed(seed + 1000)
    return torch.randint(4, vocab, (1, length), generator=generator)


@torch.no_grad()
def logits_of(model, ids):
    return model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits[0]


@torch.no_grad()
def check_generation(name, model, result):
    """Generation with cache gives the ids of the teacher-forced forward, and no id ends it."""
    prompt = torch.tensor([result["prompt"]])
    out = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=NEW)
    assert out[0, PROMPT:].tolist() == result["greedy"], (name, out[0, PROMPT:].tolist())


def result_of(model, seed):
    """One teacher-forced forward over prompt and greedy ids; None where this seed won't do."""
    prompt = prompt_ids(seed, model.config.vocab_size)
    ids = prompt
    for _ in range(NEW):
        logits = logits_of(model, ids)
        ids = torch.cat([ids, logits[-1:].argmax(-1, keepdim=True)], dim=1)
    ids = ids[0, PROMPT:]
    logits = logits_of(model, torch.cat([prompt, ids[None, :-1]], dim=1))
    path = logits[PROMPT - 1 :]
    top = path.topk(2).values
    gap = (top[:, 0] - top[:, 1]).min().item()
    if len(set(ids.tolist())) < 8 or min(ids.tolist()) < 4:
        return None
    if path.argmax(-1).tolist() != ids.tolist():
        return None
    return {"seed": seed, "prompt": prompt[0].tolist(), "greedy": ids.tolist(), "gap": gap, "logits": logits}


def all_ids(result):
    return torch.tensor([result["prompt"] + result["greedy"][:-1]])


@torch.no_grad()
def check_weights(name, model, result):
    """Every tensor, and every expert of one, changes the logits when it's neutralised."""
    ids = all_ids(result)
    weak = []
    for key, parameter in model.named_parameters():
        if key.endswith("k_proj.bias") and model.config.model_type in ("opt",):
            continue  # without rotation it adds the same to every score of a query
        before = parameter.clone()
        parts = range(parameter.shape[0]) if parameter.dim() == 3 else [None]
        for part in parts:
            target = parameter if part is None else parameter[part]
            target.copy_(target.roll(1) if target.dim() == 1 and not key.endswith("bias") else target * 0)
            change = (logits_of(model, ids) - result["logits"]).abs().max().item()
            if not change > MATTERS:
                weak.append((key, part, change))
            parameter.copy_(before)
    assert not weak, (name, weak)


def check_config(name, entry, model, result):
    for change in entry["matters"]:
        other = build(entry, change)
        other.load_state_dict(model.state_dict())
        difference = (logits_of(other, all_ids(result)) - result["logits"]).abs().max().item()
        assert difference > MATTERS, (name, change, difference)


def check_precision(name, model, result):
    exact = logits_of(model.double(), all_ids(result))
    error = (exact - result["logits"]).abs().max().item()
    model.float()
    assert error < 1e-4, (name, error)
    return error
