/* Pins what PyTorch's FSDP1 and FSDP2 move and hold: bytes on the wire to the byte, sharded state,
 * what is alive unsharded, which combinations run and which are refused. When things happen is in
 * test_fsdp_order.c. Jobs of the tiny model, embedding and head apart, on one made-up node of 8 GPUs. */
#include "dp_timeline.h"

#include <math.h>
#include <string.h>

#define N     8
#define FSDP1 "--gpus 8 --grad-norm 0 --fold off --dp-kind fsdp1 "
#define FSDP2 "--gpus 8 --grad-norm 0 --fold off --dp-kind fsdp2 "

/* Of the root: words twice, positions, final norm. Of a layer: 12 h^2 + 13 h. */
static const double root = 2.0 * 1024 * 50048 + 1024 * 1024 + 2 * 1024;
static const double layer = 12.0 * 1024 * 1024 + 13 * 1024;

/* --- bytes on the wire ---------------------------------------------------------------- */

/* What GPU 0 sends, of layers and root: so many times (n - 1)/n of their elements, in bytes. */
static void
check_sent (const char *flags, double bytes_of_layers, double bytes_of_root)
{
  DpRun r = dp_run (flags, dp_untied);
  if (r.result) {
    LS_CHECK_INT (r.result->plan->programs[0].n_params, ==, (int64_t) (4 * layer + root));
    double expected = (N - 1.0) / N * (bytes_of_layers * 4 * layer + bytes_of_root * root);
    ls_check_impl (fabs (dp_bytes_sent (&r) / expected - 1) < 1e-12, __FILE__, __LINE__,
                   "%s: sent %.0f, expected %.0f", flags, dp_bytes_sent (&r), expected);
  }
  dp_clear (&r);
}

/* k = 3 where everything is resharded: gathered twice, reduce-scattered once. The root is kept from
 * forward to backward, and with zero 2 everything: k = 2. */
static void
a_step_moves_k_times_the_model (void)
{
  check_sent (FSDP1 "--zero 3 --global-batch 8", 3 * 2, 2 * 2);
  check_sent (FSDP1 "--zero 2 --global-batch 8", 2 * 2, 2 * 2);
  check_sent (FSDP2 "--zero 3 --global-batch 8", 3 * 2, 2 * 2);
  check_sent (FSDP2 "--zero 2 --global-batch 8", 2 * 2, 2 * 2);
  check_sent (FSDP2 "--zero 3 --global-batch 8 --layers-per-unit 3", 3 * 2, 2 * 2);
}

/* Reduced in fp32: 4 bytes instead of 2. */
static void
reductions_are_in_their_own_type (void)
{
  check_sent (FSDP1 "--zero 3 --global-batch 8 --grad-dtype fp32", 2 * 2 + 4, 2 + 4);
  check_sent (FSDP2 "--zero 3 --global-batch 8 --grad-dtype fp32", 2 * 2 + 4, 2 + 4);
}

/* Each micro-batch gathers and reduces; without synchronisation the last alone reduces, and
 * FSDP1's zero 2 then keeps its parameters for the whole step. */
static void
micro_batches_gather_again (void)
{
  check_sent (FSDP1 "--zero 3 --global-batch 24", 3 * 6, 3 * 4);
  check_sent (FSDP2 "--zero 3 --global-batch 24", 3 * 6, 3 * 4);
  check_sent (FSDP1 "--zero 3 --global-batch 24 --grad-sync last", 3 * 4 + 2, 3 * 2 + 2);
  check_sent (FSDP2 "--zero 3 --global-batch 24 --grad-sync last", 3 * 4 + 2, 3 * 2 + 2);
  check_sent (FSDP1 "--zero 2 --global-batch 24 --grad-sync last", 2 + 2, 3 * 2 + 2 - 4);
  check_sent (FSDP2 "--zero 2 --global-batch 24 --grad-sync last", 3 * 2 + 2, 3 * 2 + 2);
}

/* Groups of 4 have 3/4 of a model on the wire where 8 have 7/8; a quarter of the gradients is
 * all-reduced between 2 replicas. Behind a forward into groups of 4: the backward gathers there. */
