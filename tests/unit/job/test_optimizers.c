/* Pins what optimizers that are not Adam keep and run, counted by hand on the tiny model: 4 layers of width 1024
 * with an MLP of 4096, all with biases, 50,048 words tied to the head, 1024 learned positions.
 *
 *     matrices of a layer   Q, K, V, proj: n^2; fc1, fc2: 4 n^2, with n^2 = 2^20       12 n^2, in all 50331648
 *     tables                50048 x 1024, 1024 x 1024                                         52297728
 *     vectors               26 of 1024, 4 of 3072, 4 of 4096                                   55296
 *
 * Newton-Schulz, five times 4 s^2 l + 2 s^3: 30 n^3 for each of the four, 90 n^3 for fc1 and fc2: 300 n^3 a
 * layer with n^3 = 2^30. */
#include "ls_test.h"

#include "dp_timeline.h"

#define ONE      "--gpus 1 --global-batch 1 "
#define TWO      "--gpus 2 --global-batch 2 "
#define DEALT    TWO "--zero 1 --optimizer muon "
#define N_MATRIX 50331648.0
#define N_TABLE  52297728.0
#define N_VECTOR 55296.0
#define CUBE     1073741824.0 /* n^3 */

static uint64_t
optimizer_bytes (const char *flags)
{
  LsPlan *plan = dp_plan (flags, NULL);
  uint64_t bytes = plan ? plan->programs[0].static_bytes[LS_MEM_OPTIMIZER] : 0;
  ls_plan_free (plan);
  return bytes;
}

/* Of kernels of a step's end whose names begin so: FLOPs, bytes, how many; collectives: payload as bytes. */
typedef struct {
  double flops, bytes;
  guint n;
} Sum;

static Sum
sum_of (const char *flags, const char *prefix)
{
  LsPlan *plan = dp_plan (flags, NULL);
  Sum sum = { 0 };
  for (uint32_t s = 0; plan && s < plan->n_segments; s++)
    for (uint32_t i = 0; i < plan->segments[s].n_ops; i++) {
      const LsOp *op = &plan->segments[s].ops[i];
      bool is_kernel = op->kind == LS_OP_KERNEL && op->kernel != UINT32_MAX;
      if (!g_str_has_prefix (op->name, prefix))
        continue;
      sum.flops += is_kernel ? plan->kernels[op->kernel].flops : 0;
      sum.bytes += is_kernel ? plan->kernels[op->kernel].bytes : (double) op->bytes;
      sum.n++;
    }
  ls_plan_free (plan);
  return sum;
}

