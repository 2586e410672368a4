/* Pins how kernels of a profile are named (names as the libraries give them), which measured
 * op is taken for which predicted one, and that matched, unmatched and idle time add up to
 * the step to the picosecond, whatever overlaps. */
#include "ls_test.h"

#include "analysis/reconcile.h"

#define US LS_US

static void
kernels_have_classes (void)
{
  static const struct {
    const char *name;
    LsOpClass class;
  } names[] = {
    { "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn", LS_CLASS_GEMM },
    { "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
      LS_CLASS_GEMM },
    { "nvjet_hsh_256x128_64x4_2x1_v_bz_coopB_TNT", LS_CLASS_GEMM },
    { "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_nn_align8>(Params)",
      LS_CLASS_GEMM },
    { "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>(Params)", LS_CLASS_GEMM },
    { "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, cutlass::bfloat16_t>>(Params)",
      LS_CLASS_ATTENTION_FWD },
    { "void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<T>(Params)", LS_CLASS_ATTENTION_BWD },
    { "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x128x128_4x1x1_kernel0_0",
      LS_CLASS_ATTENTION_FWD },
    { "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_32_128x128x128_4x1x1_kernel0_0",
      LS_CLASS_ATTENTION_BWD },
    { "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::Params)", LS_CLASS_ATTENTION_FWD },
    { "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>(float*)",
      LS_CLASS_SOFTMAX },
    { "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, LogSoftMaxForwardEpilogue>()",
      LS_CLASS_CROSS_ENTROPY },
    { "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)",
      LS_CLASS_NORM },
    { "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernelTemplate<float>()", LS_CLASS_NORM },
    { "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, at::detail::Array<char*, 1>>()",
      LS_CLASS_MEMSET },
    { "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, Array>()",
      LS_CLASS_ELEMENTWISE },
    { "triton_poi_fused_add_mul_silu_3", LS_CLASS_ELEMENTWISE },
    { "void cudnn::fusion::fmha_reduce_head<true>(void const*, void*, unsigned int)",
      LS_CLASS_ATTENTION_BWD },
    { "void cudnn::fusion::compute_dot_do_o_specialized<true, 128>(void const*)", LS_CLASS_ATTENTION_BWD },
    { "void cudnn::fusion::convert_dq_to_16bits<true>(void const*, void*, bool)", LS_CLASS_ATTENTION_BWD },
    { "triton_red_fused_native_layer_norm_7", LS_CLASS_NORM },
    { "triton_per_fused_sum_2", LS_CLASS_REDUCTION },
    { "void at::native::reduce_kernel<512, 1, ReduceOp<float>>()", LS_CLASS_REDUCTION },
    { "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4>, FusedAdamMathFunctor<float, 4>>()",
      LS_CLASS_OPTIMIZER },
    { "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", LS_CLASS_ALL_REDUCE },
    { "ncclKernel_ReduceScatter_RING_LL_Sum_half(ncclDevComm*, unsigned long, ncclWork*)",
      LS_CLASS_REDUCE_SCATTER },
    { "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", LS_CLASS_ALL_GATHER },
    { "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", LS_CLASS_SEND_RECV },
    { "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", LS_CLASS_OTHER },
    { "Cijk_Alik_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT128x224x64_MI16x16x1_SN_LDSB1", LS_CLASS_GEMM },
    { "attn_fwd", LS_CLASS_ATTENTION_FWD },
    { "bwd_kernel_dk_dv", LS_CLASS_ATTENTION_BWD },
    { "void rotary_embedding_kernel<c10::BFloat16, true>(long const*)", LS_CLASS_ELEMENTWISE },
    { "my_own_kernel", LS_CLASS_OTHER },
  };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (!LS_CHECK_STR (ls_op_class_name (ls_op_class_of_kernel (names[i].name)),
                       ls_op_class_name (names[i].class)))
      g_printerr ("  of %s\n", names[i].name);
  LS_CHECK (ls_op_class_of_collective ("_reduce_scatter_base") == LS_CLASS_REDUCE_SCATTER);
  LS_CHECK (ls_op_class_of_collective ("allgather_into_tensor_coalesced") == LS_CLASS_ALL_GATHER);
  LS_CHECK (ls_op_class_of_collective ("all_to_allv") == LS_CLASS_ALL_TO_ALL);
  LS_CHECK (ls_op_class_of_collective ("coalesced") == LS_CLASS_OTHER);
}

