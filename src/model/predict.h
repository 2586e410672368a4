/* model/predict.h — multi-token prediction: blocks behind the last layer that predict tokens further ahead
 * (DeepSeek-AI 2024, DeepSeek-V3, arXiv 2412.19437, section 2.2).
 *
 * Block k of D takes what block k - 1 made of a token, or the model, and the embedding of the token that is k
 * further: a norm of each, both through one projection of 2h x h, the layers of the block, a norm, and the
 * head of the model again. Its loss is added to that of the model.
 *
 *     parameters    2 h^2 + 3 norms + layers    of each block; of the first alone where they share weights
 *     per token     6 (2 h^2 + layers + V h)    FLOPs of each block, shared or not
 *
 * A block has one layer as the last of the model has it (DeepSeek-V3; Megatron-Core's GPT models), or a
 * pattern of its own: "ae" is attention and experts as one block (Nemotron 3; Megatron-Core,
 * mtp_hybrid_override_pattern). Blocks may share their weights (Megatron-Core, mtp_use_repeated_layer): there
 * is one, which each token goes through D times. Its activations are kept D times; its weights, gradients and
 * optimizer states are there once, and each pass adds to the same gradient, which is reduced when the last
 * has.
 *
 * In a pipeline all blocks are on the last stage (Megatron-Core, multi_token_prediction.py: on the last
 * virtual stage). */
#ifndef LS_MODEL_PREDICT_H
#define LS_MODEL_PREDICT_H

#include "model/model.h"

#define LS_MAX_BLOCK_LAYERS 16

/* Layers of a block. */
uint32_t ls_model_block_layers (const LsModel *m);
/* Layers of the model and of all blocks, which ls_model_layer_kind() knows. */
uint32_t ls_model_n_all_layers (const LsModel *m);
/* Whether block i, from 0, has the weights of one before it. */
bool ls_model_block_is_again (const LsModel *m, uint32_t block);
/* What is wrong with the pattern of blocks, or with sharing; NULL: nothing. Static. */
const char *ls_model_check_predictions (const LsModel *m);

#endif
