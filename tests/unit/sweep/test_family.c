/* Pins the rule that names families, and what a family says about its models. */
#include "ls_test.h"

#include <math.h>

#include "sweep/family.h"

static void
check_family (const char *id, const char *expected)
{
  g_autofree char *family = ls_family_of_id (id);
  LS_CHECK_STR (family, expected);
}

static void
families_are_leading_letters_or_named_pairs (void)
{
  check_family ("korth-175B-tp8", "korth");
  check_family ("sc21-t1-1.7B", "sc21-t1");
  check_family ("sc21-t2-x", "sc21-t2");
  check_family ("vtrain-multi-3", "vtrain-multi");
  check_family ("vtrain-single-301", "vtrain-single");
  check_family ("mlperf4.1-gpt3", "mlperf");
  check_family ("7b", "other");
  LS_CHECK (ls_family_sets_knobs ("zb") && !ls_family_sets_knobs ("other") && !ls_family_sets_knobs ("dgxc"));
}

static void
the_mlp_tells_the_architecture (void)
{
  LsModel gpt = { .mlp = LS_MLP_GELU }, llama = { .mlp = LS_MLP_SWIGLU }, nemotron = { .mlp = LS_MLP_RELU2 };
  ls_family_complete_model ("korth", &gpt);
  ls_family_complete_model ("titan", &llama);
  ls_family_complete_model ("dgxc", &nemotron);
  LS_CHECK (gpt.norm == LS_NORM_LAYERNORM && gpt.position == LS_POSITION_LEARNED);
  LS_CHECK (gpt.linear_bias && gpt.tied_embeddings && gpt.dropout);
  LS_CHECK (llama.norm == LS_NORM_RMSNORM && llama.position == LS_POSITION_ROPE);
  LS_CHECK (!llama.linear_bias && !llama.tied_embeddings && !llama.dropout);
  LS_CHECK (nemotron.norm == LS_NORM_LAYERNORM && nemotron.position == LS_POSITION_ROPE);
  LS_CHECK (!nemotron.linear_bias && !nemotron.tied_embeddings && !nemotron.dropout);
}

static void
only_the_gpt_papers_train_with_dropout (void)
{
  LsModel mpt = { .mlp = LS_MLP_GELU }, bloom = { .mlp = LS_MLP_GELU };
  ls_family_complete_model ("mpt", &mpt);
  ls_family_complete_model ("bloom", &bloom);
  LS_CHECK (!mpt.dropout && mpt.position == LS_POSITION_LEARNED);
  LS_CHECK (bloom.dropout && bloom.position == LS_POSITION_ALIBI);
}

/* The rows say gelu; 31.4e9 parameters need a third matrix, 15.7e9 heads of 128. */
static void
maxtext_has_gated_mlps_and_heads_of_128 (void)
{
  LsModel m = { .mlp = LS_MLP_GELU, .head_dim = 64 };
  ls_family_complete_model ("maxtext", &m);
  LS_CHECK (m.mlp == LS_MLP_SWIGLU && m.head_dim == 128 && m.norm == LS_NORM_RMSNORM && !m.tied_embeddings);
}

static void
older_software_blocks_on_its_backward_collectives (void)
{
  LS_CHECK (ls_family_tp_async ("korth") && ls_family_tp_async ("dgxc") && ls_family_tp_async (""));
  LS_CHECK (!ls_family_tp_async ("sc21-t1") && !ls_family_tp_async ("vtrain-multi") && !ls_family_tp_async ("bloom"));
  LS_CHECK (!ls_family_tp_async ("titan"));
}

static void
software_of_2021_has_its_kernels_and_its_batches (void)
{
  LS_CHECK (ls_family_apex_norm ("sc21-t1") && ls_family_apex_norm ("bloom") && !ls_family_apex_norm ("korth") && !ls_family_apex_norm ("zb"));
  LS_CHECK (ls_family_split_bias_dropout ("zb") && !ls_family_split_bias_dropout ("korth") && !ls_family_split_bias_dropout ("bloom"));
  LS_CHECK (ls_family_batch_sync ("mtnlg") && ls_family_batch_sync ("korth") && ls_family_batch_sync ("zb"));
  LS_CHECK (!ls_family_batch_sync ("mlperf") && !ls_family_batch_sync ("dgxc") && !ls_family_batch_sync ("mpt"));
}

