/* Pins what a profiled step shows: its software, and the kernels of its layers. */
#include "ls_test.h"

#include "analysis/layer_kernels.h"
#include "analysis/reconcile.h"

/* Pins what a profiled step shows of its software: the median time between launches where the GPU waits, and
 * only of those; whose graphs are launched; which flash attention runs; and that nothing is told where
 * nothing shows. */

#define US LS_US

typedef struct {
  LsStepSide *side;
  LsTime launch, end; /* of the last op */
} Step;

static LsStepOp *
add (Step *step, LsOpClass class, LsTime start, LsTime end, LsTime launch)
{
  const LsStepOp op = { .start = start, .end = end, .launch = launch, .name = "k", .class = (uint8_t) class };
  g_array_append_val (step->side->ops, op);
  step->launch = launch;
  step->end = end;
  return &g_array_index (step->side->ops, LsStepOp, step->side->ops->len - 1);
}

/* Launched `gap` after the last one, it runs 5 us later, or when the last has ended. */
static LsStepOp *
launch (Step *step, LsOpClass class, LsTime gap, LsTime duration)
{
  LsTime at = step->launch + gap, start = MAX (at + 5 * US, step->end);
  return add (step, class, start, start + duration, at);
}

static Step
step_new (void)
{
  Step step = { .side = ls_step_side_new () };
  add (&step, LS_CLASS_ELEMENTWISE, 5 * US, 6 * US, 0);
  return step;
}

static LsSeenSoftware
seen_of (Step *step)
{
  LsSeenSoftware seen = ls_software_seen (step->side);
  ls_step_side_free (step->side);
  return seen;
}

static void
the_host_is_timed_where_the_gpu_waits (void)
{
  Step step = step_new ();
  for (guint i = 0; i < 9; i++)
    launch (&step, LS_CLASS_ELEMENTWISE, (20 + i) * US, 1 * US); /* waits: 20 to 28 us */
  for (guint i = 0; i < 50; i++)
    launch (&step, LS_CLASS_GEMM, 6 * US, 100 * US); /* the first waits too, the others run ahead */
  LsSeenSoftware seen = seen_of (&step);
  LS_CHECK_INT (seen.n_launches, ==, 10);
  LS_CHECK_INT (seen.host_launch, ==, 24 * US); /* of 6, 20 ... 28, the upper of the two in the middle */
}

static void
other_launches_do_not_count (void)
{
  Step step = step_new ();
  for (guint i = 0; i < 10; i++) {
    launch (&step, LS_CLASS_ALL_REDUCE, 90 * US, 1 * US);
    launch (&step, LS_CLASS_ELEMENTWISE, 80 * US, 1 * US); /* behind a collective's */
    launch (&step, LS_CLASS_COPY, 70 * US, 1 * US);
    launch (&step, LS_CLASS_ELEMENTWISE, 60 * US, 1 * US);
    launch (&step, LS_CLASS_ELEMENTWISE, 50 * US, 1 * US)->in_graph = true;
    launch (&step, LS_CLASS_GEMM, 45 * US, 1 * US); /* behind a graph's */
    LsTime at = step.launch;
    add (&step, LS_CLASS_ELEMENTWISE, step.end + 10 * US, step.end + 11 * US, LS_TIME_NEVER);
    step.launch = at;
    launch (&step, LS_CLASS_ELEMENTWISE, 40 * US, 1 * US); /* behind one that is not in the trace */
  }
  LsSeenSoftware seen = seen_of (&step);
  LS_CHECK_INT (seen.n_launches, ==, 0);
  LS_CHECK_INT (seen.host_launch, ==, -1);
}

static void
few_launches_tell_nothing (void)
{
  for (guint n = 5; n <= 6; n++) {
    Step step = step_new ();
    for (guint i = 0; i < n; i++)
      launch (&step, LS_CLASS_ELEMENTWISE, 20 * US, 1 * US);
    LsSeenSoftware seen = seen_of (&step);
    LS_CHECK_INT (seen.n_launches, ==, n);
    LS_CHECK_INT (seen.host_launch, ==, n < 6 ? -1 : 20 * US);
  }
}

