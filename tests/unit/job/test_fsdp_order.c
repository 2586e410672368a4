/* Pins when FSDP1 and FSDP2 gather and reduce: the order in which they issue, how far ahead they
 * may be, what a slow stream makes wait for what. Two sizes: wide, whose layers compute longer than
 * a gather takes, and narrow, whose layers do not. 4 layers and a root on one made-up node of 8 GPUs. */
#include "dp_timeline.h"

#define FSDP1 "--gpus 8 --global-batch 8 --grad-norm 0 --fold off --zero 3 --dp-kind fsdp1 "
#define FSDP2 "--gpus 8 --global-batch 8 --grad-norm 0 --fold off --dp-kind fsdp2 "

#define ROOT 4u /* number of the root's unit */

/* --- spans ------------------------------------------------------------------------------ */

static gint
by_issue (gconstpointer a, gconstpointer b)
{
  const LsSpan *x = *(const LsSpan *const *) a, *y = *(const LsSpan *const *) b;
  if (x->issued != y->issued)
    return x->issued < y->issued ? -1 : 1;
  return dp_by_start (a, b);
}

/* Of a name, in the order of issue. */
static GPtrArray *
named (const DpRun *r, const char *name)
{
  GPtrArray *spans = dp_spans (r);
  for (guint i = spans->len; i-- > 0;)
    if (strcmp (dp_name (r, spans->pdata[i]), name) != 0)
      g_ptr_array_remove_index (spans, i);
  g_ptr_array_sort (spans, by_issue);
  return spans;
}

static const LsSpan *
nth (const GPtrArray *spans, guint i)
{
  static const LsSpan none = { 0 };
  return LS_CHECK (i < spans->len) ? spans->pdata[i] : &none;
}

/* "Gr G0 ..": gathers and reduce-scatters by unit, r the root, as the host issues them. */
static char *
order (const DpRun *r)
{
  GString *text = g_string_new (NULL);
  g_autoptr (GPtrArray) spans = dp_spans (r);
  g_ptr_array_sort (spans, by_issue);
  for (guint i = 0; i < spans->len; i++) {
    const LsOp *op = dp_op (r, spans->pdata[i]);
    if (op->kind != LS_OP_COLLECTIVE)
      continue;
    g_string_append_printf (text, "%s%c", text->len ? " " : "", strstr (op->name, "gather") ? 'G' : 'R');
    if (op->unit == ROOT)
      g_string_append_c (text, 'r');
    else
      g_string_append_printf (text, "%u", op->unit);
  }
  return g_string_free (text, FALSE);
}

static void
check_order (const char *flags, const char *expected)
{
  DpRun r = dp_run (flags, dp_untied);
  if (r.result) {
    g_autofree char *is = order (&r);
    LS_CHECK_STR (is, expected);
  }
  dp_clear (&r);
}

typedef struct {
  LsTime issued, start, end; /* of the first kernel; of the last */
  LsTime last_issued;
} Pass;

/* Kernels of a layer, forward or backward, without those that FSDP adds. */
static Pass
pass_of (const DpRun *r, guint layer, bool is_forward)
{
  Pass p = { LS_TIME_NEVER, LS_TIME_NEVER, 0, 0 };
  g_autoptr (GPtrArray) spans = dp_spans (r);
  for (guint i = 0; i < spans->len; i++) {
    const LsSpan *s = spans->pdata[i];
    const LsOp *op = dp_op (r, s);
    bool is_of_pass = is_forward ? op->tag == LS_TAG_F : op->tag == LS_TAG_I || op->tag == LS_TAG_W;
    if (op->kind != LS_OP_KERNEL || op->stream != LS_STREAM_COMPUTE || op->layer != layer || !is_of_pass
        || strstr (op->name, "gather"))
      continue;
    p = (Pass) { MIN (p.issued, s->issued), MIN (p.start, s->start), MAX (p.end, s->end),
                 MAX (p.last_issued, s->issued) };
  }
  return p;
}

/* --- FSDP1 -------------------------------------------------------------------------------- */

/* `pre` and `post` issue in the same order; `none` gathers behind the reduction. */
static void
fsdp1_prefetches_as_it_is_told (void)
{
  static const char usual[] = "Gr G0 G1 G2 G3 G3 G2 R3 G1 R2 G0 R1 R0 Rr";
  check_order (FSDP1, usual);
  check_order (FSDP1 "--backward-prefetch post", usual);
  check_order (FSDP1 "--backward-prefetch none", "Gr G0 G1 G2 G3 G3 R3 G2 R2 G1 R1 G0 R0 Rr");
  check_order (FSDP1 "--forward-prefetch 1", usual);
}