static void
groups_move_their_part (void)
{
  double in_group = (3.0 / 4) / (7.0 / 8), sum = 2 * (1.0 / 2) / 4 / (7.0 / 8);
  check_sent (FSDP1 "--zero 3@4 --global-batch 8", 6 * in_group + 2 * sum, 4 * in_group + 2 * sum);
  check_sent (FSDP2 "--zero 3@4 --global-batch 8", 6 * in_group + 2 * sum, 4 * in_group + 2 * sum);
  check_sent (FSDP2 "--zero 3 --reshard-after-forward 4 --global-batch 8", 4 + 2 * in_group, 4);
  check_sent (FSDP2 "--zero 3 --reshard-after-forward 8 --global-batch 8", 6, 4);
}

/* --- memory ---------------------------------------------------------------------------- */

#define GIB 1073741824.0

/* fp32 parameters, gradients and two moments: 16 bytes a parameter over all ranks, whatever is
 * computed in. */
static void
state_is_fp32_shards (void)
{
  static const char *const flags[]
      = { FSDP1 "--zero 3 --global-batch 8", FSDP2 "--zero 2 --global-batch 8 --grad-dtype fp32",
          FSDP2 "--zero 3 --global-batch 8 --dtype fp32" };
  for (guint i = 0; i < G_N_ELEMENTS (flags); i++) {
    DpRun r = dp_run (flags[i], dp_untied);
    if (r.result) {
      const uint64_t *bytes = r.result->plan->programs[0].static_bytes;
      uint64_t share = (uint64_t) (4 * layer + root) / N;
      LS_CHECK_INT (bytes[LS_MEM_PARAMETERS], ==, 4 * share);
      LS_CHECK_INT (bytes[LS_MEM_GRADIENTS], ==, 0);
      LS_CHECK_INT (r.result->memory->classes[0].category_peak[LS_MEM_GRADIENTS], ==, 4 * share);
      LS_CHECK_INT (bytes[LS_MEM_OPTIMIZER], ==, 8 * share);
    }
    dp_clear (&r);
  }
}

/* Bytes of gradients that a program allocates or frees, before its last action or all of it. */
static uint64_t
gradients_of (const LsPlan *plan, bool is_free, bool all)
{
  const LsProgram *p = &plan->programs[0];
  uint64_t bytes = 0;
  for (uint32_t i = p->n_lead; i < p->n_instances - !all; i++) {
    const LsSegment *s = &plan->segments[p->instances[i].segment];
    for (uint32_t o = 0; o < s->n_ops; o++)
      for (uint32_t k = 0; k < s->ops[o].n_buffers; k++) {
        const LsBufferEvent *e = &s->ops[o].buffers[k];
        bytes += e->category == LS_MEM_GRADIENTS && e->is_free == is_free ? e->bytes : 0;
      }
  }
  return bytes;
}

/* A shard of gradients comes with its first reduction, of whichever micro-batch, others are added to it, and the
 * step forgets it: between steps and in a first forward there is none. With a pipeline FSDP2 reduces at the end of
 * the step, once; FSDP1 in each stage's backward, where they are counted for the whole step. */