/* Masters 4 bytes an element, and what each keeps. */
static void
states_are_those_of_a_count_by_hand (void)
{
  double n = N_MATRIX + N_TABLE + N_VECTOR;
  LS_CHECK_INT (optimizer_bytes (ONE), ==, 12 * (uint64_t) n);
  LS_CHECK_INT (optimizer_bytes (ONE "--optimizer adamw"), ==, 12 * (uint64_t) n);
  LS_CHECK_INT (optimizer_bytes (ONE "--optimizer sgd"), ==, 4 * (uint64_t) n);
  LS_CHECK_INT (optimizer_bytes (ONE "--optimizer sgd-momentum"), ==, 8 * (uint64_t) n);
  LS_CHECK_INT (optimizer_bytes (ONE "--optimizer lion"), ==, 8 * (uint64_t) n);
  /* one moment of matrices, two of the rest */
  LS_CHECK_INT (optimizer_bytes (ONE "--optimizer muon"), ==,
                (uint64_t) (8 * N_MATRIX + 12 * (N_TABLE + N_VECTOR)));
  /* a row and a column of 4 bytes each: 4 of 1024 + 1024, 2 of 5120 in a layer, 50048 + 1024, 2048 */
  LS_CHECK_INT (optimizer_bytes (ONE "--optimizer adafactor"), ==,
                (uint64_t) (4 * n + 4 * N_VECTOR) + 4 * (4 * (4 * 2048 + 2 * 5120) + 51072 + 2048));
  /* vectors of 3072 and less stay in 32 bits: 26 x 1024 + 4 x 3072 */
  double small = 26 * 1024 + 4 * 3072, large = n - small;
  LS_CHECK_INT (optimizer_bytes (ONE "--optimizer adamw-8bit"), ==,
                (uint64_t) (4 * n + 8 * small + 2 * large + 8 * large / 256));
  LS_CHECK_INT (optimizer_bytes (ONE "--optimizer adamw-fp8"), ==,
                (uint64_t) (4 * n + 8 * small + 2 * large + 8 * large / 256));
  LS_CHECK_INT (optimizer_bytes (ONE "--optimizer adamw-4bit"), ==,
                (uint64_t) (4 * n + 8 * small + large + 8 * large / 128));
  LS_CHECK_DOUBLE (sum_of (ONE "--optimizer adamw-4bit", "adamw-4bit").bytes, ==, (12 + 2 + 0.125) * large);
  /* sides of 1024 and 4096, 8 bytes an element */
  LS_CHECK_INT (optimizer_bytes (ONE "--optimizer soap"), ==,
                (uint64_t) (12 * n + 4 * 8 * (10 * 1048576.0 + 2 * 16777216.0)));
  LS_CHECK_INT (optimizer_bytes (ONE "--dtype fp32 --optimizer lion"), ==, 4 * (uint64_t) n);
  LS_CHECK_INT (optimizer_bytes (TWO "--dp-kind fsdp2 --optimizer lion"), ==, 2 * (uint64_t) n);
}

/* Whole matrices; the words in six tiles of 8192 rows and one of 896; vectors as wide as they are long. */
static void
shampoo_works_on_tiles (void)
{
  double n = N_MATRIX + N_TABLE + N_VECTOR, n2 = 1048576;
  double matrices = 4 * (4 * 2 + 2 * (1 + 16)) * n2, vectors = (26 + 4 * 9 + 4 * 16) * n2;
  double words = 6 * 64 * n2 + 896.0 * 896 + 7 * n2, positions = 2 * n2;
  LS_CHECK_INT (optimizer_bytes (ONE "--optimizer shampoo"), ==,
                (uint64_t) (12 * n + 8 * (matrices + vectors + words + positions)));
  /* 24 matrices, 7 + 1 tiles of tables and 34 vectors, which have one side: 2 rows columns (rows + columns) */
  Sum products = sum_of (ONE "--optimizer shampoo", "precondition-");
  LS_CHECK_INT (products.n, ==, 2 * (24 + 8) + 34);
  double of_matrices = 4 * (4 * 2 + 2 * 4 * 5) * CUBE, of_vectors = vectors;
  double of_words = 6 * 8.0 * 9 * CUBE + 0.875 * 1.875 * CUBE, of_positions = 2 * CUBE;
  LS_CHECK_DOUBLE (products.flops, ==, 2 * (of_matrices + of_vectors + of_words + of_positions));
  /* its second moment and two operations on preconditioners: 8 bytes of each, of rows and of columns */
  LS_CHECK_DOUBLE (sum_of (ONE "--optimizer shampoo", "decay-gram-").bytes, ==,
                   8 * (matrices + vectors + words + positions));
  LS_CHECK_DOUBLE (sum_of (ONE "--optimizer shampoo", "decay-variance").bytes, ==, 8 * n);
}

/* The work of a mean step, from the largest down, in units of a side of 1024. Columns: 20 matrices, 8 tiles of
 * tables and 26 vectors of 1, 4 vectors of 27, 4 matrices and 4 vectors of 64: a hundredth of 674. Rows of
 * matrices: 20 of 1, 4 of 64: of the large ones 25.6 are due, less than half of one, so that the small ones run. */