static void
megatron_sends_slices_where_nobody_says_otherwise (void)
{
  LS_CHECK_INT (ls_family_p2p ("vtrain-multi", LS_P2P_BATCHED), ==, LS_P2P_SCATTER_GATHER);
  LS_CHECK_INT (ls_family_p2p ("korth", LS_P2P_BATCHED), ==, LS_P2P_SCATTER_GATHER);
  LS_CHECK_INT (ls_family_p2p ("vtrain-multi", LS_P2P_NONE), ==, LS_P2P_NONE);
  LS_CHECK_INT (ls_family_p2p ("sc21-t1", LS_P2P_BATCHED), ==, LS_P2P_BATCHED);
}

static void
pipelines_of_deepspeed_have_its_optimizer (void)
{
  LS_CHECK_INT (ls_family_p2p ("bloom", LS_P2P_BATCHED), ==, LS_P2P_DEEPSPEED);
  LS_CHECK_INT (ls_family_p2p ("mtnlg", LS_P2P_NONE), ==, LS_P2P_NONE);
  LS_CHECK_INT (ls_family_dp_kind ("mtnlg", LS_DP_MEGATRON), ==, LS_DP_DEEPSPEED);
  LS_CHECK_INT (ls_family_zero_stage ("mtnlg", 0), ==, 1);
  LS_CHECK_INT (ls_family_dp_kind ("korth", LS_DP_MEGATRON), ==, LS_DP_MEGATRON);
  LS_CHECK_INT (ls_family_zero_stage ("sc21-t2", 3), ==, 3);
  LS_CHECK (ls_family_launch_blocking ("bloom") && !ls_family_launch_blocking ("mtnlg"));
}

/* What table 4 prints: 12 L h^2 + h V parameters in billions. */
static void
zero_bubble_is_what_its_own_figures_say (void)
{
  static const struct { double layers, hidden, billions; } rows[]
    = { { 22, 2304, 1.5 }, { 30, 4096, 6.2 }, { 46, 5120, 14.6 }, { 62, 6144, 28.3 } };
  LsModel m = { .mlp = LS_MLP_GELU, .vocab = 51200 };
  ls_family_complete_model ("zb", &m);
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    double h = rows[i].hidden, n = 12 * rows[i].layers * h * h + h * m.vocab;
    LS_CHECK_DOUBLE (round (n / 1e8) / 10, ==, rows[i].billions);
  }
  LS_CHECK_INT (ls_family_attention ("zb", LS_ATTENTION_FLASH), ==, LS_ATTENTION_UNFUSED);
  LS_CHECK_INT (ls_family_attention ("dgxc", LS_ATTENTION_FLASH), ==, LS_ATTENTION_FLASH);
  LS_CHECK (ls_family_grad_fusion ("zb") && !ls_family_grad_fusion ("sc21-t1"));
}

static void
early_zero3_uses_lists (void)
{
  LS_CHECK (ls_family_collective_lists ("sc21-t2"));
  LS_CHECK (!ls_family_collective_lists ("sc21-t1") && !ls_family_collective_lists ("internevo"));
}

static void
simumax_says_what_it_ran (void)
{
  LS_CHECK_INT (ls_family_cp_kind ("simumax"), ==, LS_CP_ULYSSES);
  LS_CHECK_INT (ls_family_cp_kind ("dgxc"), ==, LS_CP_RING);
  LS_CHECK (ls_family_wgrad_placeholders ("simumax") && !ls_family_wgrad_placeholders ("dgxc"));
}

/* Zero bubble's automatic schedules, save for the row that measures what waiting costs. */
static void
automatic_zero_bubble_validates_its_norm_later (void)
{
  LS_CHECK (!ls_family_grad_norm ("zb-t4-1.5B-m32-ZB-2p", "zb-2p") && !ls_family_grad_norm ("zb-t8-1.5B-ZB-1p", "zb-1p"));
  LS_CHECK (ls_family_grad_norm ("zb-t7-28.3B-m96-ZB-2p-sync", "zb-2p"));
  LS_CHECK (ls_family_grad_norm ("zb-t4-1.5B-m24-1F1B", "1f1b") && ls_family_grad_norm ("korth-22B", "zb-2p"));
  LS_CHECK (ls_family_grad_norm ("zb", NULL));
}

