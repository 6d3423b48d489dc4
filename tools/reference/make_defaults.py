"""Writes config-defaults.json: what transformers makes of config.json files that leave fields out.

    python make_defaults.py [section ...]

`families`: by model_type a `config` in which every field that may be left out differs from the default, and for each
of these fields what holds where it's absent, and where it's null ("refused" where no model can be built or run).
`rope` and `windows`: whole files whose fields stand in each other's way, with the frequencies of the rotation, and the
tokens that each layer sees (0: all 16). `pictures`: files of Gemma 3 with pictures, which leave nearly all out, and
what holds for the text part.
"""

import json
import sys
import tempfile
from pathlib import Path

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.gemma3.modeling_gemma3 import Gemma3RotaryEmbedding

OUT = Path(__file__).parents[2] / "test/fixtures/reference/config-defaults.json"
TOKENS = 16
LAYERS = 6
# Without them there's no model: `REQUIRED` fields aren't left out, but in Gemma 3.
SIZES = dict(vocab_size=96, hidden_size=64, intermediate_size=48, num_hidden_layers=LAYERS, num_attention_heads=32)
SHARED = dict(num_key_value_heads=16, head_dim=8, hidden_act="gelu", max_position_embeddings=640, rms_norm_eps=0.003,
              rope_theta=777.0, eos_token_id=3)
WINDOW = dict(use_sliding_window=True, sliding_window=5)
TYPES = ["full_attention", "sliding_attention", "sliding_attention"] * 2
GPT = dict(layer_norm_epsilon=0.003, eos_token_id=3, tie_word_embeddings=False)
GEMMA = dict(SHARED, num_key_value_heads=8, hidden_activation="silu", tie_word_embeddings=False, attention_bias=True, sliding_window=5,
             query_pre_attn_scalar=24, attn_logit_softcapping=7.0, final_logit_softcapping=9.0,
             use_bidirectional_attention=False, layer_types=TYPES)
GEMMA.pop("hidden_act")
LLAMA = dict(SHARED, tie_word_embeddings=True)
# Its norms need heads that make up the hidden size.
OLMOE = {key: LLAMA[key] for key in LLAMA if key != "head_dim"}
EXPERTS = dict(num_experts_per_tok=3, norm_topk_prob=True)

# model_type: (sizes, fields that may be left out)
FAMILIES = {
    "llama": (SIZES, dict(LLAMA, attention_bias=True, mlp_bias=True)),
    "mistral": (SIZES, dict(LLAMA, sliding_window=5)),
    "qwen2": (SIZES, dict(LLAMA, **WINDOW, max_window_layers=2, layer_types=TYPES)),
    "qwen3": (SIZES, dict(LLAMA, attention_bias=True, **WINDOW, max_window_layers=2, layer_types=TYPES)),
    "qwen3_moe": (dict(SIZES, num_experts=4, moe_intermediate_size=24),
                  dict(LLAMA, **EXPERTS, attention_bias=True, **WINDOW, decoder_sparse_step=2, mlp_only_layers=[3])),
    "phi3": (dict(SIZES, num_attention_heads=4),
             dict(LLAMA, num_key_value_heads=2, sliding_window=5,
                  original_max_position_embeddings=320, partial_rotary_factor=0.5)),
    "gemma2": (SIZES, dict(GEMMA, use_bidirectional_attention=None)),
    "gemma3_text": (
        {key: SIZES[key] for key in ("hidden_size", "intermediate_size", "num_hidden_layers")},
        dict(GEMMA, vocab_size=96, num_attention_heads=32, rope_local_base_freq=55.0, sliding_window_pattern=2)),
    "mixtral": (dict(SIZES, num_local_experts=4), dict(LLAMA, sliding_window=5, num_experts_per_tok=3)),
    "olmoe": (dict(SIZES, num_experts=4), dict(OLMOE, **EXPERTS, attention_bias=True, clip_qkv=None)),
    "smollm3": (SIZES, dict(LLAMA, tie_word_embeddings=False, attention_bias=True, mlp_bias=True, **WINDOW,
                            layer_types=TYPES, no_rope_layers=[1, 0, 0, 1, 1, 0], no_rope_layer_interval=3)),
    "gpt2": (dict(vocab_size=96, n_embd=64, n_layer=LAYERS, n_head=8),
             dict(GPT, n_positions=320, n_inner=48, activation_function="relu", scale_attn_weights=True,
                  scale_attn_by_inverse_layer_idx=False, add_cross_attention=False)),
    "gpt_neo": (dict(vocab_size=96, hidden_size=64, num_layers=24, num_heads=8),
                dict(GPT, max_position_embeddings=320, intermediate_size=48, window_size=5,
                     activation_function="relu", attention_types=[[["local"], 24]])),
    "opt": (dict(vocab_size=96, hidden_size=64, num_hidden_layers=LAYERS, num_attention_heads=8, ffn_dim=48),
            dict(eos_token_id=3, tie_word_embeddings=False, max_position_embeddings=320, activation_function="gelu",
                 enable_bias=False, do_layer_norm_before=True, layer_norm_elementwise_affine=True,
                 word_embed_proj_dim=64, _remove_final_layer_norm=False)),
    "bloom": (dict(vocab_size=96, hidden_size=64, n_layer=LAYERS, n_head=8),
              dict(GPT, apply_residual_connection_post_layernorm=False)),
    "falcon": (dict(vocab_size=96, hidden_size=64, num_hidden_layers=LAYERS, num_attention_heads=8),
               dict(GPT, max_position_embeddings=320, rope_theta=777.0, num_kv_heads=8, activation="relu",
                    new_decoder_architecture=False, multi_query=False, parallel_attn=False, bias=True, alibi=False,
                    ffn_hidden_size=48, num_ln_in_parallel_attn=1)),
}