static void
shards_of_gradients_come_with_their_reduction (void)
{
  static const struct {
    const char *flags;
    uint32_t pp;
    bool comes_in_a_pass, is_kept;
  } cases[] = {
    { FSDP1 "--zero 3 --global-batch 8", 1, true, false },
    { FSDP1 "--zero 2 --global-batch 24 --grad-sync last", 1, true, false },
    { FSDP2 "--zero 3 --global-batch 24", 1, true, false },
    { FSDP2 "--zero 3 --global-batch 24 --grad-sync last --grad-dtype fp32", 1, true, false },
    { FSDP2 "--zero 3 --pp 2 --schedule 1f1b --global-batch 16 --grad-sync last", 2, false, false },
    { FSDP2 "--zero 3 --pp 2 --vpp 2 --schedule interleaved-1f1b --global-batch 16 --grad-sync last", 2,
      false, false },
    { FSDP1 "--zero 3 --pp 2 --schedule 1f1b --global-batch 16", 2, false, true },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    DpRun r = dp_run (cases[i].flags, dp_untied);
    if (LS_CHECK (r.result != NULL)) {
      const LsPlan *plan = r.result->plan;
      const LsClassMemory *m = &r.result->memory->classes[0];
      uint64_t share = 4 * plan->programs[0].n_params / (N / cases[i].pp);
      bool is_as_expected = gradients_of (plan, false, true) == (cases[i].is_kept ? 0 : share)
          && gradients_of (plan, true, true) == gradients_of (plan, false, true)
          && (gradients_of (plan, false, false) > 0) == cases[i].comes_in_a_pass
          && plan->programs[0].static_bytes[LS_MEM_GRADIENTS] == (cases[i].is_kept ? share : 0)
          && m->category_peak[LS_MEM_GRADIENTS] == share && m->overfreed_bytes == 0;
      ls_check_impl (is_as_expected, __FILE__, __LINE__,
                     "%s: made %" G_GUINT64_FORMAT ", share %" G_GUINT64_FORMAT, cases[i].flags,
                     gradients_of (plan, false, true), share);
    }
    dp_clear (&r);
  }
}

/* Units of a layer each, after n_before others, and then one without: a gather is of its unit's layer. */
static void
check_layers_of_gathers (const LsPlan *plan, guint n_before)
{
  for (uint32_t s = 0; s < plan->n_segments; s++)
    for (uint32_t o = 0; o < plan->segments[s].n_ops; o++) {
      const LsOp *op = &plan->segments[s].ops[o];
      bool is_layers = op->unit >= n_before && op->unit < n_before + 4;
      if (strcmp (op->name, "unit all-gather") == 0)
        LS_CHECK_INT (op->layer, ==, is_layers ? op->unit - n_before : UINT16_MAX);
    }
}

/* Four layers, embedding and head: the root's forward gathers both, or each is gathered where it is used, the
 * embedding again in the backward. Peaks of what is gathered differ by the embedding. */
static void
ends_may_be_units_of_their_own (void)
{
  static const struct {
    const char *flags;
    guint n_gathers, n_reduces;
  } cases[] = {
    { FSDP2 "--zero 3 --global-batch 8 --ends-apart 0", 1 + 4 + 4, 4 + 1 },
    { FSDP2 "--zero 3 --global-batch 8 --ends-apart 1", 1 + 4 + 1 + 4 + 1, 1 + 4 + 1 },
  };
  uint64_t peaks[2] = { 0 };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    DpRun r = dp_run (cases[i].flags, dp_untied);
    guint n_gathers = 0, n_reduces = 0;
    g_autoptr (GPtrArray) spans = dp_spans (&r);
    for (guint s = 0; s < spans->len; s++) {
      n_gathers += strcmp (dp_name (&r, spans->pdata[s]), "unit all-gather") == 0;
      n_reduces += strcmp (dp_name (&r, spans->pdata[s]), "unit reduce-scatter") == 0;
    }
    ls_check_impl (n_gathers == cases[i].n_gathers && n_reduces == cases[i].n_reduces, __FILE__, __LINE__,
                   "%s: %u gathers, %u reductions", cases[i].flags, n_gathers, n_reduces);
    if (LS_CHECK (r.result != NULL)) {
      LS_CHECK_INT (r.result->memory->classes[0].overfreed_bytes, ==, 0);
      peaks[i] = r.result->memory->classes[0].category_peak[LS_MEM_UNSHARDED];
      check_layers_of_gathers (r.result->plan, i);
    }
    dp_clear (&r);
  }
  LS_CHECK_INT (peaks[1], <, peaks[0]);
}

/* Wide, so that the host is far ahead of a slow device. The root is alive throughout. */
static double
unsharded_gib (const char *flags)
{
  DpRun r = dp_run (flags, dp_wide);
  double bytes = r.result ? (double) r.result->memory->classes[0].category_peak[LS_MEM_UNSHARDED] : 0;
  dp_clear (&r);
  return bytes / GIB;
}