static void
rare_kernels_do_the_work_of_a_mean_step (void)
{
  Sum eigh = sum_of (ONE "--optimizer shampoo", "eigh-columns");
  LS_CHECK_INT (eigh.n, ==, 7);
  LS_CHECK_NEAR (eigh.flops, 7 * 9 * CUBE, 1e-9);
  Sum qr = sum_of (ONE "--optimizer soap", "qr-rows");
  LS_CHECK_INT (qr.n, ==, 20);
  LS_CHECK_NEAR (qr.flops, 20 * 8 / 3.0 * CUBE, 1e-3);
}

static void
newton_schulz_multiplies_what_its_formula_says (void)
{
  Sum ns = sum_of (ONE "--optimizer muon", "ns-");
  LS_CHECK_DOUBLE (ns.flops, ==, 4 * 300 * CUBE);
  LS_CHECK_INT (ns.n, ==, 4 * 6 * 15);
  LS_CHECK_DOUBLE (sum_of (ONE "--optimizer muon", "momentum").bytes, ==, 12 * N_MATRIX);
  LS_CHECK_DOUBLE (sum_of (ONE "--optimizer muon", "adam").bytes, ==, 28 * (N_TABLE + N_VECTOR));
  LS_CHECK_INT (sum_of (ONE "--optimizer muon", "adam").n, ==, 1);
  /* gate and up are one weight of Megatron-LM, fc1; Q, K and V are apart */
  LS_CHECK_DOUBLE (sum_of (TWO "--dp-kind ddp --optimizer muon", "ns-").flops, ==, ns.flops);
}

/* Tensors in order of size: 34 vectors, the positions, 16 of n^2, 8 of 4 n^2, the words. Dealt 0 1 1 0 0 1 1 0:
 * both ranks have 8 and 4 of the matrices; rank 0 has the words and 13 x 1024 + 2 x 3072 + 2 x 4096 of vectors,
 * rank 1 the positions. */
static void
tensors_are_dealt_out_and_back (void)
{
  Sum ns = sum_of (DEALT, "ns-");
  LS_CHECK_DOUBLE (ns.flops, ==, 4 * 300 * CUBE / 2);
  LS_CHECK_INT (ns.n, ==, 12 * 15);
  double own = 50048 * 1024.0 + 13 * 1024 + 2 * 3072 + 2 * 4096;
  LS_CHECK_INT (optimizer_bytes (DEALT), ==, (uint64_t) (8 * N_MATRIX / 2 + 12 * own));
  /* of four ranks the last has numbers 3 and 4 of each eight: 6 x 1024 and 2 x 3072 of vectors, 4 and 2 of the
   * matrices, the words */
  own = 50048 * 1024.0 + 6 * 1024 + 2 * 3072;
  LS_CHECK_INT (optimizer_bytes ("--gpus 4 --global-batch 4 --zero 1 --optimizer muon"), ==,
                (uint64_t) (8 * N_MATRIX / 4 + 12 * own));
  LS_CHECK_INT (sum_of (DEALT, "grad reduce-scatter").n, ==, 0);
  LS_CHECK_DOUBLE (sum_of (DEALT, "parameter all-gather").bytes, ==, 2 * (N_MATRIX + N_TABLE + N_VECTOR));
  LS_CHECK_INT (sum_of (DEALT, "momentum all-gather").n, ==, 0);
}

/* Halves of all elements, words and positions first: all matrices are in the second. */
static void
pieces_of_matrices_are_gathered (void)
{
#define PIECES DEALT "--optimizer-cut elements"
  LS_CHECK_DOUBLE (sum_of (PIECES, "ns-").flops, ==, 4 * 300 * CUBE);
  LS_CHECK_DOUBLE (sum_of (PIECES, "momentum all-gather").bytes, ==, 2 * N_MATRIX);
  double half = (N_MATRIX + N_TABLE + N_VECTOR) / 2;
  uint64_t fullest = optimizer_bytes (PIECES);
  LS_CHECK_INT (fullest, ==, 12 * (uint64_t) half); /* words and positions alone */
}

/* With tp 2 a rank has halves: blockwise they are multiplied as they are (4 x 512 x 1024; fc1 and fc2 in blocks of
 * 2048 x 1024); duplicated both ranks do what one did; distributed, n^2 from sides of 512. */