static void
composer_prefetches_behind_a_backward (void)
{
  LS_CHECK_INT (ls_family_backward_prefetch ("mpt"), ==, LS_PREFETCH_POST);
  LS_CHECK_INT (ls_family_backward_prefetch ("titan"), ==, LS_PREFETCH_PRE);
}

/* llm-foundry's table of H100 has two parts: 8 to 64 of them, and 128 to 512 by sweep.py. */
static void
rows_run_the_attention_that_their_source_names (void)
{
  LS_CHECK_INT (ls_family_attention_kernel ("mpt-a100_80gb-7b-s2048-g64-mb8-amp_bf16-9", 64), ==, LS_ATTENTION_KERNEL_TRITON);
  LS_CHECK_INT (ls_family_attention_kernel ("mpt-a100_40gb-7b-s2048-g128-mb8-amp_bf16-9", 128), ==, LS_ATTENTION_KERNEL_TRITON);
  LS_CHECK_INT (ls_family_attention_kernel ("mpt-h100_80gb-7b-s8192-g8-mb8-amp_bf16-37", 8), ==, LS_ATTENTION_KERNEL_TRITON);
  LS_CHECK_INT (ls_family_attention_kernel ("mpt-h100_80gb-7b-s2048-g512-mb6-amp_bf16-10", 512), ==, LS_ATTENTION_KERNEL_FA2);
  LS_CHECK_INT (ls_family_attention_kernel ("mpt-h100_80gb-13b-s2048-g512-mb16-amp_bf16-7", 512), ==, LS_ATTENTION_KERNEL_TRITON);
  LS_CHECK_INT (ls_family_attention_kernel ("titan-t1-8b-8g", 8), ==, LS_ATTENTION_KERNEL_FA2);
  LS_CHECK_INT (ls_family_attention_kernel ("internevo-7b", 128), ==, LS_ATTENTION_KERNEL_FA1);
  LS_CHECK_INT (ls_family_attention_kernel ("dgxc-8b", 8), ==, LS_ATTENTION_KERNEL_AUTO);
}

static void
llm_foundry_gives_views_and_computes_its_loss_again (void)
{
  LS_CHECK_INT (ls_family_qkv_layout ("mpt-a100_80gb-7b-s2048-g64-mb8-amp_bf16-9", 64), ==, LS_QKV_SPLIT);
  LS_CHECK_INT (ls_family_qkv_layout ("mpt-h100_80gb-7b-s2048-g512-mb6-amp_bf16-10", 512), ==, LS_QKV_UNPADDED);
  LS_CHECK_INT (ls_family_qkv_layout ("titan-t1-8b-8g", 8), ==, LS_QKV_JOINT);
  LS_CHECK_INT (ls_family_loss ("mpt"), ==, LS_LOSS_FUSED);
  LS_CHECK_INT (ls_family_loss ("korth"), ==, LS_LOSS_PARALLEL);
  LS_CHECK_INT (ls_family_train_metrics ("mpt"), ==, 2);
  LS_CHECK_INT (ls_family_train_metrics ("korth"), ==, 0);
  LS_CHECK (ls_family_recompute_early_stop ("mpt-h100_80gb-30b-s1024-g8-mb6-amp_bf16-26"));
  LS_CHECK (!ls_family_recompute_early_stop ("mpt-a100_40gb-13b-s2048-g64-mb16-bf16-146") && !ls_family_recompute_early_stop ("korth-t5-22B-full"));
}

LS_TEST_MAIN ("sweep/family", LS_TEST (llm_foundry_gives_views_and_computes_its_loss_again), LS_TEST (rows_run_the_attention_that_their_source_names), LS_TEST (composer_prefetches_behind_a_backward), LS_TEST (families_are_leading_letters_or_named_pairs),
              LS_TEST (the_mlp_tells_the_architecture), LS_TEST (only_the_gpt_papers_train_with_dropout),
              LS_TEST (maxtext_has_gated_mlps_and_heads_of_128), LS_TEST (older_software_blocks_on_its_backward_collectives), LS_TEST (simumax_says_what_it_ran), LS_TEST (early_zero3_uses_lists),
              LS_TEST (software_of_2021_has_its_kernels_and_its_batches), LS_TEST (megatron_sends_slices_where_nobody_says_otherwise), LS_TEST (pipelines_of_deepspeed_have_its_optimizer),
              LS_TEST (zero_bubble_is_what_its_own_figures_say),
              LS_TEST (automatic_zero_bubble_validates_its_norm_later))