def load(config):
    """By the file, since AutoConfig looks at it before the class does."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps({**config, "pad_token_id": 0}))
        return AutoConfig.from_pretrained(folder)


def run(config, **options):
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        return model, model(torch.arange(3, 3 + TOKENS)[None], **options)


def value_of(config, field):
    rope = getattr(config, "rope_parameters", None) or {}
    match field:
        case "rope_theta":
            return rope.get("full_attention", rope)["rope_theta"]
        case "rope_local_base_freq":
            return rope["sliding_attention"]["rope_theta"]
        case "partial_rotary_factor":
            return rope["partial_rotary_factor"]
        case "sliding_window_pattern":
            return config._sliding_window_pattern
        case "head_dim":
            return getattr(config, "head_dim", None)
    return getattr(config, field)


def null_value(config, field):
    try:
        loaded = load({**config, field: None})
        run(loaded)
        return value_of(loaded, field)
    except Exception as error:
        print(f"  {field}: null: {str(error)[:100]!r}")
        return "refused"


def family(model_type, sizes, fields):
    print(model_type, flush=True)
    config = {"model_type": model_type, **sizes, **fields}
    run(load(config))
    without = {field: {key: config[key] for key in config if key != field} for field in fields}
    return {
        "class": type(load(config)).__name__,
        "config": config,
        "absent": {field: value_of(load(rest), field) for field, rest in without.items()},
        "null": {field: null_value(config, field) for field in fields},
    }


def llama(**more):
    return {"model_type": "llama", **SIZES, "head_dim": 16, "max_position_embeddings": 640, "num_key_value_heads": 16,
            **more}


def scaled(kind, spelling="rope_type", **more):
    return {spelling: kind, "factor": 4.0, **more}


def gemma3(**more):
    return {**llama(**more), "model_type": "gemma3_text", "sliding_window": 5}


ORIGINAL = {"original_max_position_embeddings": 64}
FACTORS = {"short_factor": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7], "long_factor": [2.0 + n for n in range(8)]}
BANDS = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
PLAIN = {"rope_type": "default", "rope_theta": 300.0}
LINEAR = scaled("linear")

ROPE = {
    "dynamic with an original length": llama(rope_scaling=scaled("dynamic", **ORIGINAL)),
    "dynamic": llama(rope_scaling=scaled("dynamic", "type")),
    "yarn without an original length": llama(rope_scaling=scaled("yarn")),
    "yarn with an original length": llama(rope_scaling=scaled("yarn", **ORIGINAL)),
    "yarn with two original lengths": llama(original_max_position_embeddings=128, rope_scaling=scaled("yarn", **ORIGINAL)),
    "yarn with one of two scales": llama(rope_scaling=scaled("yarn", mscale=0.7, **ORIGINAL)),
    "yarn without a factor": llama(rope_scaling=scaled("yarn", **ORIGINAL) | {"factor": None}),
    "yarn that may or may not truncate": llama(rope_scaling=scaled("yarn", truncate=None, **ORIGINAL)),
    "llama3 with two original lengths": llama(original_max_position_embeddings=32,
                                              rope_scaling=scaled("llama3", **BANDS, **ORIGINAL)),
    "llama3 without an original length": llama(rope_scaling=scaled("llama3", **BANDS)),
    "longrope without a factor": llama(rope_scaling={"rope_type": "longrope", **FACTORS, **ORIGINAL}),
    "longrope with a factor": llama(rope_scaling=scaled("longrope", **FACTORS, **ORIGINAL)),
    "longrope with a factor and two original lengths": llama(
        original_max_position_embeddings=128, rope_scaling=scaled("longrope", **FACTORS, **ORIGINAL)),
    "longrope of Phi-3": {**llama(original_max_position_embeddings=128), "model_type": "phi3", "num_attention_heads": 4,
                          "num_key_value_heads": 4, "rope_scaling": {"type": "longrope", **FACTORS}},
    "both fields": llama(rope_parameters=PLAIN, rope_scaling=LINEAR),
    "both fields, one of them empty": llama(rope_parameters=PLAIN, rope_scaling={}),
    "both fields, one of them null": llama(rope_parameters=PLAIN, rope_scaling=None),
    "two types": llama(rope_scaling={"type": "linear", **scaled("yarn", **ORIGINAL)}),
    "theta outside": llama(rope_theta=500.0, rope_parameters={"rope_type": "default"}),
    "theta outside and inside": llama(rope_theta=500.0, rope_parameters=PLAIN),
    "Gemma 3, nothing": gemma3(),
    "Gemma 3, older names": gemma3(rope_theta=5000.0, rope_local_base_freq=500.0, rope_scaling=LINEAR),
    "Gemma 3, scaling only": gemma3(rope_scaling=LINEAR),
    "Gemma 3, an older type": gemma3(rope_scaling=scaled("linear", "type")),
    "Gemma 3, nested": gemma3(rope_parameters={"full_attention": PLAIN | LINEAR,
                                               "sliding_attention": {"rope_type": "default"}}),
    "Gemma 3, nested, one kind": gemma3(rope_theta=5000.0, rope_parameters={"sliding_attention": PLAIN}),
    "Gemma 3, nested and scaling": gemma3(rope_parameters={"full_attention": dict(PLAIN)}, rope_scaling=LINEAR),
}

QWEN = {**SIZES, "num_key_value_heads": 16, "sliding_window": 5}
SMOLLM3 = {**QWEN, "model_type": "smollm3"}
MOE = {**QWEN, "model_type": "qwen3_moe", "num_experts": 4, "moe_intermediate_size": 24, "num_experts_per_tok": 2}

WINDOWS = {
    "mistral, null": {**QWEN, "model_type": "mistral", "sliding_window": None},
    "mistral": {**QWEN, "model_type": "mistral"},
    "mistral with layer types": {**QWEN, "model_type": "mistral", "head_dim": 2, "layer_types": TYPES},
    "mixtral with layer types": {**QWEN, "model_type": "mixtral", "num_local_experts": 4, "layer_types": TYPES},
    "qwen2, off": {**QWEN, "model_type": "qwen2", "max_window_layers": 2},
    "qwen2, on": {**QWEN, "model_type": "qwen2", "max_window_layers": 2, "use_sliding_window": True},
    "qwen2, on, null": {**QWEN, "model_type": "qwen2", "max_window_layers": 2, "use_sliding_window": True,
                        "sliding_window": None},
    "qwen2, off with layer types": {**QWEN, "model_type": "qwen2", "layer_types": TYPES},
    "qwen3, on with layer types": {**QWEN, "model_type": "qwen3", "use_sliding_window": True, "layer_types": TYPES},
    "qwen3_moe, off": MOE,
    "qwen3_moe, on": {**MOE, "use_sliding_window": True, "max_window_layers": 2},
    "qwen3_moe, on with layer types": {**MOE, "use_sliding_window": True, "layer_types": TYPES},
    "smollm3, off": SMOLLM3,
    "smollm3, on": {**SMOLLM3, "use_sliding_window": True},
    "smollm3, on, some layers without rotation": {**SMOLLM3, "use_sliding_window": True,
                                                  "no_rope_layers": [0, 1, 1, 0, 1, 0]},
    "smollm3, on with layer types": {**SMOLLM3, "use_sliding_window": True, "layer_types": TYPES},
    "smollm3, on with layer types, null": {**SMOLLM3, "use_sliding_window": True, "layer_types": TYPES,
                                           "sliding_window": None},
    "gemma2": {**QWEN, "model_type": "gemma2"},
    "gemma3_text": {**QWEN, "model_type": "gemma3_text"},
    "gemma3_text, pattern": {**QWEN, "model_type": "gemma3_text", "sliding_window_pattern": 3},
    "gemma3_text, null": {**QWEN, "model_type": "gemma3_text", "sliding_window": None},
    "llama": {**QWEN, "model_type": "llama", "sliding_window": None},
    "phi3": {**QWEN, "model_type": "phi3"},
}


def rotation(config):
    """Frequencies at the start of a text, by kind of layer where the family tells kinds apart."""
    loaded = load(config)
    if loaded.model_type == "gemma3_text":
        rotary = AutoModelForCausalLM.from_config(loaded).model.rotary_emb
        return {kind: {"frequencies": getattr(rotary, f"{kind}_inv_freq").tolist(),
                       "factor": getattr(rotary, f"{kind}_attention_scaling")}
                for kind in ("full_attention", "sliding_attention")}
    rotary = AutoModelForCausalLM.from_config(loaded).model.rotary_emb
    return {"all": {"frequencies": rotary.inv_freq.tolist(), "factor": rotary.attention_scaling}}


def windows(config):
    """The tokens that the last one sees."""
    try:
        _, out = run(load({**config, "eos_token_id": 3}), output_attentions=True)
    except Exception as error:
        print("  refused:", str(error)[:100])
        return "refused"
    seen = [int((layer[0, 0, -1] > 0).sum()) for layer in out.attentions]
    return [0 if count == TOKENS else count for count in seen]


def picture_model(more=None, text=None):
    """As published: what isn't here, the files don't say."""
    sizes = {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34,
             "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024}
    return {"architectures": ["Gemma3ForConditionalGeneration"], "eos_token_id": [1, 106], "model_type": "gemma3",
            "text_config": {**sizes, **(text or {})}, **(more or {})}


LARGEST = {"head_dim": 128, "hidden_size": 5376, "intermediate_size": 21504, "num_attention_heads": 32,
           "num_hidden_layers": 62, "num_key_value_heads": 16, "query_pre_attn_scalar": 168}
PICTURES = {
    "4b": picture_model(),
    "12b": picture_model(text={"hidden_size": 3840, "intermediate_size": 15360, "num_attention_heads": 16,
                               "num_hidden_layers": 48, "num_key_value_heads": 8}),
    "27b": picture_model(text=LARGEST),
    "not tied": picture_model({"tie_word_embeddings": False}, {"tie_word_embeddings": True}),
    "ends as the text part does": picture_model({"eos_token_id": None}, {"eos_token_id": 7}),
}


def picture_facts(config):
    outer = load(config)
    text = outer.text_config
    rotary = Gemma3RotaryEmbedding(text)
    return {
        "config": config,
        "headCount": text.num_attention_heads, "kvHeadCount": text.num_key_value_heads, "headSize": text.head_dim,
        "vocabSize": text.vocab_size, "context": text.max_position_embeddings, "epsilon": text.rms_norm_eps,
        "scale": text.query_pre_attn_scalar**-0.5, "tied": outer.tie_word_embeddings,
        "eosTokenIds": transformers.GenerationConfig.from_model_config(outer).eos_token_id,
        "windows": [text.sliding_window if kind == "sliding_attention" else 0 for kind in text.layer_types],
        "global": rotary.full_attention_inv_freq.tolist(), "local": rotary.sliding_attention_inv_freq.tolist(),
    }


SECTIONS = {
    "families": lambda: {name: family(name, *entry) for name, entry in FAMILIES.items()},
    "rope": lambda: [{"name": name, "config": config, "layers": rotation(config)} for name, config in ROPE.items()],
    "windows": lambda: [{"name": name, "config": config, "windows": windows(config)} for name, config in WINDOWS.items()],
    "pictures": lambda: [{"name": name, **picture_facts(config)} for name, config in PICTURES.items()],
}


def main(wanted):
    result = json.loads(OUT.read_text()) if wanted else {}
    result["source"] = f"transformers {transformers.__version__}, tools/reference/make_defaults.py"
    for name, make in SECTIONS.items():
        if not wanted or name in wanted:
            result[name] = make()
            OUT.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    main(sys.argv[1:])
