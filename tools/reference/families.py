"""The tiny checkpoints: one entry per folder of test/fixtures/reference.

`config` goes to transformers' configuration class. `matters` are changes of it that must change the logits: what a
wrong reader of the config would get. `prompt` is the prompt's length.
"""

IDS = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)


def llama(**more):
    """Hidden 32, two heads of 16 over one key/value head, 2 layers: the base of the small ones."""
    return {
        **IDS, "vocab_size": 96, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 128, **more,
    }


def rope(kind, theta=10000.0, **more):
    return {"rope_type": kind, "rope_theta": theta, **more}


def family(model_type, config, matters=(), **more):
    return {"model_type": model_type, "config": config, "matters": list(matters), "dtype": "float16", **more}


SHORT = [1.0, 1.05, 1.1, 1.2, 1.3, 1.4, 1.6, 1.8]
LONG = [1.0, 1.3, 1.7, 2.2, 3.0, 4.5, 6.0, 9.0]
LLAMA3 = rope("llama3", 10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=32)
STRONG = {"out_gain": 3.0}
GEMMA = {"embed": 0.08, "final_norm": 4.0}
BLOOM = {"qk_gain": 3.0, "out_gain": 2.0, "embed_norm": 0.5, "bias": 0.1}
RW = {"out_gain": 2.0, "embed": 0.1, "final_norm": 3.0}
DEFAULT = {"rope_parameters": rope("default")}
GPT2 = dict(pad_token_id=None, bos_token_id=1, eos_token_id=2, vocab_size=96, n_positions=64, n_embd=32, n_head=2)
FALCON = dict(bos_token_id=1, eos_token_id=2, pad_token_id=0, vocab_size=96, num_hidden_layers=2,
              max_position_embeddings=128)


def longrope(original, maximum, size=8, **more):
    return rope("longrope", short_factor=SHORT[:size], long_factor=LONG[:size],
                original_max_position_embeddings=original, **more), original, maximum


def phi3(original=None, maximum=128, size=8, partial=1.0, **more):
    parameters = rope("default")
    if original is not None:
        parameters = longrope(original, maximum, size)[0]
    parameters["partial_rotary_factor"] = partial
    return llama(original_max_position_embeddings=original or maximum, max_position_embeddings=maximum,
                 rope_parameters=parameters, **more)