/* When the gather of a unit is issued, against the kernels of the unit that runs before it. */
static void
check_prefetch (const char *flags, bool is_before_forward, bool is_before_backward)
{
  DpRun r = dp_run (flags, dp_untied);
  if (r.result) {
    g_autoptr (GPtrArray) gathers = named (&r, "unit all-gather");
    LS_CHECK_INT (nth (gathers, 2)->issued < pass_of (&r, 0, true).issued, ==,
                  is_before_forward); /* G1 and layer 0 */
    LS_CHECK_INT (nth (gathers, 6)->issued < pass_of (&r, 3, false).issued, ==,
                  is_before_backward); /* G2 and layer 3 */
  }
  dp_clear (&r);
}

static void
fsdp1_prefetches_before_it_computes (void)
{
  check_prefetch (FSDP1, false, true);
  check_prefetch (FSDP1 "--backward-prefetch post", false, false);
  check_prefetch (FSDP1 "--backward-prefetch none", false, false);
  check_prefetch (FSDP1 "--forward-prefetch 1", true, true);
}

/* Four frees of a backward are queued when a forward begins: r and 0 take two, G1 and G2 two, so
 * that G3 waits for forward 0. In the backward G3 waits for forward 1, G2 for 2, G1 for 3, G0 for
 * backward 3. Without the limiter the host is ahead of all of these. */
static void
the_limiter_holds_the_host (void)
{
  DpRun r = dp_run (FSDP1, dp_wide), free = dp_run (FSDP1 "--limit-all-gathers 0", dp_wide);
  if (r.result && free.result) {
    g_autoptr (GPtrArray) limited = named (&r, "unit all-gather"), early = named (&free, "unit all-gather");
    for (guint i = 0; i < 4; i++) {
      LS_CHECK_INT (nth (limited, 4 + i)->issued, >=, pass_of (&r, i, true).end);
      LS_CHECK_INT (nth (early, 4 + i)->issued, <, pass_of (&free, i, true).end);
    }
    LS_CHECK_INT (nth (limited, 8)->issued, >=, pass_of (&r, 3, false).end);
    LS_CHECK_INT (nth (early, 8)->issued, <, pass_of (&free, 3, false).end);
  }
  dp_clear (&r);
  dp_clear (&free);
}

/* What nothing can hide: the root's gather and the first unit's, the last reductions. */
static double
unhidable_s (const DpRun *r)
{
  g_autoptr (GPtrArray) gathers = named (r, "unit all-gather"), reductions = named (r, "unit reduce-scatter");
  LsTime sum = 0;
  for (guint i = 0; i < 2; i++) {
    const LsSpan *g = nth (gathers, i), *s = nth (reductions, reductions->len - 1 - i);
    sum += g->end - g->matched + s->end - s->matched;
  }
  return ls_time_to_s (sum);
}

static void
long_layers_hide_their_gathers (void)
{
  static const char *const flags[] = { FSDP1, FSDP2 "--zero 3" },
                           *const names[] = { "fsdp1-pre-limited", "fsdp2-wide" };
  for (guint i = 0; i < 2; i++) {
    DpRun r = dp_run (flags[i], dp_wide);
    if (r.result) {
      g_autoptr (GPtrArray) gathers = named (&r, "unit all-gather");
      for (guint u = 1; u < 4; u++) { /* over before the layer before it is */
        LS_CHECK_INT (nth (gathers, 1 + u)->end, <=, pass_of (&r, u - 1, true).end);
        LS_CHECK_INT (nth (gathers, 5 + u)->end, <=, pass_of (&r, 4 - u, false).end);
      }
      LS_CHECK_DOUBLE (dp_part_s (&r, LS_PART_EXPOSED_DP), <=, 1.05 * unhidable_s (&r));
      dp_check_golden (&r, "fsdp", names[i]);
    }
    dp_clear (&r);
  }
}

