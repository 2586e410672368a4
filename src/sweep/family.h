/* sweep/family.h — cases by the paper or benchmark they come from.
 *
 * A table of measured runs gives dimensions, not architecture: whether there are
 * biases, dropout, tied embeddings. They follow from the kind of MLP and from the
 * family:
 *
 *   gelu    LayerNorm, learned positions, biases, tied embeddings (GPT-2 and -3)
 *   swiglu  RMSNorm, rotary positions, no biases, untied (Llama)
 *   relu2   LayerNorm, rotary positions, no biases, untied (Nemotron)
 *
 * Dropout: the runs of Megatron-LM's GPT (Narayanan et al. 2021, Korthikanti et
 * al. 2022, Megatron-Turing NLG, vTrain, zero bubble) train with it, and so does BLOOM, whose positions
 * are ALiBi ("default Megatron-LM dropout settings are inherited", 0.1 both: bigscience-workshop/bigscience,
 * train/tr11-176B-ml/README.md; its tr11-176B-ml.slurm sets none); the others have none.
 *
 * MaxText: its models have gated MLPs and heads of 128 (configs/base.yml: mlp_activations, head_dim), although
 * the rows say gelu and nothing of heads: 32 layers of 8192, 28672 are 31.4e9 parameters with three
 * matrices, as the source counts them and as its FLOP/s imply, and 24e9 with two.
 *
 * Software: the backward of tensor parallelism runs beside a GEMM since Megatron-LM's
 * ColumnParallelLinearWithAsyncAllreduce (between late 2021 and February 2022). The
 * runs of Narayanan et al. (April 2021) come before it, and Megatron-DeepSpeed, which
 * vTrain, Megatron-Turing NLG and BLOOM used, leaves it off
 * (deepspeedai/Megatron-DeepSpeed, issue 447). torchtitan's is PyTorch's, which waits (parallel/lower_tp_overlap.c). The automatic schedules of zero bubble step
 * the optimizer without waiting for the global gradient norm, which is validated later (Qi
 * et al. 2024, section 4), except where the row is there to compare that (-sync, table 7). llm-foundry
 * trains with Composer, whose FSDP prefetches behind a backward (FSDPConfig.backward_prefetch,
 * docs.mosaicml.com/projects/composer; torch's default is before it). ZeRO-3 of Narayanan et al. is
 * DeepSpeed of spring 2021 (stage 3 was released in March, v0.3.13; the paper, arXiv 2104.04473, is of
 * April, revised in August), whose collectives take lists of tensors: parallel/lower_dp_deepspeed3.c.
 *
 * SimuMax ran Transformer Engine 2.11 and cp_comm_type a2a (docs/b200/b200_real_repro_guide.md).
 * Layer norms are apex's in Narayanan et al. (2021) and in Megatron-DeepSpeed, which carried a copy of it
 * (fused_mix_prec_layer_norm_cuda); Megatron-LM has FastLayerNorm since February 2022 (--no-persist-layer-norm turns it off).
 *
 * Between the spring and the autumn of 2023 Megatron-LM's bias_dropout_add () asked whether there is a bias, and TorchScript fused
 * what comes after that question only (NVIDIA/Megatron-LM, pull request 532, October 2023; the function in sail-sg/
 * zero-bubble-pipeline-parallelism is the one before it).
 *
 * Megatron-LM's forward step fetched a micro-batch on every stage and read its sizes back from the device until late
 * 2023 (--batch-sync): all families of it before Megatron-Core, of which only MLPerf's and dgxc's rows are.
 *
 * Megatron-LM sends slices between stages unless told not to (scatter_gather_tensors_in_pipeline, on in its arguments.py of
 * 2021 to 2023; no effect with tp 1 or sequence parallelism). The rows of Korthikanti et al. and vTrain say batched, for
 * want of a word about it. In vTrain's (pool) rows whole tensors over four NICs would cost 7 to 10 % of a step with 16 stages: 083, 087
 * and 103 come out 12.8, 13.9 and 8.4 % too slow with them, 4.5, 3.7 and 2.7 % with slices.
 *
 * BLOOM and Megatron-Turing NLG ran DeepSpeed's pipeline (parallel/lower_pipe_deepspeed.c), which is data parallel
 * itself. BLOOM's optimizer is BF16_Optimizer, which is stage 1 whatever the configuration says (README as above);
 * that of Megatron-Turing NLG, bf16 as well, is not stated, and taken to be the same: between its rows, of 240, 192 and 160
 * micro-batches (60.1, 50.2 and 44.4 s; pool), one takes 196 ms; 172 are predicted where a GEMM adds to fp32 gradients, 190 with
 * that optimizer. BLOOM ran with CUDA_LAUNCH_BLOCKING=1, "or the training will hang" (tr11-176B-ml.slurm), its tuning runs
 * on 40 and more nodes too (chronicles-prequel.md).
 *
 * What zero bubble's tables do not state, their own figures tell (caveat of the rows: "vocab and attention kernel not
 * stated"). Attention is not flash: 1F1B printed 39, 32 and 43 GB for 6.2B, 14.6B and 28.3B (table 4), a rank's
 * 7, 15 and 31 micro-batches make 39, 33 and 43 GB with unfused attention and 16 bytes per parameter, 26, 25 and 30 with
 * flash. The vocabulary: 12 L h^2 + h V rounds to all four of 1.5B, 6.2B, 14.6B and 28.3B for V from 26,900 to 35,100, so 32,000,
 * the usual size of the sentencepiece model that their script names; 51,200 makes 14.7B and 28.4B. W runs at
 * the rate of its GEMMs (table 6: 19.9 ms for 4 layers of 4096, of which a sum of gradients in a kernel of its own
 * would alone be 2.8), and their code has wgrad_gemm_accum_fp16 (issue 22 of sail-sg/zero-bubble-pipeline-parallelism).
 *
 * Implementations of flash attention. llm-foundry's benchmarks (scripts/train/benchmarking): sweep.py for 128 to
 * 512 H100 says flash, installed as flash-attn 2, for 1b, 3b, 7b and 70b, and triton for 13b and 30b. For the other
 * tables nothing says it: --attn_impl of submit_benchmarks.py was triton by default at first and flash later, and the
 * tables of 2023 are taken to be of the former. Both get views of one projection (llmfoundry/models/layers/attention.py:
 * qkv.split), and flash then copies them without the padding that pretraining does not have (flash_attn_fn). Its loss is
 * flash-attn's by default (models/mpt/modeling_mpt.py: loss_fn fused_crossentropy), and its train metrics are
 * LanguageCrossEntropy and LanguagePerplexity, each of which computes the loss again. submit_benchmarks.py checkpoints
 * activations without reentrance; the tables of A100 80GB and H100 are of a PyTorch 2.1 nightly, where that stops early,
 * those of A100 40GB of 1.13.1 (images named in torches.md and h100new.md of a branch, llm-foundry@beb8dee). The table for
 * 128 H100 and more names none; its flash-attn 2 is of late 2023, and it is taken to be of 2.1 too. torchtitan: PyTorch's scaled_dot_product_flash_attention
 * (parallelize_llama.py of December 2024 names it), which is FlashAttention-2. InternLM: doc/en/install.md of 2023
 * wants flash-attention 1.0.5 or later and installs 1.0.5, which is taken. */