FAMILIES = {
    "llama": family(
        "llama",
        llama(num_key_value_heads=2, rms_norm_eps=1e-5),
        [{"rope_parameters": rope("default", 500.0)}, {"rms_norm_eps": 0.05}], dtype="float32"),
    "llama-gqa": family(
        "llama", llama(hidden_size=64, intermediate_size=32, num_attention_heads=4, num_key_value_heads=2)),
    "llama3": family(
        "llama", llama(tie_word_embeddings=True, rope_parameters=LLAMA3, eos_token_id=[2, 3]),
        [DEFAULT, {"rope_parameters": {**LLAMA3, "high_freq_factor": 2.0}},
         {"rope_parameters": {**LLAMA3, "factor": 2.0}}]),
    "llama-head8": family(
        "llama", llama(num_attention_heads=4, num_key_value_heads=2)),
    "llama-biases": family("llama", llama(attention_bias=True, mlp_bias=True)),
    "llama-linear": family(
        "llama", llama(num_hidden_layers=1, rope_parameters=rope("linear", factor=4.0)), [DEFAULT],
        note="rope linear, factor 4, at every position"),
    "llama-dynamic": family(
        "llama", llama(num_hidden_layers=1, max_position_embeddings=64, rope_parameters=rope("dynamic", factor=4.0)),
        note="rope dynamic, within max_position_embeddings: the plain frequencies are active"),
    "llama-yarn": family(
        "llama", llama(num_hidden_layers=1, rope_parameters=rope("yarn", factor=4.0, original_max_position_embeddings=32)), [DEFAULT],
        note="rope yarn: factor 4 and attention factor 0.1 ln 4 + 1 are active at every position"),
    "llama-yarn-mscale": family(
        "llama",
        llama(num_hidden_layers=1, rope_parameters=rope("yarn", factor=4.0, original_max_position_embeddings=32, mscale=1.5,
                                   mscale_all_dim=0.5, beta_fast=4.0, beta_slow=0.5)),
        [DEFAULT, {"rope_parameters": rope("yarn", factor=4.0, original_max_position_embeddings=32, mscale=1.5,
                                           mscale_all_dim=0.5)},
         {"rope_parameters": rope("yarn", factor=4.0, original_max_position_embeddings=32, beta_fast=4.0,
                                  beta_slow=0.5)}],
        note="rope yarn: factor 4 and the quotient of both mscales are active at every position"),
    "llama-yarn-factor": family(
        "llama",
        llama(num_hidden_layers=1, rope_parameters=rope("yarn", factor=4.0, original_max_position_embeddings=32, attention_factor=1.4,
                                   truncate=False)),
        [{"rope_parameters": rope("yarn", factor=4.0, original_max_position_embeddings=32, truncate=False)},
         {"rope_parameters": rope("yarn", factor=4.0, original_max_position_embeddings=32, attention_factor=1.4)}],
        note="rope yarn: factor 4, attention_factor 1.4 and truncate false are active at every position"),
    "llama-sharded-bf16": family("llama", llama(), dtype="bfloat16", shards=2),
    "smollm2": family("llama", llama(tie_word_embeddings=True, rope_parameters=rope("default", 100000.0))),
    "smollm3": family(
        "smollm3", llama(num_hidden_layers=4, intermediate_size=32, tie_word_embeddings=True),
        [{"no_rope_layers": [1, 1, 1, 1]}]),
    "mistral": family(
        "mistral", llama(sliding_window=9, rope_parameters=rope("default", 10000.0)),
        [{"sliding_window": None}, {"sliding_window": 8}, {"sliding_window": 10}]),
    "qwen2": family("qwen2", llama(rope_parameters=rope("default", 1e6), tie_word_embeddings=True)),
    "qwen3": family(
        "qwen3", llama(num_attention_heads=4, num_key_value_heads=2, head_dim=16, intermediate_size=32,
                       rope_parameters=rope("default", 1e6), tie_word_embeddings=True)),
    "phi3": family(
        "phi3", phi3(sliding_window=10, num_key_value_heads=2), [{"sliding_window": None}]),
    "phi3-longrope": family(
        "phi3", phi3(original=64, maximum=256, num_key_value_heads=2, num_hidden_layers=1),
        [{"original_max_position_embeddings": 256, "rope_parameters": {**phi3()["rope_parameters"]}}],
        note="longrope within the original context: short_factor is active, and the attention factor "
             "sqrt(1 + ln 4 / ln 64)"),
    "phi3-longrope-long": family(
        "phi3", phi3(original=16, maximum=64, num_key_value_heads=2, num_hidden_layers=1),
        note="longrope: the prompt exceeds the original context, long_factor is active at every position, and the "
             "attention factor sqrt(1 + ln 4 / ln 16)"),
    "phi4-mini": family(
        "phi3", phi3(original=64, maximum=256, size=6, partial=0.75, tie_word_embeddings=True),
        note="longrope within the original context on 12 of 16 dimensions of a head: short_factor is active"),
    "gemma2": family(
        "gemma2",
        llama(head_dim=16, num_attention_heads=4, num_key_value_heads=2, intermediate_size=32, num_hidden_layers=2,
              sliding_window=8, query_pre_attn_scalar=12, attn_logit_softcapping=4.0, final_logit_softcapping=6.0,
              eos_token_id=[2, 3]),
        [{"sliding_window": 1000}, {"query_pre_attn_scalar": 16}, {"attn_logit_softcapping": None},
         {"final_logit_softcapping": None}, {"layer_types": ["full_attention", "sliding_attention"]}], gains=GEMMA),
    "gemma3": family(
        "gemma3_text",
        llama(head_dim=16, num_attention_heads=4, num_key_value_heads=1, intermediate_size=32, num_hidden_layers=3,
              sliding_window=8, query_pre_attn_scalar=24,
              layer_types=["sliding_attention", "full_attention", "sliding_attention"],
              rope_parameters={"sliding_attention": rope("default", 1000.0),
                               "full_attention": rope("linear", 20000.0, factor=4.0)}),
        [{"sliding_window": 1000}, {"query_pre_attn_scalar": 16},
         {"rope_parameters": {"sliding_attention": rope("default", 20000.0),
                              "full_attention": rope("linear", 20000.0, factor=4.0)}},
         {"rope_parameters": {"sliding_attention": rope("default", 1000.0),
                              "full_attention": rope("default", 20000.0)}}], gains=GEMMA),
    "gpt2": family("gpt2", dict(GPT2, n_layer=2), [{"activation_function": "relu"}], layout="gpt2-hub", gains=STRONG),
    "distilgpt2": family("gpt2", dict(GPT2, n_layer=1), layout="gpt2-hub-prefixed", gains=STRONG),
    "gpt-neo": family(
        "gpt_neo",
        dict(bos_token_id=1, eos_token_id=2, pad_token_id=0, vocab_size=96, hidden_size=32, num_layers=2, num_heads=2,
             max_position_embeddings=64, attention_types=[[["global", "local"], 1]], window_size=6),
        [{"window_size": 64}, {"window_size": 7}, {"attention_types": [[["local", "global"], 1]]}], gains={"qk_gain": 0.8}),
    "opt": family(
        "opt",
        dict(pad_token_id=1, bos_token_id=2, eos_token_id=2, vocab_size=96, hidden_size=32, num_hidden_layers=2,
             ffn_dim=64, max_position_embeddings=64, num_attention_heads=2, do_layer_norm_before=True,
             activation_function="relu", word_embed_proj_dim=32),
        [{"activation_function": "gelu"}], gains=STRONG),
    "bloom": family(
        "bloom",
        dict(bos_token_id=1, eos_token_id=2, pad_token_id=3, vocab_size=96, hidden_size=32, n_layer=2, n_head=4),
        layout="bare", gains=BLOOM),
    "falcon-7b": family(
        "falcon", dict(FALCON, hidden_size=32, num_attention_heads=2, multi_query=True, parallel_attn=True, bias=False),
        gains=STRONG),
    "falcon-40b": family(
        "falcon",
        dict(FALCON, hidden_size=64, num_attention_heads=4, num_kv_heads=2, new_decoder_architecture=True, bias=False,
             ffn_hidden_size=64), gains={"embed": 0.15, "final_norm": 2.0}),
    "falcon-rw": family(
        "falcon",
        dict(FALCON, hidden_size=32, num_attention_heads=2, num_kv_heads=2, multi_query=False, parallel_attn=False,
             bias=True, alibi=True), [{"alibi": False}], gains=RW),
    "mixtral": family(
        "mixtral", llama(num_local_experts=4, num_experts_per_tok=2, intermediate_size=32,
                         rope_parameters=rope("default", 1e6)), [{"num_experts_per_tok": 3}]),
    "qwen3-moe": family(
        "qwen3_moe",
        llama(head_dim=16, num_attention_heads=4, num_key_value_heads=2, num_experts=4, num_experts_per_tok=2,
              moe_intermediate_size=32, norm_topk_prob=True, rope_parameters=rope("default", 1e6)),
        [{"norm_topk_prob": False}, {"num_experts_per_tok": 3}]),
    "olmoe": family(
        "olmoe",
        llama(num_key_value_heads=2, num_experts=4, num_experts_per_tok=2, intermediate_size=32, norm_topk_prob=False),
        [{"norm_topk_prob": True}, {"num_experts_per_tok": 3}]),
}