static void
add (LsStepSide *side, LsOpClass class, double start_us, double end_us, double launch_us, uint64_t bytes)
{
  const LsStepOp op = { .start = (LsTime) (start_us * US),
                        .end = (LsTime) (end_us * US),
                        .launch = (LsTime) (launch_us * US),
                        .bytes = bytes,
                        .name = "k",
                        .class = (uint8_t) class,
                        .match = LS_UNMATCHED };
  g_array_append_val (side->ops, op);
}

static const LsStepOp *
op_of (const LsStepSide *side, guint i)
{
  return &g_array_index (side->ops, LsStepOp, i);
}

/* The worked example of reconcile.h. */
static void
the_worked_example (void)
{
  g_autoptr (LsStepSide) measured = ls_step_side_new ();
  g_autoptr (LsStepSide) predicted = ls_step_side_new ();
  measured->length = predicted->length = 10 * US;
  add (measured, LS_CLASS_GEMM, 0, 4, -1, 0);
  add (measured, LS_CLASS_ALL_REDUCE, 3, 7, 1, 64);
  add (measured, LS_CLASS_NORM, 8, 10, 7.5, 0);
  add (predicted, LS_CLASS_GEMM, 0, 4, -1, 0);
  add (predicted, LS_CLASS_ALL_REDUCE, 3, 7, 1, 64);
  ls_step_side_finish (measured, 0);
  ls_step_side_finish (predicted, 0);
  g_autoptr (LsReconciled) r = ls_reconcile (measured, predicted);
  LS_CHECK_INT (r->measured.matched[LS_TIER_COMPUTE], ==, 4 * US);
  LS_CHECK_INT (r->measured.matched[LS_TIER_COMMUNICATION], ==, 3 * US);
  LS_CHECK_INT (r->measured.unmatched[LS_TIER_COMPUTE], ==, 2 * US);
  LS_CHECK_INT (r->measured.idle_host, ==, US / 2);
  LS_CHECK_INT (r->measured.idle_device, ==, US / 2);
  LS_CHECK_INT (r->classes->len, ==, 3);
  LS_CHECK_INT (r->unmatched->len, ==, 1);
  bool has_word = false;
  for (guint i = 0; i < r->words->len; i++)
    has_word = has_word || g_str_has_prefix (g_ptr_array_index (r->words, i), "norm: 1 measured");
  LS_CHECK (has_word);
}

/* What was measured and not predicted stands by name, what takes most first. */
static void
unmatched_ops_stand_by_name (void)
{
  static const char *const names[] = { "b", "a", "b", "c" };
  static const double us[] = { 1, 3, 1, 2.5 };
  g_autoptr (LsStepSide) measured = ls_step_side_new ();
  g_autoptr (LsStepSide) predicted = ls_step_side_new ();
  measured->length = predicted->length = 100 * US;
  for (guint i = 0; i < G_N_ELEMENTS (us); i++) {
    add (measured, LS_CLASS_NORM, 10 * i, 10 * i + us[i], -1, 0);
    g_array_index (measured->ops, LsStepOp, i).name = names[i];
  }
  ls_step_side_finish (measured, 0);
  ls_step_side_finish (predicted, 0);
  g_autoptr (LsReconciled) r = ls_reconcile (measured, predicted);
  static const struct {
    const char *name;
    guint n;
    double us;
  } expected[] = { { "a", 1, 3 }, { "c", 1, 2.5 }, { "b", 2, 2 } };
  if (!LS_CHECK (r->unmatched->len == G_N_ELEMENTS (expected)))
    return;
  for (guint i = 0; i < G_N_ELEMENTS (expected); i++) {
    const LsReconcileName *n = &g_array_index (r->unmatched, LsReconcileName, i);
    LS_CHECK_STR (n->name, expected[i].name);
    LS_CHECK_INT (n->n, ==, expected[i].n);
    LS_CHECK_INT (n->time, ==, (LsTime) (expected[i].us * US));
  }
}

