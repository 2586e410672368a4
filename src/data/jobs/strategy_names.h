/* data/jobs/strategy_names.h — the words that values of a strategy's knobs may be (private to
 * strategy_fields.c, whose table has the knobs). */
#ifndef LS_DATA_JOBS_STRATEGY_NAMES_H
#define LS_DATA_JOBS_STRATEGY_NAMES_H

#include "data/jobs/job_files.h"
#include "model/kernel.h"
#include "model/operators.h"

static const char *const placement_words[] = { "block", "cyclic", "random:SEED", "random-gpus:SEED", NULL };
static const char *const recompute_words[] = { "core",   "norm", "activation", "mla-up",     "mlp",  "moe",
                                               "shared", "op",   "dots",       "dots-flash", "auto", NULL };
static const char *const lengths_words[]
    = { "whole", "fixed:N", "uniform:A:B", "lognormal:MEDIAN:SIGMA[:MAX]", "file:PATH", NULL };

static const LsEnumName dp_kinds[] = {
  { "none", LS_DP_NONE },
  { "ps", LS_DP_PS },
  { "ddp", LS_DP_DDP },
  { "megatron", LS_DP_MEGATRON },
  { "fsdp1", LS_DP_FSDP1 },
  { "fsdp2", LS_DP_FSDP2 },
  { "deepspeed", LS_DP_DEEPSPEED },
  { "xla-fsdp", LS_DP_XLA_FSDP },
  { "auto", LS_DP_AUTO },
  { NULL },
};
static const LsEnumName p2p_kinds[] = {
  { "none", LS_P2P_NONE },
  { "batched", LS_P2P_BATCHED },
  { "scatter-gather", LS_P2P_SCATTER_GATHER },
  { "overlapped", LS_P2P_OVERLAPPED },
  { "deepspeed", LS_P2P_DEEPSPEED },
  { "auto", LS_P2P_AUTO },
  { NULL },
};
static const LsEnumName recompute_kinds[] = { { "none", LS_RECOMPUTE_NONE },
                                              { "selective", LS_RECOMPUTE_SELECTIVE },
                                              { "full", LS_RECOMPUTE_FULL },
                                              { NULL } };
static const LsEnumName attention_kinds[] = { { "flash", LS_ATTENTION_FLASH },
                                              { "unfused", LS_ATTENTION_UNFUSED },
                                              { "auto", LS_ATTENTION_AUTO },
                                              { NULL } };
static const LsEnumName loop_overlaps[] = {
  { "gathers", LS_LOOP_OVERLAP_GATHERS },
  { "turn", LS_LOOP_OVERLAP_TURN },
  { "pipelined", LS_LOOP_OVERLAP_PIPELINED },
  { NULL },
};
static const LsEnumName loop_copies[] = {
  { "none", LS_LOOP_COPIES_NONE },
  { "kept", LS_LOOP_COPIES_KEPT },
  { "weights", LS_LOOP_COPIES_WEIGHTS },
  { NULL },
};
static const LsEnumName qkv_layouts[] = {
  { "joint", LS_QKV_JOINT },
  { "split", LS_QKV_SPLIT },
  { "unpadded", LS_QKV_UNPADDED },
  { NULL },
};
static const LsEnumName cuda_allocators[] = {
  { "none", LS_CUDA_ALLOCATOR_NONE },
  { "caching", LS_CUDA_ALLOCATOR_CACHING },
  { "expandable", LS_CUDA_ALLOCATOR_EXPANDABLE },
  { NULL },
};
static const LsEnumName losses[] = { { "parallel", LS_LOSS_PARALLEL }, { "fused", LS_LOSS_FUSED }, { NULL } };
static const LsEnumName dtypes[] = {
  { "fp16", LS_DTYPE_FP16 },    { "bf16", LS_DTYPE_BF16 },    { "fp8", LS_DTYPE_FP8 },
  { "nvfp4", LS_DTYPE_NVFP4 },  { "fp32", LS_DTYPE_FP32 },    { "bfloat16", LS_DTYPE_BF16 },
  { "float16", LS_DTYPE_FP16 }, { "float32", LS_DTYPE_FP32 }, { NULL },
};
static const LsEnumName grad_dtypes[] = {
  { "fp16", LS_DTYPE_FP16 },    { "bf16", LS_DTYPE_BF16 },
  { "fp32", LS_DTYPE_FP32 },    { "bfloat16", LS_DTYPE_BF16 },
  { "float16", LS_DTYPE_FP16 }, { "float32", LS_DTYPE_FP32 },
  { "auto", LS_DTYPE_AUTO },    { NULL },
};
static const LsEnumName optimizer_cuts[] = {
  { "auto", LS_OPTIMIZER_CUT_AUTO },
  { "elements", LS_OPTIMIZER_CUT_ELEMENTS },
  { "tensors", LS_OPTIMIZER_CUT_TENSORS },
  { NULL },
};
static const LsEnumName optimizer_tps[] = {
  { "blockwise", LS_OPTIMIZER_TP_BLOCKWISE },
  { "duplicated", LS_OPTIMIZER_TP_DUPLICATED },
  { "distributed", LS_OPTIMIZER_TP_DISTRIBUTED },
  { NULL },
};
static const LsEnumName masters[] = {
  { "fp32", LS_MASTER_FP32 }, { "fp16", LS_MASTER_FP16 },       { "remainder", LS_MASTER_REMAINDER },
  { "none", LS_MASTER_NONE }, { "weights", LS_MASTER_WEIGHTS }, { NULL },
};
static const LsEnumName moment_dtypes[] = {
  { "fp32", LS_DTYPE_FP32 },     { "bf16", LS_DTYPE_BF16 },
  { "fp16", LS_DTYPE_FP16 },     { "fp8", LS_DTYPE_FP8 },
  { "bfloat16", LS_DTYPE_BF16 }, { "float16", LS_DTYPE_FP16 },
  { "float32", LS_DTYPE_FP32 },  { NULL },
};
static const LsEnumName cuda_graphs[]
    = { { "none", LS_GRAPHS_NONE }, { "layer", LS_GRAPHS_LAYER }, { "step", LS_GRAPHS_STEP }, { NULL } };