static void
short_layers_wait_for_them (void)
{
  static const char *const flags[] = { FSDP1, FSDP2 "--zero 3" },
                           *const names[] = { "fsdp1-narrow", "fsdp2-narrow" };
  for (guint i = 0; i < 2; i++) {
    g_autofree char *fast_host
        = g_strconcat ("--seq 128 --host-launch 0us --host-comm 0us --host-sync 0us ", flags[i], NULL);
    DpRun r = dp_run (fast_host, dp_untied);
    if (r.result) {
      g_autoptr (GPtrArray) gathers = named (&r, "unit all-gather");
      for (guint u = 1; u < 4; u++) { /* not over when the layer before it is: a bubble */
        LS_CHECK_INT (nth (gathers, 1 + u)->end, >, pass_of (&r, u - 1, true).end);
        LS_CHECK_INT (pass_of (&r, u, true).start, >=, nth (gathers, 1 + u)->end);
        LS_CHECK_INT (nth (gathers, 1 + u)->start, >=, nth (gathers, u)->end); /* one moves at a time */
      }
      dp_check_golden (&r, "fsdp", names[i]);
    }
    dp_clear (&r);
  }
}

/* Each way to prefetch, with the limiter and without, written out. Layers are wide, so that all
 * hides but for `none`, whose gathers come behind the reduction and leave a bubble each. */
static void
each_fsdp1_prefetch_is_written_out (void)
{
  static const char *const prefetches[] = { "pre", "post", "none" };
  double exposed_s[3][2];
  for (guint i = 0; i < 3; i++)
    for (guint limits = 0; limits < 2; limits++) {
      g_autofree char *flags
          = g_strdup_printf (FSDP1 "--backward-prefetch %s --limit-all-gathers %u", prefetches[i], limits);
      g_autofree char *name = g_strdup_printf ("fsdp1-%s-%s", prefetches[i], limits ? "limited" : "free");
      DpRun r = dp_run (flags, dp_wide);
      if (r.result) {
        exposed_s[i][limits] = dp_part_s (&r, LS_PART_EXPOSED_DP);
        dp_check_golden (&r, "fsdp", name);
      }
      dp_clear (&r);
    }
  for (guint limits = 0; limits < 2; limits++) {
    LS_CHECK_DOUBLE (exposed_s[2][limits], >, exposed_s[0][limits]);
    LS_CHECK_DOUBLE (exposed_s[2][limits], >, exposed_s[1][limits]);
  }
}

/* --- FSDP2 -------------------------------------------------------------------------------- */

static void
fsdp2_prefetches_by_itself_or_by_a_list (void)
{
  check_order (FSDP2 "--zero 3", "Gr G0 G1 G2 G3 G3 G2 R3 G1 R2 G0 R1 R0 Rr");
  check_order (FSDP2 "--zero 2", "Gr G0 G1 G2 G3 R3 R2 R1 R0 Rr");
  check_order (FSDP2 "--zero 3 --backward-prefetch-units 2", "Gr G0 G1 G2 G3 G3 G2 G1 R3 G0 R2 R1 R0 Rr");
  check_order (FSDP2 "--zero 3 --layers-per-unit 4", "G1 G0 G0 R0 R1");
}

/* Wide: a gather begins when the copy-out two units before it is over, while the unit before it
 * computes. Gathers and copy-outs come in the same order: r 0 1 2 3, then 3 2 1 0. */
static void
fsdp2_has_two_buffers (void)
{
  DpRun r = dp_run (FSDP2 "--zero 3", dp_wide);
  if (r.result) {
    g_autoptr (GPtrArray) gathers = named (&r, "unit all-gather"), copies = named (&r, "gather-copy-out");
    LS_CHECK_INT (gathers->len, ==, 9);
    LS_CHECK_INT (copies->len, ==, 9);
    for (guint i = 0; i < 5 - 2; i++) {
      LS_CHECK_INT (nth (gathers, i + 2)->start, >=, nth (copies, i)->end);
      LS_CHECK_INT (nth (copies, i)->start, >=, nth (gathers, i)->end);
    }
    for (guint u = 0; u < 3; u++)
      LS_CHECK_INT (nth (gathers, u + 2)->start, <, pass_of (&r, u, true).end);
    for (guint i = 5; i < 8; i++) /* backward: behind the copy-out of the unit that computes */
      LS_CHECK_INT (nth (gathers, i + 1)->start, >=, nth (copies, i)->end);
  }
  dp_clear (&r);
}

/* An explicit list gathers two units ahead of the one that computes. */
static void
a_list_gathers_further_ahead (void)
{
  DpRun r = dp_run (FSDP2 "--zero 3 --forward-prefetch 2", dp_wide);
  if (r.result) {
    g_autoptr (GPtrArray) gathers = named (&r, "unit all-gather");
    LS_CHECK_INT (nth (gathers, 3)->issued, <, pass_of (&r, 0, true).issued); /* G2 before layer 0 */
    LS_CHECK_INT (nth (gathers, 4)->issued, >, pass_of (&r, 0, true).last_issued);
  }
  dp_clear (&r);
}