/* The largest kernel of a class is missing: the others still find theirs. */
static void
the_largest_may_be_missing (void)
{
  static const double us[] = { 99, 132, 99, 462 };
  g_autoptr (LsStepSide) measured = ls_step_side_new ();
  g_autoptr (LsStepSide) predicted = ls_step_side_new ();
  measured->length = predicted->length = 1000 * US;
  for (guint i = 0; i < 4; i++) {
    if (i < 3)
      add (measured, LS_CLASS_OPTIMIZER, 200.0 * i, 200.0 * i + us[i], 0, 0);
    add (predicted, LS_CLASS_OPTIMIZER, 150.0 * i, 150.0 * i + us[i], 0, 0);
  }
  ls_step_side_finish (measured, 0);
  ls_step_side_finish (predicted, 0);
  g_autoptr (LsReconciled) r = ls_reconcile (measured, predicted);
  for (guint i = 0; i < 3; i++)
    LS_CHECK_INT (op_of (measured, i)->match, ==, i);
  LS_CHECK_INT (op_of (predicted, 3)->match, ==, LS_UNMATCHED);
}

static LsTime
total (const LsStepTime *t)
{
  LsTime sum = t->idle_host + t->idle_device;
  for (int tier = 0; tier < LS_N_TIERS; tier++)
    sum += t->matched[tier] + t->unmatched[tier];
  return sum;
}

/* Also of ops that wrap around, touch, nest and outlast the step. */
static void
parts_add_up (void)
{
  for (guint32 seed = 1; seed <= 200; seed++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
    g_autoptr (LsStepSide) measured = ls_step_side_new ();
    g_autoptr (LsStepSide) predicted = ls_step_side_new ();
    LsStepSide *side[2] = { measured, predicted };
    for (int s = 0; s < 2; s++) {
      side[s]->length = g_rand_int_range (rand, 1, 5000);
      for (int n = g_rand_int_range (rand, 1, 30); n > 0; n--) {
        LsTime start = g_rand_int_range (rand, 0, 9000), end = start + g_rand_int_range (rand, 0, 4000);
        const LsStepOp op
            = { .start = start,
                .end = end,
                .bytes = (uint64_t) g_rand_int_range (rand, 0, 3),
                .name = "k",
                .launch = g_rand_boolean (rand) ? LS_TIME_NEVER : start - g_rand_int_range (rand, -500, 3000),
                .class = (uint8_t) g_rand_int_range (rand, 0, LS_N_CLASSES),
                .match = LS_UNMATCHED };
        g_array_append_val (side[s]->ops, op);
      }
      ls_step_side_finish (side[s], 0);
    }
    g_autoptr (LsReconciled) r = ls_reconcile (side[0], side[1]);
    LS_CHECK_INT (total (&r->measured), ==, side[0]->length);
    LS_CHECK_INT (total (&r->predicted), ==, side[1]->length);
    for (guint i = 0; i < side[0]->ops->len; i++) {
      const LsStepOp *m = op_of (side[0], i);
      LS_CHECK (m->match == LS_UNMATCHED
                || (op_of (side[1], m->match)->match == i && op_of (side[1], m->match)->class == m->class));
    }
  }
}

static void
a_class_that_is_slower_throughout_still_matches (void)
{
  g_autoptr (LsStepSide) measured = ls_step_side_new ();
  g_autoptr (LsStepSide) predicted = ls_step_side_new ();
  measured->length = predicted->length = 1000 * US;
  for (int i = 0; i < 8; i++) {
    double length = i % 2 ? 2 : 9;
    add (measured, LS_CLASS_GEMM, 100 * i, 100 * i + 5 * length, 0, 0);
    if (i != 5) /* one is not predicted: a short one */
      add (predicted, LS_CLASS_GEMM, 100 * i, 100 * i + length, 0, 0);
  }
  ls_reconcile_match (measured, predicted);
  for (guint i = 0; i < 8; i++)
    LS_CHECK_INT (op_of (measured, i)->match, ==, i < 5 ? i : i == 5 ? LS_UNMATCHED : i - 1);
}