/* Units of 0.375 GiB in 16 bits (4096^2 * 12, and biases). */
static void
few_units_are_alive_at_once (void)
{
  double limited = unsharded_gib (FSDP1 "--zero 3 --global-batch 16"),
         free = unsharded_gib (FSDP1 "--zero 3 --global-batch 16 --limit-all-gathers 0");
  double kept = unsharded_gib (FSDP1 "--zero 2 --global-batch 16");
  double two = unsharded_gib (FSDP2 "--zero 3 --global-batch 16"),
         all = unsharded_gib (FSDP2 "--zero 2 --global-batch 16");
  double group = unsharded_gib (FSDP2 "--zero 3 --reshard-after-forward 4 --global-batch 16");
  /* Without the limiter the host runs ahead and the gathers of passes to come pile up. */
  LS_CHECK_DOUBLE (free, >, limited + 2 * 0.375);
  /* Of 4 layers the limiter leaves 3 (freed, in use, prefetched), so zero 2 has at least one more. */
  LS_CHECK_DOUBLE (kept, >=, limited);
  LS_CHECK_DOUBLE (all, >=, two);
  LS_CHECK_DOUBLE (group, >=, two);
  LS_CHECK_DOUBLE (group, <=, two + 4 * 0.376 / 4);
}

static double
kernel_bytes (const LsPlan *plan, const char *name)
{
  double bytes = 0;
  for (uint32_t k = 0; plan && k < plan->n_kernels; k++)
    if (strcmp (plan->kernels[k].name, name) == 0)
      bytes += plan->kernels[k].bytes;
  return bytes;
}

/* Parameters may be gathered in fp8, gradients are made in 16 bits all the same; without fp8
 * there is nothing to gather in it. */