/* Letters are the ops of a graph: A attention, B its backward, g a product; a blank begins the next graph. */
static LsSeenSoftware
seen_of_graphs (const char *letters)
{
  Step step = { .side = ls_step_side_new () };
  LsTime now = 0, at = 0;
  for (const char *c = letters; *c; c++, now += 2 * US) {
    if (*c == ' ')
      at = now;
    else
      add (&step,
           *c == 'A'       ? LS_CLASS_ATTENTION_FWD
               : *c == 'B' ? LS_CLASS_ATTENTION_BWD
                           : LS_CLASS_GEMM,
           now, now + US, at)
          ->in_graph
          = true;
  }
  return seen_of (&step);
}

static void
graphs_are_of_a_layer_or_of_the_step (void)
{
  LS_CHECK_INT (seen_of_graphs ("gAggAggBggBg").cuda_graphs, ==, LS_GRAPHS_STEP);
  LS_CHECK_INT (seen_of_graphs ("gAg gAg gBBg gBBg").cuda_graphs, ==, LS_GRAPHS_LAYER);
  LS_CHECK_INT (seen_of_graphs ("gAg gAg gBBg gBBg").n_graphs, ==, 4);
  LS_CHECK_INT (seen_of_graphs ("gAgAg gBgBg").cuda_graphs, ==, -1); /* of two layers each */
  LS_CHECK_INT (seen_of_graphs ("ggg gg").cuda_graphs, ==, -1);
  Step none = step_new ();
  LS_CHECK_INT (seen_of (&none).n_graphs, ==, 0);
}