/* Four kernels of which each is 5 times what is predicted, the last of them not at all: neither the lengths
 * as they are nor the ratio of medians (60 to 8) tell which is missing; that of means does. */
static void
means_tell_what_medians_do_not (void)
{
  static const double us[] = { 8, 100, 8, 20 };
  g_autoptr (LsStepSide) measured = ls_step_side_new ();
  g_autoptr (LsStepSide) predicted = ls_step_side_new ();
  measured->length = predicted->length = 4000 * US;
  for (guint i = 0; i < 4; i++) {
    add (measured, LS_CLASS_GEMM, 1000 * i, 1000 * i + 5 * us[i], 0, 0);
    if (i < 3)
      add (predicted, LS_CLASS_GEMM, 1000 * i, 1000 * i + us[i], 0, 0);
  }
  ls_reconcile_match (measured, predicted);
  for (guint i = 0; i < 4; i++)
    LS_CHECK_INT (op_of (measured, i)->match, ==, i < 3 ? i : LS_UNMATCHED);
}

static void
sizes_must_agree (void)
{
  g_autoptr (LsStepSide) measured = ls_step_side_new ();
  g_autoptr (LsStepSide) predicted = ls_step_side_new ();
  measured->length = predicted->length = 100 * US;
  add (measured, LS_CLASS_ALL_GATHER, 0, 10, 0, 100);
  add (measured, LS_CLASS_ALL_GATHER, 20, 30, 0, 200);
  add (measured, LS_CLASS_ALL_GATHER, 40, 50, 0, 0);
  add (predicted, LS_CLASS_ALL_GATHER, 20, 30, 0, 200);
  add (predicted, LS_CLASS_ALL_GATHER, 40, 50, 0, 300);
  add (predicted, LS_CLASS_ALL_GATHER, 60, 70, 0, 400);
  ls_reconcile_match (measured, predicted);
  LS_CHECK_INT (op_of (measured, 0)->match, ==, LS_UNMATCHED);
  LS_CHECK_INT (op_of (measured, 1)->match, ==, 0);
  LS_CHECK (op_of (measured, 2)->match != LS_UNMATCHED);
}

/* Beyond what a full table holds: the band is narrow, and the ends still meet. */
static void
long_sequences_align (void)
{
  g_autoptr (LsStepSide) measured = ls_step_side_new ();
  g_autoptr (LsStepSide) predicted = ls_step_side_new ();
  const guint n = 20000;
  measured->length = predicted->length = 10 * (LsTime) n * US;
  for (guint i = 0; i < n; i++) {
    double length = 1 + i % 7;
    add (measured, LS_CLASS_ELEMENTWISE, 10.0 * i, 10.0 * i + length, 0, 0);
    if (i % 1000 != 500)
      add (predicted, LS_CLASS_ELEMENTWISE, 10.0 * i, 10.0 * i + length, 0, 0);
  }
  ls_reconcile_match (measured, predicted);
  guint n_matched = 0;
  for (guint i = 0; i < n; i++)
    n_matched += op_of (measured, i)->match != LS_UNMATCHED;
  LS_CHECK_INT (n_matched, ==, n - n / 1000);
  LS_CHECK_INT (op_of (measured, n - 1)->match, ==, predicted->ops->len - 1);
}

LS_TEST_SUITE (LS_TEST (kernels_have_classes), LS_TEST (the_worked_example),
               LS_TEST (unmatched_ops_stand_by_name), LS_TEST (the_largest_may_be_missing),
               LS_TEST (parts_add_up), LS_TEST (a_class_that_is_slower_throughout_still_matches),
               LS_TEST (means_tell_what_medians_do_not), LS_TEST (sizes_must_agree),
               LS_TEST (long_sequences_align))