static void
gradients_are_not_in_fp8 (void)
{
  static const char *const flags[][3] = {
    { FSDP1 "--dtype fp8 --global-batch 8", FSDP1 "--dtype fp8 --fp8-params 1 --global-batch 8",
      "flat-grad" },
    { FSDP2 "--dtype fp8 --global-batch 8", FSDP2 "--dtype fp8 --fp8-params 1 --global-batch 8",
      "reduce-copy-in" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (flags); i++) {
    LsPlan *wide = dp_plan (flags[i][0], dp_untied), *narrow = dp_plan (flags[i][1], dp_untied);
    LS_CHECK (kernel_bytes (wide, flags[i][2]) > 0);
    LS_CHECK_NEAR (kernel_bytes (narrow, flags[i][2]), kernel_bytes (wide, flags[i][2]), 1e-12);
    LS_CHECK_DOUBLE (kernel_bytes (narrow, "shard-cast"), <, kernel_bytes (wide, "shard-cast"));
    ls_plan_free (wide);
    ls_plan_free (narrow);
  }
  check_sent (FSDP2 "--zero 3 --global-batch 8 --dtype bf16 --fp8-params 1", 3 * 2, 2 * 2);
}

/* part: bytes that a copy behind a layer writes. */
static void
check_reshard (const char *flags, double part)
{
  LsPlan *plan = dp_plan (flags, dp_untied);
  guint n = 0;
  for (uint32_t s = 0; plan && s < plan->n_segments; s++)
    for (uint32_t i = 0; i < plan->segments[s].n_ops; i++) {
      const LsOp *op = &plan->segments[s].ops[i];
      if (g_strcmp0 (op->name, "reshard-copy") != 0)
        continue;
      n++;
      LS_CHECK_DOUBLE (plan->kernels[op->kernel].bytes, ==, 2 * part);
      LS_CHECK_INT (op->n_buffers, >, 0);
      LS_CHECK_DOUBLE ((double) op->buffers[0].bytes, ==, part);
      LS_CHECK (!op->buffers[0].is_free);
    }
  LS_CHECK_INT (n, ==, 4);
  ls_plan_free (plan);
}

/* Behind a forward into groups of n each layer's nth part is copied: read and written, and kept. The root is
 * not. */
static void
a_part_of_each_layer_is_copied (void)
{
  check_reshard (FSDP2 "--zero 3 --reshard-after-forward 4 --global-batch 8", 2 * layer / 4);
  check_reshard (FSDP2 "--zero 3 --reshard-after-forward 2 --global-batch 8", 2 * layer / 2);
  check_reshard (FSDP2 "--zero 3 --reshard-after-forward 4 --global-batch 8 --dtype fp32", 4 * layer / 4);
}

/* --- combinations ---------------------------------------------------------------------- */

/* Runs in builds with assertions only if its plan passes the checker. */
static void
runs (const char *kind, const char *more)
{
  g_autofree char *flags = g_strconcat ("--dp-kind ", kind, " ", more, NULL);
  DpRun r = dp_run (flags, strstr (more, "--pp") ? dp_untied : NULL);
  ls_check_impl (r.result && r.result->timeline->window_end > r.result->timeline->window_start, __FILE__,
                 __LINE__, "%s", flags);
  if (r.result) {
    const LsClassMemory *m = &r.result->memory->classes[0];
    ls_check_impl (memcmp (m->at_begin, m->at_end, sizeof m->at_begin) == 0, __FILE__, __LINE__,
                   "%s: what is alive grows", flags);
    LS_CHECK_INT (m->overfreed_bytes, ==, 0);
  }
  dp_clear (&r);
}

static void
all_that_is_legal_runs (void)
{
  static const char *const jobs[] = {
    "--gpus 8 --tp 2 --sp 1 --zero 3 --global-batch 8",
    "--gpus 8 --tp 4 --zero 2 --global-batch 4 --recompute selective",
    "--gpus 8 --zero 3 --global-batch 16 --recompute full --grad-dtype fp32",
    "--gpus 8 --zero 3@2 --global-batch 16 --recompute full --recompute-layers 2 --layers-per-unit 2",
    "--gpus 8 --cp 2 --attention flash --zero 3 --global-batch 8",
    "--gpus 8 --dtype fp16 --zero 3 --global-batch 16",
    "--gpus 8 --dtype fp32 --zero 2@4 --global-batch 16",
    "--gpus 3 --zero 3 --global-batch 3",
    "--gpus 8 --zero 3 --global-batch 8 --layers-per-unit 3",
    "--gpus 8 --zero 3 --global-batch 24 --grad-sync last",
    "--gpus 8 --pp 2 --tp 2 --zero 3 --global-batch 16",
    "--gpus 8 --pp 2 --zero 2 --global-batch 16 --grad-sync each",
    "--gpus 8 --pp 2 --zero 3 --global-batch 16 --grad-sync each --recompute full",
    "--gpus 8 --pp 2 --vpp 2 --zero 3 --global-batch 16",
    "--gpus 8 --pp 2 --vpp 2 --schedule looped-bfs --zero 3@2 --global-batch 16",
    "--gpus 8 --pp 2 --schedule gpipe --zero 3 --global-batch 16",
    "--gpus 8 --pp 2 --schedule zb-h1 --zero 3 --global-batch 16",
    "--gpus 8 --pp 2 --schedule zbv --zero 3 --global-batch 16",
    "--gpus 8 --pp 2 --schedule dualpipev --zero 2 --global-batch 16",
    "--gpus 8 --pp 4 --schedule zb-2p --zero 3 --global-batch 16",
  };
  for (guint i = 0; i < G_N_ELEMENTS (jobs); i++) {
    runs ("fsdp1", jobs[i]);
    runs ("fsdp2", jobs[i]);
  }
  runs ("fsdp1", "--gpus 8 --zero 3 --global-batch 16 --backward-prefetch post --forward-prefetch 1");
  runs ("fsdp1", "--gpus 8 --zero 3 --global-batch 16 --backward-prefetch none --limit-all-gathers 0");
  runs ("fsdp2", "--gpus 8 --zero 3 --global-batch 16 --forward-prefetch 2 --backward-prefetch-units 3");
  runs ("fsdp2", "--gpus 8 --zero 3 --global-batch 16 --reshard-after-forward 2 --recompute full");
  runs ("fsdp2", "--gpus 8 --pp 2 --zero 3 --reshard-after-forward 1 --global-batch 16");
}

static void
refused (const char *flags, const char *expected)
{
  LsJobSpec spec;
  LsModel m;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_auto (GStrv) words = g_strsplit (flags, " ", -1);
  g_autofree char *file
      = g_build_filename (g_getenv ("LS_DATA_DIR"), "tests", "golden", "data", "models", "tiny.json", NULL);
  ls_job_spec_init (&spec);
  for (guint i = 0; words[i] && words[i + 1]; i += 2)
    LS_CHECK (ls_job_spec_set (&spec, words[i] + strlen ("--"), words[i + 1], diags));
  LS_CHECK (ls_model_load (file, &m, NULL, diags));
  LS_CHECK (!ls_strategy_resolve (&spec.strategy, &m, 8, 8, diags));
  g_autofree char *text = ls_diag_list_format (diags);
  ls_check_impl (strstr (text, expected) != NULL, __FILE__, __LINE__, "%s: %s", flags, text);
  ls_model_clear (&m);
  ls_job_spec_clear (&spec);
}

static void
what_is_not_legal_is_refused (void)
{
  refused ("--dp-kind fsdp1 --zero 1", "/zero: expected 2 (SHARD_GRAD_OP) or 3 (FULL_SHARD)");
  refused ("--dp-kind fsdp1 --zero 3 --forward-prefetch 2", "/forward_prefetch: expected 0 or 1");
  refused ("--dp-kind fsdp2 --zero 2 --reshard-after-forward 1",
           "/reshard_after_forward: expected 0 with zero 2");
  refused ("--dp-kind fsdp2 --zero 3 --reshard-after-forward 3",
           "/reshard_after_forward: expected 0, 1 or a size of groups that divides");
  refused ("--dp-kind fsdp2 --zero 3@4 --reshard-after-forward 2", "/reshard_after_forward: groups of 2");
  refused ("--dp-kind fsdp2 --zero 3@3", "/zero: expected groups whose size divides");
}

/* --- the optimizer's tensors ----------------------------------------------------------- */

/* What the host spends on launches of the optimizer's kernel `name` beyond the first. */
static uint64_t
n_launches (const char *flags, const char *name)
{
  DpRun r = dp_run (flags, dp_untied);
  uint64_t n = 0;
  for (uint32_t k = 0; r.result && k < r.result->plan->n_kernels; k++)
    if (strcmp (r.result->plan->kernels[k].name, name) == 0)
      n += r.result->plan->kernels[k].n_launches;
  dp_clear (&r);
  return n;
}

/* A loop over tensors launches its kernels for those of which a rank has a part. A layer has 12 tensors, weights
 * before biases: norm 2 x h, QKV 3 h^2 and 3 h, projection h^2 and h, norm 2 x h, up 4 h^2 and 4 h, down 4 h^2 and
 * h; the root 5: words, positions, norm 2 x h, words. The third of eight pieces of a layer, 1.5 h^2 and 1.6 h each,
 * begins in QKV's bias and has the projection's two, the norm's two and the begin of up: 6. The root's third
 * is inside of the first words. Where tensors are cut by themselves a rank has a part of each. */
static void
a_rank_steps_on_what_it_has_a_part_of (void)
{
#define LOOP "--kernels llm-foundry-2023 --recompute none --global-batch 8 "
  LS_CHECK_INT (n_launches (FSDP1 LOOP "--zero 3", "adam update"), ==, 4 * 6 + 1);
  LS_CHECK_INT (n_launches (FSDP2 LOOP "--zero 3", "adam update"), ==, 4 * 12 + 5);
  LS_CHECK_INT (n_launches (FSDP1 LOOP "--zero 3", "adam count read"), ==, 4 * 6 + 1);
}

LS_TEST_SUITE (LS_TEST (a_rank_steps_on_what_it_has_a_part_of), LS_TEST (a_step_moves_k_times_the_model),
               LS_TEST (reductions_are_in_their_own_type), LS_TEST (micro_batches_gather_again),
               LS_TEST (groups_move_their_part), LS_TEST (state_is_fp32_shards),
               LS_TEST (shards_of_gradients_come_with_their_reduction),
               LS_TEST (ends_may_be_units_of_their_own), LS_TEST (few_units_are_alive_at_once),
               LS_TEST (gradients_are_not_in_fp8), LS_TEST (a_part_of_each_layer_is_copied),
               LS_TEST (all_that_is_legal_runs), LS_TEST (what_is_not_legal_is_refused))