static void
matrices_that_are_cut_are_multiplied_as_asked (void)
{
#define TP TWO "--tp 2 --optimizer muon --optimizer-tp "
  double n = 1024, cut = 512;
  double small = 5 * (4 * cut * cut * n + 2 * cut * cut * cut),
         wide = 5 * (4 * n * n * 2 * n + 2 * n * n * n);
  LS_CHECK_DOUBLE (sum_of (TP "blockwise", "ns-").flops, ==, 4 * (4 * small + 2 * wide));
  LS_CHECK_INT (sum_of (TP "blockwise", "momentum all-gather").n, ==, 0);
  LS_CHECK_DOUBLE (sum_of (TP "duplicated", "ns-").flops, ==, 4 * 300 * CUBE);
  LS_CHECK_DOUBLE (sum_of (TP "duplicated", "momentum all-gather").bytes, ==, 4 * N_MATRIX);
  double turned = 5 * (4 * n * n * cut + 2 * n * n * n);
  LS_CHECK_DOUBLE (sum_of (TP "distributed", "ns-").flops, ==, 4 * (4 * turned + 2 * wide));
  Sum reduced = sum_of (TP "distributed", "optimizer product all-reduce");
  LS_CHECK_INT (reduced.n, ==, 4 * 6 * 5);
  LS_CHECK_DOUBLE (reduced.bytes, ==, 4 * 6 * 5 * 2 * n * n);
}

/* The 16 bits that bf16 lacks, and moments of 2 and 1 bytes: 5 bytes an element instead of 12; while it steps,
 * fp32 copies of both moments. */
static void
narrow_states_take_less_but_while_they_are_stepped_on (void)
{
#define NARROW TWO "--zero 1 --master remainder --moment-dtype bf16 --variance-dtype fp8"
  uint64_t n = (uint64_t) (N_MATRIX + N_TABLE + N_VECTOR), bytes = 0;
  LS_CHECK_INT (optimizer_bytes (NARROW), ==, 5 * n / 2);
  LsPlan *plan = dp_plan (NARROW, NULL);
  for (uint32_t s = 0; plan && s < plan->n_segments; s++)
    for (uint32_t i = 0; i < plan->segments[s].n_ops; i++)
      for (uint32_t k = 0; k < plan->segments[s].ops[i].n_buffers; k++) {
        const LsBufferEvent *e = &plan->segments[s].ops[i].buffers[k];
        bytes += g_str_has_prefix (plan->segments[s].ops[i].name, "state-") && !e->is_free ? e->bytes : 0;
      }
  LS_CHECK_INT (bytes, ==, 2 * 4 * n / 2);
  ls_plan_free (plan);
}

/* fp8 weights are cast where they are owned, 4 bytes an element, and gathered in one byte; of mxfp8 gathered in
 * two and cast by all. */
static void
weights_of_mxfp8_are_cast_behind_their_gather (void)
{
#define FP8 TWO "--zero 1 --dtype fp8 --fp8-params 1 --fp8-recipe "
  double all = N_MATRIX + N_TABLE + N_VECTOR;
  LS_CHECK_DOUBLE (sum_of (FP8 "current", "fp8-weight-cast").bytes, ==, 4 * N_MATRIX / 2);
  LS_CHECK_DOUBLE (sum_of (FP8 "current", "parameter all-gather").bytes, ==, all);
  LS_CHECK_DOUBLE (sum_of (FP8 "mxfp8", "fp8-weight-cast").bytes, ==, 4 * N_MATRIX);
  LS_CHECK_DOUBLE (sum_of (FP8 "mxfp8", "parameter all-gather").bytes, ==, 2 * all);
}

/* PyTorch's: the optimizer steps on the weights. In 16 bits they, gradients and both moments are 2 bytes an
 * element, read and written but for the gradient, 14 in all; in fp32 twice that. Nothing is zeroed or copied
 * beside, and no gradient is added to none. */