/* Narrow: the backward is faster than its reductions; compute copies in the gradients of a unit
 * when the reduce-scatter of the unit before is over. */
static void
one_reduction_is_in_flight (void)
{
  DpRun r = dp_run (FSDP2 "--zero 3 --host-launch 1us --host-comm 1us", dp_untied);
  if (r.result) {
    g_autoptr (GPtrArray) reductions = named (&r, "unit reduce-scatter"),
                          copies = named (&r, "reduce-copy-in");
    LS_CHECK_INT (copies->len, ==, 5);
    for (guint i = 0; i < 5; i++) {
      LS_CHECK_INT (nth (reductions, i)->start, >=, nth (copies, i)->end);
      if (i > 0)
        LS_CHECK_INT (nth (copies, i)->start, >=, nth (reductions, i - 1)->end);
    }
  }
  dp_clear (&r);
}

/* The cast of the next shard slips in between two kernels of the layer that computes, although the
 * host has issued all of these before. */
static void
a_small_kernel_slips_in (void)
{
  DpRun r = dp_run (FSDP2 "--zero 3", dp_wide);
  if (r.result) {
    g_autoptr (GPtrArray) casts = named (&r, "shard-cast");
    const LsSpan *cast = nth (casts, 3); /* of unit 2, beside layer 1 */
    Pass p = pass_of (&r, 1, true);
    LS_CHECK_INT (cast->issued, >, p.last_issued);
    LS_CHECK_INT (cast->end, <, p.end);
  }
  dp_clear (&r);
}

/* Over replicas on a stream of its own: beside the reduce-scatter of the next unit. */
static void
replicas_sum_beside (void)
{
  DpRun r = dp_run ("--gpus 8 --global-batch 8 --grad-norm 0 --fold off --dp-kind fsdp2 --zero 3@4", dp_wide);
  if (r.result) {
    g_autoptr (GPtrArray) sums = named (&r, "unit all-reduce"),
                          reductions = named (&r, "unit reduce-scatter");
    LS_CHECK_INT (sums->len, ==, 5);
    for (guint i = 0; i < sums->len; i++) {
      LS_CHECK_INT (dp_op (&r, nth (sums, i))->stream, ==, LS_STREAM_REPLICA);
      LS_CHECK_INT (nth (sums, i)->start, >=, nth (reductions, i)->end);
    }
  }
  dp_clear (&r);
}

/* --- pipelines ------------------------------------------------------------------------------ */

/* FSDP2: gathered by the first micro-batch, reduced behind the last. Rank 0 of 2 has 2 layers and the
 * root with the words: unit 2. */
static void
a_pipeline_gathers_and_reduces_once (void)
{
  DpRun r = dp_run ("--gpus 8 --pp 2 --global-batch 16 --grad-norm 0 --fold off --dp-kind fsdp2 --zero 3",
                    dp_untied);
  if (r.result) {
    g_autoptr (GPtrArray) gathers = named (&r, "unit all-gather"),
                          reductions = named (&r, "unit reduce-scatter");
    LS_CHECK_INT (gathers->len, ==, 3);
    LS_CHECK_INT (reductions->len, ==, 3);
    LS_CHECK_INT (dp_op (&r, nth (reductions, 0))->unit, ==, 2);
    LS_CHECK_INT (nth (reductions, 0)->start, >=, pass_of (&r, 0, false).end);
  }
  dp_clear (&r);
}

LS_TEST_SUITE (LS_TEST (fsdp1_prefetches_as_it_is_told), LS_TEST (fsdp1_prefetches_before_it_computes),
               LS_TEST (the_limiter_holds_the_host), LS_TEST (each_fsdp1_prefetch_is_written_out),
               LS_TEST (long_layers_hide_their_gathers), LS_TEST (short_layers_wait_for_them),
               LS_TEST (fsdp2_prefetches_by_itself_or_by_a_list), LS_TEST (fsdp2_has_two_buffers),
               LS_TEST (a_list_gathers_further_ahead), LS_TEST (one_reduction_is_in_flight),
               LS_TEST (a_small_kernel_slips_in), LS_TEST (replicas_sum_beside),
               LS_TEST (a_pipeline_gathers_and_reduces_once))