static const LsEnumName grad_syncs[] = {
  { "auto", LS_GRAD_SYNC_AUTO },
  { "last", LS_GRAD_SYNC_LAST },
  { "each", LS_GRAD_SYNC_EACH },
  { "flush", LS_GRAD_SYNC_FLUSH },
  { NULL },
};
static const LsEnumName servers[] = { { "nodes", LS_PS_NODES }, { "one", LS_PS_ONE }, { NULL } };
static const LsEnumName prefetches[] = {
  { "pre", LS_PREFETCH_PRE },
  { "post", LS_PREFETCH_POST },
  { "none", LS_PREFETCH_NONE },
  { NULL },
};
static const LsEnumName offloads[] = {
  { "none", LS_OFFLOAD_NONE },
  { "optimizer", LS_OFFLOAD_OPTIMIZER },
  { "parameters", LS_OFFLOAD_PARAMETERS },
  { NULL },
};
static const LsEnumName offload_places[]
    = { { "cpu", LS_OFFLOAD_TO_CPU }, { "nvme", LS_OFFLOAD_TO_NVME }, { NULL } };
static const LsEnumName dispatchers[] = { { "all-to-all", LS_DISPATCHER_ALL_TO_ALL },
                                          { "deepep", LS_DISPATCHER_DEEPEP },
                                          { "hybridep", LS_DISPATCHER_HYBRIDEP },
                                          { NULL } };
static const LsEnumName expert_paddings[] = { { "none", LS_EXPERT_PADDING_NONE },
                                              { "fullest", LS_EXPERT_PADDING_FULLEST },
                                              { "capacity", LS_EXPERT_PADDING_CAPACITY },
                                              { NULL } };
static const LsEnumName lengths_draws[]
    = { { "each", LS_LENGTHS_EACH }, { "mean", LS_LENGTHS_MEAN }, { NULL } };
static const LsEnumName lengths_balances[]
    = { { "none", LS_LENGTHS_AS_DRAWN }, { "sorted", LS_LENGTHS_SORTED }, { NULL } };
static const LsEnumName tp_overlaps[]
    = { { "bulk", LS_TP_OVERLAP_BULK }, { "ring", LS_TP_OVERLAP_RING }, { NULL } };
static const LsEnumName cp_kinds[] = {
  { "ring", LS_CP_RING },
  { "all-gather", LS_CP_ALL_GATHER },
  { "ulysses", LS_CP_ULYSSES },
  { NULL },
};
static const LsEnumName cp_steps[] = { { "te", LS_CP_STEPS_TE },
                                       { "pytorch", LS_CP_STEPS_PYTORCH },
                                       { "pytorch-compile", LS_CP_STEPS_PYTORCH_COMPILE },
                                       { NULL } };
static const LsEnumName recompute_methods[]
    = { { "uniform", LS_RECOMPUTE_UNIFORM }, { "block", LS_RECOMPUTE_BLOCK }, { NULL } };
static const LsEnumName fp8_recipes[] = {
  { "delayed", LS_FP8_DELAYED }, { "current", LS_FP8_CURRENT },   { "blockwise", LS_FP8_BLOCKWISE },
  { "mxfp8", LS_FP8_MXFP8 },     { "deepseek", LS_FP8_DEEPSEEK }, { NULL },
};
static const LsEnumName fp8_linears[] = { { "te", LS_FP8_LINEAR_TE },
                                          { "torchao-cast", LS_FP8_LINEAR_TORCHAO_CAST },
                                          { "torchao", LS_FP8_LINEAR_TORCHAO },
                                          { NULL } };
static const LsEnumName amax_reductions[]
    = { { "stage", LS_AMAX_STAGE }, { "tp", LS_AMAX_TP }, { "none", LS_AMAX_NONE }, { NULL } };
static const LsEnumName fp8_attentions[] = {
  { "none", LS_FP8_ATTENTION_NONE },       { "recipe", LS_FP8_ATTENTION_RECIPE },
  { "delayed", LS_FP8_ATTENTION_DELAYED }, { "current", LS_FP8_ATTENTION_CURRENT },
  { "mxfp8", LS_FP8_ATTENTION_MXFP8 },     { NULL },
};
static const LsEnumName layer_rules[] = { { "auto", LS_LAYER_RULE_AUTO },
                                          { "balanced", LS_LAYER_RULE_BALANCED },
                                          { "weights", LS_LAYER_RULE_WEIGHTS },
                                          { "modules", LS_LAYER_RULE_MODULES },
                                          { NULL } };
static const LsEnumName flags[] = { { "0", 0 }, { "1", 1 }, { "auto", LS_FLAG_AUTO }, { NULL } };

#endif