static void
weights_may_be_stepped_on_themselves (void)
{
  uint64_t n = (uint64_t) (N_MATRIX + N_TABLE + N_VECTOR);
  static const char *const kinds[] = { ONE "--master none", ONE "--master weights" };
  static const char *const beside[]
      = { "zero gradients", "main-grad-copy", "weight-copy", "grad-accumulate" };
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++) {
    uint64_t size = i == 0 ? 2 : 4;
    LsPlan *plan = dp_plan (kinds[i], NULL);
    if (!LS_CHECK (plan != NULL))
      continue;
    LS_CHECK_INT (plan->programs[0].static_bytes[LS_MEM_PARAMETERS], ==, size * n);
    LS_CHECK_INT (plan->programs[0].static_bytes[LS_MEM_GRADIENTS], ==, 0);
    LS_CHECK_INT (plan->programs[0].static_bytes[LS_MEM_OPTIMIZER], ==, 2 * size * n);
    ls_plan_free (plan);
    LS_CHECK_DOUBLE (sum_of (kinds[i], "adam").bytes, ==, 7.0 * (double) (size * n));
    LS_CHECK_DOUBLE (sum_of (kinds[i], "grad-norm").bytes, ==, (double) (size * n));
    for (guint k = 0; k < G_N_ELEMENTS (beside); k++)
      LS_CHECK_INT (sum_of (kinds[i], beside[k]).n, ==, 0);
  }
}

/* Gradients come with the first backward, are added to by the second, and are gone behind the step. */
static void
gradients_are_there_from_the_first_backward_to_the_step (void)
{
#define TWICE "--gpus 1 --global-batch 2 --micro-batch 1 --master none"
  uint64_t n = (uint64_t) (N_MATRIX + N_TABLE + N_VECTOR), made[2] = { 0 };
  LsPlan *plan = dp_plan (TWICE, NULL);
  for (uint32_t s = 0; plan && s < plan->n_segments; s++)
    for (uint32_t i = 0; i < plan->segments[s].n_ops; i++)
      for (uint32_t k = 0; k < plan->segments[s].ops[i].n_buffers; k++) {
        const LsBufferEvent *e = &plan->segments[s].ops[i].buffers[k];
        made[e->is_free] += e->category == LS_MEM_GRADIENTS ? e->bytes : 0;
      }
  ls_plan_free (plan);
  LS_CHECK_INT (made[false], ==, 2 * n);
  LS_CHECK_INT (made[true], ==, 2 * n);
  double words = 50048.0 * 1024; /* what the head made of them is there each time */
  LS_CHECK_DOUBLE (sum_of (TWICE, "grad-accumulate").bytes, ==, 3 * 2 * (N_MATRIX + words));
  LS_CHECK_DOUBLE (sum_of (TWICE, "embedding-grad-accumulate").bytes, ==, 2 * 3 * 2 * words);

  DpRun once = dp_run (ONE "--master none", NULL), twice = dp_run (TWICE, NULL);
  if (LS_CHECK (once.result && twice.result)) {
    const LsMemory *a = once.result->memory, *b = twice.result->memory;
    LS_CHECK (b->classes[0].peak_bytes > a->classes[0].peak_bytes);
  }
  dp_clear (&once);
  dp_clear (&twice);
}

/* DDP keeps its buckets; FSDP and Megatron-LM have fp32 weights whatever is said. */
static void
masters_are_there_where_a_program_has_them (void)
{
  uint64_t n = (uint64_t) (N_MATRIX + N_TABLE + N_VECTOR);
  LsPlan *ddp = dp_plan (TWO "--dp-kind ddp --master none", NULL);
  if (LS_CHECK (ddp != NULL)) {
    LS_CHECK_INT (ddp->programs[0].static_bytes[LS_MEM_GRADIENTS], ==, 2 * n);
    LS_CHECK_INT (ddp->programs[0].static_bytes[LS_MEM_OPTIMIZER], ==, 4 * n);
  }
  ls_plan_free (ddp);
  LS_CHECK_INT (optimizer_bytes (TWO "--master none"), ==, optimizer_bytes (TWO));
  LS_CHECK_INT (optimizer_bytes (TWO "--dp-kind fsdp2 --master weights"), ==,
                optimizer_bytes (TWO "--dp-kind fsdp2"));
}

