"""What config.json of a MarianMT model has on the Hugging Face hub, by the transformers that wrote it.

Keys and values are those of models of Helsinki-NLP; sizes and ids are those of the fixture in `support/marian.py`.
"""

from typing import Any

LABELS = {
    "id2label": {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"},
    "label2id": {"LABEL_0": 0, "LABEL_1": 1, "LABEL_2": 2},
}
DROPOUTS = ("activation_dropout", "attention_dropout", "classif_dropout", "decoder_layerdrop", "encoder_layerdrop")
OF_2020: dict[str, Any] = {  # opus-mt-zh-en; it says to have 65,001 learned positions, and has none
    **dict.fromkeys(DROPOUTS, 0.0),
    "add_bias_logits": False,
    "add_final_layer_norm": False,
    "architectures": ["MarianMTModel"],
    "bad_words_ids": [[151]],
    "bos_token_id": 0,
    "dropout": 0.1,
    "extra_pos_embeddings": 152,
    **LABELS,
    "init_std": 0.02,
    "is_encoder_decoder": True,
    "max_length": 512,
    "max_position_embeddings": 512,
    "normalize_before": False,
    "normalize_embedding": False,
    "num_beams": 6,
    "num_hidden_layers": 2,
    "scale_embedding": True,
    "static_position_embeddings": True,
    "vocab_size": 152,
}
OF_4: dict[str, Any] = {  # opus-mt-de-zh and others that were written again
    **OF_2020,
    "_name_or_path": "Helsinki-NLP/opus-mt-en-zh",
    "_num_labels": 3,
    "classifier_dropout": 0.0,
    "decoder_vocab_size": 152,
    "do_blenderbot_90_layernorm": False,
    "extra_pos_embeddings": 0,
    "force_bos_token_to_be_generated": False,
    "forced_eos_token_id": 0,
    "gradient_checkpointing": False,
    "num_beams": 4,
    "share_encoder_decoder_embeddings": True,
    "torch_dtype": "float32",
    "transformers_version": "4.30.0.dev0",
    "use_cache": True,
}
OF_4_49 = {  # opus-mt-en-zh, saved again: how to search has moved to generation_config.json
    **OF_4,
    "_attn_implementation_autoset": True,
    "bad_words_ids": None,
    "max_length": None,
    "num_beams": None,
    "transformers_version": "4.49.0",
}
OF_5 = {  # opus-mt-en-vi, saved again
    **{key: value for key, value in OF_4.items() if key not in ("bad_words_ids", "max_length", "num_beams")},
    "dtype": "float32",
    "extra_pos_embeddings": 152,
    "is_decoder": False,
    "num_beams": None,
    "tie_word_embeddings": True,
    "transformers_version": "5.1.0",
}
SHORT = {  # of an export of opus-mt-ja-en for another runtime
    "decoder_vocab_size": 152,
    "forced_eos_token_id": 0,
    "is_encoder_decoder": True,
    "max_position_embeddings": 512,
    "scale_embedding": True,
    "share_encoder_decoder_embeddings": True,
    "use_cache": True,
    "vocab_size": 152,
    "num_beams": None,
}
# Keys that transformers 4 and 5 do not read
BY_HAND = {
    **OF_4,
    "add_final_layer_norm": True,
    "static_position_embeddings": False,
}
GENERATION = {  # of opus-mt-en-zh
    "bad_words_ids": [[151]],
    "bos_token_id": 0,
    "decoder_start_token_id": 151,
    "eos_token_id": 0,
    "forced_eos_token_id": 0,
    "max_length": 512,
    "num_beams": 4,
    "pad_token_id": 151,
    "renormalize_logits": True,
    "transformers_version": "4.49.0",
}
CONFIGS = {"2020": OF_2020, "4": OF_4, "4.49": OF_4_49, "5": OF_5, "short": SHORT, "by hand": BY_HAND}