#ifndef LS_SWEEP_FAMILY_H
#define LS_SWEEP_FAMILY_H

#include "analysis/interval.h"
#include "model/kernel.h"
#include "model/model.h"
#include "parallel/strategy.h"

/* "sc21-t1", "sc21-t2", "vtrain-multi" or "vtrain-single" where the id starts so,
 * else its leading letters, or "other" without any. Newly allocated. */
char *ls_family_of_id (const char *id);
/* Whether anything below says more of it than of rows of any other name. */
bool ls_family_sets_knobs (const char *family);

/* Sets norm, position, linear_bias, qkv_bias, tied_embeddings and dropout of a model
 * whose dimensions and mlp are known; of MaxText mlp and head_dim too, of zero bubble the vocabulary. */
void ls_family_complete_model (const char *family, LsModel *model);

/* Sets every knob of a row's strategy that functions below tell, and no other; where they take a column, what it says. */
void ls_family_complete_strategy (const char *id, const char *family, LsStrategy *strategy);

/* What trained its runs, some of whose strategies do not tell: dp_kind says megatron where Megatron-DeepSpeed ran
 * without ZeRO, and ddp where Megatron-LM of 2021 had PyTorch reduce gradients. said: as the strategy says. */
LsSoftware ls_family_software (const char *family, LsSoftware said);

/* Whether the family's software has the asynchronous backward (--tp-async). */
bool ls_family_tp_async (const char *family);

/* How context parallelism exchanges (--cp-kind): LsCpKind. */
int ls_family_cp_kind (const char *family);

/* Whether tensors stand for weight gradients (--wgrad-placeholders). */
bool ls_family_wgrad_placeholders (const char *family);
/* Whether layer norms run apex's kernels of before 2022 (--apex-norm). */
bool ls_family_apex_norm (const char *family);

/* Whether the bias before a dropout is added in a kernel of its own (--split-bias-dropout). */
bool ls_family_split_bias_dropout (const char *family);

/* Whether each forward fetches its micro-batch and waits for the device in it (--batch-sync). */
bool ls_family_batch_sync (const char *family);

/* Whether GEMMs add to 16-bit gradients (--grad-fusion). */
bool ls_family_grad_fusion (const char *family);

/* Attention of rows whose source does not state it (--attention): LsAttention, or `column`. */
int ls_family_attention (const char *family, int column);

/* How stages exchange activations where the column says batched (--p2p): LsP2p. */
int ls_family_p2p (const char *family, int column);

/* Which software is data parallel (--dp-kind, LsDpKind; --zero), where the columns say another. */
int ls_family_dp_kind (const char *family, int column);
uint32_t ls_family_zero_stage (const char *family, uint32_t column);

/* Whether the host waited for each op (--launch-blocking). */
bool ls_family_launch_blocking (const char *family);

/* When FSDP1 gathers ahead in the backward (--backward-prefetch): LsPrefetch. */
int ls_family_backward_prefetch (const char *family);

/* Whether ZeRO-3 gathers and scatters over lists of tensors (--collective-lists). */
bool ls_family_collective_lists (const char *family);

/* Which flash attention a row ran (--attention-kernel): LsAttentionKernel. */
int ls_family_attention_kernel (const char *id, uint32_t n_gpus);

/* How attention gets Q, K and V (--qkv-layout): LsQkvLayout. */
int ls_family_qkv_layout (const char *id, uint32_t n_gpus);

/* Which cross-entropy (--loss), LsLoss, and how often again for metrics (--train-metrics). */
int ls_family_loss (const char *family);
uint32_t ls_family_train_metrics (const char *family);

/* Whether full recomputation stops early (--recompute-early-stop). */
bool ls_family_recompute_early_stop (const char *id);

/* Whether the optimizer of a row waits for the gradient norm of all stages (--grad-norm).
 * schedule: NULL if the row names none. */
bool ls_family_grad_norm (const char *id, const char *schedule);

#endif