/* FSDP of a model that was in bf16: shards, gradients and both moments of 2 bytes; nothing is cast on the way to a
 * gather, and what is reduced in fp32 is cast behind it. */
static void
shards_may_be_narrow (void)
{
#define SHARDS TWO "--dp-kind fsdp2 --grad-dtype fp32 "
  uint64_t n = (uint64_t) (N_MATRIX + N_TABLE + N_VECTOR);
  LS_CHECK_INT (optimizer_bytes (SHARDS), ==, 8 * n / 2);
  LS_CHECK_INT (optimizer_bytes (SHARDS "--narrow-shards 1"), ==, 4 * n / 2);
  LS_CHECK (sum_of (SHARDS, "shard-cast").n > 0);
  LS_CHECK_INT (sum_of (SHARDS "--narrow-shards 1", "shard-cast").n, ==, 0);
  LS_CHECK_INT (sum_of (SHARDS, "grad-shard-cast").n, ==, 0);
  LS_CHECK_DOUBLE (sum_of (SHARDS "--narrow-shards 1", "grad-shard-cast").bytes, ==, 6.0 * (double) n / 2);
  LS_CHECK_DOUBLE (sum_of (SHARDS "--narrow-shards 1", "adam").bytes, ==, 14.0 * (double) n / 2);
}

/* What an optimizer multiplies is not the model's. Nobody gathers more than there is. */
static void
all_of_them_run_and_conserve (void)
{
  static const char *const flags[] = { TWO "--optimizer adafactor --zero 1",
                                       TWO "--optimizer soap --zero 1 --grad-norm 0",
                                       TWO "--optimizer shampoo --zero 1",
                                       DEALT "--dtype fp16",
                                       PIECES,
                                       TP "distributed",
                                       TWO "--pp 2 --optimizer adamw-8bit",
                                       TWO "--lora-rank 8 --optimizer muon",
                                       NARROW,
                                       TWICE,
                                       TWO "--dp-kind fsdp1 --narrow-shards 1",
                                       SHARDS "--narrow-shards 1 --optimizer lion",
                                       TWO "--dp-kind ddp --master weights",
                                       ONE "--master none --optimizer lion",
                                       ONE "--master none --dtype fp16",
                                       TWO "--dp-kind deepspeed --zero 2 --optimizer lion",
                                       TWO "--dp-kind xla-fsdp --optimizer sgd" };
  for (guint i = 0; i < G_N_ELEMENTS (flags); i++) {
    DpRun r = dp_run (flags[i], NULL); /* checks what is conserved */
    LS_CHECK (r.result && !isnan (r.result->report.hfu) && r.result->report.hfu < 1);
    dp_clear (&r);
  }
}

LS_TEST_SUITE (LS_TEST (states_are_those_of_a_count_by_hand), LS_TEST (shampoo_works_on_tiles),
               LS_TEST (rare_kernels_do_the_work_of_a_mean_step),
               LS_TEST (newton_schulz_multiplies_what_its_formula_says),
               LS_TEST (tensors_are_dealt_out_and_back), LS_TEST (pieces_of_matrices_are_gathered),
               LS_TEST (matrices_that_are_cut_are_multiplied_as_asked),
               LS_TEST (narrow_states_take_less_but_while_they_are_stepped_on),
               LS_TEST (weights_of_mxfp8_are_cast_behind_their_gather),
               LS_TEST (weights_may_be_stepped_on_themselves),
               LS_TEST (gradients_are_there_from_the_first_backward_to_the_step),
               LS_TEST (shards_may_be_narrow), LS_TEST (masters_are_there_where_a_program_has_them),
               LS_TEST (all_of_them_run_and_conserve))