static void
attention_is_known_by_name (void)
{
  static const struct {
    const char *name;
    int kernel;
  } names[] = {
    { "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128>>(Params)",
      LS_ATTENTION_KERNEL_FA2 },
    { "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2>>>>",
      LS_ATTENTION_KERNEL_FA3 },
    { "void fmha_fwd_loop_kernel<FMHA_kernel_traits<256, 64, 16, 1, 4, 8u, __half>>(Params)",
      LS_ATTENTION_KERNEL_FA1 },
    { "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3", LS_ATTENTION_KERNEL_CUDNN },
    { "attn_fwd", -1 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    Step step = step_new ();
    launch (&step, ls_op_class_of_kernel (names[i].name), 20 * US, 1 * US)->name = names[i].name;
    LsSeenSoftware seen = seen_of (&step);
    LS_CHECK_STR (seen.attention_name, names[i].name);
    LS_CHECK_INT (seen.attention, ==, names[i].kernel);
  }
  Step none = step_new ();
  LS_CHECK (seen_of (&none).attention_name == NULL);
}

/* Pins that the kernels of a layer are told apart by where they stand between attentions and products, in
 * every arrangement of products that a layer has; that what does not come out is not guessed; that backwards,
 * and with experts, all other kernels are one sum; and that what lies outside layers is in none. */

/* A layer in letters: A attention, B its backward, G product, K the sum of a split K, M memset, c copy, +
 * sum, d dropout, n named norm, w a kernel of unknown use, r reduction, e embedding, x communication, h copy
 * to the host, D copy on the GPU, f copy of FSDP. */
static const struct {
  char letter;
  const char *name;
} kernels[] = {
  { 'A', "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64>>(Params)" },
  { 'B', "void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<T>(Params)" },
  { 'G', "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64" },
  { 'K', "void cublasLt::splitKreduce_kernel<32, 16, int, float>(Params)" },
  { 'M', "Memset (Device)" },
  { 'c',
    "void at::native::elementwise_kernel<128, 4, direct_copy_kernel_cuda(at::TensorIteratorBase&)>(int)" },
  { '+',
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>>(int)" },
  { 'd', "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<c10::BFloat16>(int)" },
  { 'n', "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)" },
  { 'w',
    "void at::native::elementwise_kernel<128, 2, BinaryFunctor<float, float, float, MulFunctor<float>>>(int)" },
  { 'r', "void at::native::reduce_kernel<512, 1, ReduceOp<float, MeanOps<float>>>(int)" },
  { 'e', "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16>(int)" },
  { 'x', "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)" },
  { 'h', "Memcpy DtoH (Device -> Pinned)" },
  { 'f',
    "void at::native::(anonymous namespace)::split_with_sizes_copy_out_contiguous_no_cast_kernel(char**)" },
  { 'D', "Memcpy DtoD (Device -> Device)" },
};

static const char *
name_of (char letter)
{
  for (guint i = 0; i < G_N_ELEMENTS (kernels); i++)
    if (kernels[i].letter == letter)
      return kernels[i].name;
  g_assert_not_reached ();
}

/* Each kernel takes 1 us. */
static LsLayerKernels
layer_of (const char *letters)
{
  g_autoptr (LsStepSide) side = ls_step_side_new ();
  LsTime now = 0;
  for (const char *c = letters; *c; c++) {
    if (*c == ' ')
      continue;
    bool is_copy = *c == 'h' || *c == 'D';
    const LsStepOp op = { .start = now,
                          .end = now + LS_US,
                          .launch = LS_TIME_NEVER,
                          .name = name_of (*c),
                          .class = (uint8_t) (is_copy         ? LS_CLASS_COPY
                                                  : *c == 'M' ? LS_CLASS_MEMSET
                                                              : ls_op_class_of_kernel (name_of (*c))) };
    g_array_append_val (side->ops, op);
    now += 2 * LS_US;
  }
  return ls_layer_kernels_of_side (side);
}

static void
a_layer_is_told_apart (void)
{
  static const struct {
    const char *letters;
    guint gemm, norm, residual, rope, copies, activation, beside, memset;
  } layers[] = {
    { "A cMG +wwr MGwMGw MG +wwr MGMGMG wwcw ccc A", 7, 6, 2, 4, 4, 2, 0,
      7 },                                       /* eager; a copy within rope is rope's */
    { "A G+nGwG+nGwA", 4, 2, 2, 1, 0, 1, 0, 0 }, /* joint products */
    { "A GnGwGnGwA", 4, 2, 0, 1, 0, 1, 0, 0 },   /* the sum within the norm */
    { "A GrGwGrGwA", 4, 2, 0, 1, 0, 1, 0, 0 },
    { "A G+nGGwG+nGwA", 5, 2, 2, 1, 0, 1, 0, 0 },  /* gate and up */
    { "A G+nGwGwG+nGwA", 5, 2, 2, 1, 0, 2, 0, 0 }, /* with a kernel between them */
    { "A G+nGwG+nGGwA", 5, 2, 2, 1, 0, 1, 0, 0 },  /* q, and k with v */
    { "A G+nGwG+nGGGwA", 6, 2, 2, 1, 0, 1, 0, 0 },
    { "A G+nGGwG+nGGwA", 6, 2, 2, 1, 0, 1, 0, 0 },
    { "A Gd+nGwGd+nGA", 4, 2, 4, 0, 0, 1, 0, 0 },
    { "AA GK+nGwGK+nGwAA", 4, 2, 2, 1, 0, 1, 0, 0 },   /* split in two: one */
    { "A xG+xnhGwG+nfGwDxA", 4, 2, 2, 1, 1, 1, 0, 0 }, /* what is no kernel of its layer */
    { "A GnGwGnGnnwA", 4, 4, 0, 1, 0, 1, 0, 0 },       /* norms of Q and K by name */
  };
  for (guint i = 0; i < G_N_ELEMENTS (layers); i++) {
    const LsLayerKernels layer = layer_of (layers[i].letters);
    const LsPassKernels *p = &layer.pass[LS_PASS_FORWARD];
    guint n[LS_N_LAYER_PARTS] = { [LS_LAYER_GEMM] = layers[i].gemm,
                                  [LS_LAYER_ATTENTION] = 1,
                                  [LS_LAYER_NORM] = layers[i].norm,
                                  [LS_LAYER_RESIDUAL] = layers[i].residual,
                                  [LS_LAYER_ROPE] = layers[i].rope,
                                  [LS_LAYER_COPIES] = layers[i].copies,
                                  [LS_LAYER_ACTIVATION] = layers[i].activation,
                                  [LS_LAYER_BESIDE] = layers[i].beside,
                                  [LS_LAYER_MEMSET] = layers[i].memset };
    LS_CHECK_INT (p->n_layers, ==, 1);
    LS_CHECK (p->is_split);
    for (int part = 0; part < LS_N_LAYER_PARTS; part++)
      ls_check_impl (p->n[part] == n[part], __FILE__, __LINE__, "%s: %u of %s, expected %u",
                     layers[i].letters, p->n[part], ls_layer_part_names[part], n[part]);
    LS_CHECK_INT (layer.pass[LS_PASS_BACKWARD].n_layers, ==, 0);
  }
}

/* Nothing between products that need something between them; experts; more products than a layer has. */
static void
what_does_not_come_out_is_not_guessed (void)
{
  static const char *const layers[] = { "A GGGGw A", "A GnGwG nGwGwGwGwGwA", "A GwGA", "A wwA" };
  for (guint i = 0; i < G_N_ELEMENTS (layers); i++) {
    const LsLayerKernels layer = layer_of (layers[i]);
    const LsPassKernels *p = &layer.pass[LS_PASS_FORWARD];
    guint n_others = 0;
    for (const char *c = layers[i]; *c; c++)
      n_others += *c == 'w' || *c == 'n';
    LS_CHECK (!p->is_split);
    LS_CHECK_INT (p->n[LS_LAYER_REST], ==, n_others);
    LS_CHECK_INT (p->n[LS_LAYER_NORM] + p->n[LS_LAYER_ROPE] + p->n[LS_LAYER_ACTIVATION], ==, 0);
  }
}

/* Two micro-batches, three layers each, forwards and backwards; between micro-batches lies no layer. Between
 * a backward and the forward of the next there is none either. */
static void
the_layer_is_what_most_stretches_are (void)
{
#define FORWARD  "e nGwA G+nGwG+nGwA G+nGwG+nGwA G+nGwGwG "
#define BACKWARD "wwGGwGGwwGGB wGGwwGGwGGwwGGB wGGwwGGwGGwwGGB wGGww "
  const LsLayerKernels layer = layer_of (FORWARD BACKWARD FORWARD BACKWARD);
  const LsPassKernels *f = &layer.pass[LS_PASS_FORWARD], *b = &layer.pass[LS_PASS_BACKWARD];
  LS_CHECK_INT (f->n_layers, ==, 4);
  LS_CHECK_INT (f->n_spans, ==, 4);
  LS_CHECK_INT (f->time[LS_LAYER_NORM], ==, 2 * LS_US);
  LS_CHECK_INT (b->n_layers, ==, 4);
  LS_CHECK_INT (b->n[LS_LAYER_GEMM], ==, 8);
  LS_CHECK_INT (b->n[LS_LAYER_REST], ==, 6);
  LS_CHECK_INT (b->n[LS_LAYER_ATTENTION], ==, 1);
  LS_CHECK (!b->is_split);
  LS_CHECK_INT (ls_pass_kernels_total (b), ==, 15);
  const LsLayerKernels none = layer_of ("e nGwA e nGwA"),
                       odd = layer_of ("A G+nGwG+nGwA G+nGwG+nGwA G+nGwG+nGwwA");
  LS_CHECK_INT (none.pass[LS_PASS_FORWARD].n_layers, ==, 0);
  LS_CHECK_INT (odd.pass[LS_PASS_FORWARD].n_layers, ==, 2);
  LS_CHECK_INT (odd.pass[LS_PASS_FORWARD].n_spans, ==, 3);
}

/* How far apart two are: by part, so that one more here and one less there are two; of the passes that there
 * are. */
static void
kernels_apart_are_counted_by_part (void)
{
  const LsLayerKernels a = layer_of ("A G+nGwG+nGwA"), b = layer_of ("A G+nnGwG+nGA"),
                       c = layer_of ("A GMG+nGMwG+nGA");
  LS_CHECK_INT (ls_layer_kernels_off (&a, &a), ==, 0);
  LS_CHECK_INT (ls_layer_kernels_off (&a, &b), ==, 2);
  LS_CHECK_INT (ls_layer_kernels_off (&b, &a), ==, 2);
  LS_CHECK (!c.pass[LS_PASS_FORWARD].is_split);
  const LsPassKernels coarse = ls_pass_kernels_as (&a.pass[LS_PASS_FORWARD], &c.pass[LS_PASS_FORWARD]);
  LS_CHECK_INT (coarse.n[LS_LAYER_REST], ==, 6);
  LS_CHECK_INT (coarse.n[LS_LAYER_NORM], ==, 0);
  LS_CHECK_INT (ls_pass_kernels_total (&coarse), ==, ls_pass_kernels_total (&a.pass[LS_PASS_FORWARD]));
}

LS_TEST_SUITE (LS_TEST (the_host_is_timed_where_the_gpu_waits), LS_TEST (other_launches_do_not_count),
               LS_TEST (few_launches_tell_nothing), LS_TEST (graphs_are_of_a_layer_or_of_the_step),
               LS_TEST (attention_is_known_by_name), LS_TEST (a_layer_is_told_apart),
               LS_TEST (what_does_not_come_out_is_not_guessed),
               LS_TEST (the_layer_is_what_most_stretches_are), LS_TEST (kernels_apart_are_counted_by_part))
