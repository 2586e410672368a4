/* Pins the Chrome trace of a step, and which send meets which receive in it. */
#include "ls_test.h"
#include "pipeline.h"

#include <cjson/cJSON.h>
#include <glib/gstdio.h>

#include "exec/memory/memory.h"
#include "show/run/timeline_boxes.h"
#include "show/run/trace_chrome.h"

/* Pins the Chrome trace of a small pipeline: it parses, times are exact, slices
 * nest, arrows lead forward in time between slices that exist. */

static const PipelineShape shape
    = { 2, 1, 3, 10 * LS_MS + 1, 20 * LS_MS, 0, LS_MS, 2 * LS_MS, LS_MS, 3 * LS_MS };

/* Of rank 0 a GiB until 10 ms, then two. */
static GArray *
made_up_memory (gconstpointer user, uint32_t rank)
{
  GArray *samples = g_array_new (FALSE, FALSE, sizeof (LsMemorySample));
  LsMemorySample s = { 0 };
  s.alive[LS_MEM_ACTIVATIONS] = UINT64_C (1) << 30;
  g_array_append_val (samples, s);
  s.at = 10 * LS_MS;
  s.alive[LS_MEM_ACTIVATIONS] *= 2;
  g_array_append_val (samples, s);
  return samples;
}

static cJSON *
trace_of_size (const LsTimeline *t, LsTraceSize size, char **ret_text)
{
  g_autofree char *folder = g_dir_make_tmp ("ls-trace-XXXXXX", NULL),
                  *path = g_build_filename (folder, "t.json", NULL);
  g_autoptr (GError) error = NULL;
  const LsChromeTrace trace = { .timeline = t, .title = "a \"job\"", .memory = made_up_memory, .size = size };
  LS_CHECK (ls_trace_chrome_write (&trace, path, &error));
  LS_CHECK_NO_ERROR (error);
  g_file_get_contents (path, ret_text, NULL, NULL);
  g_unlink (path);
  g_rmdir (folder);
  return cJSON_Parse (*ret_text);
}

static cJSON *
trace_of (const LsTimeline *t, char **ret_text)
{
  return trace_of_size (t, (LsTraceSize) { 64, 0 }, ret_text);
}

static const char *
text_of (const cJSON *event, const char *key)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive (event, key);
  return item ? cJSON_GetStringValue (item) : NULL;
}

static double
number_of (const cJSON *event, const char *key)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive (event, key);
  return item ? item->valuedouble : -1;
}

static bool
is_phase (const cJSON *event, const char *phase)
{
  return g_strcmp0 (text_of (event, "ph"), phase) == 0;
}

/* Whether some slice of this thread holds an instant. */
static bool
has_slice_at (const cJSON *events, const cJSON *arrow)
{
  const cJSON *event;
  cJSON_ArrayForEach (event, events)
    if (is_phase (event, "X") && number_of (event, "pid") == number_of (arrow, "pid")
        && number_of (event, "tid") == number_of (arrow, "tid")
        && number_of (event, "ts") <= number_of (arrow, "ts")
        && number_of (arrow, "ts") <= number_of (event, "ts") + number_of (event, "dur") + 1e-6)
      return true;
  return false;
}

static void
picoseconds_survive (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  g_autofree char *text = NULL;
  cJSON *root = trace_of (&p.t, &text);
  if (LS_CHECK (root != NULL)) {
    /* rank 0, micro-batch 0: half of 10 ms and 1 ps, rounded down, the all-reduce, the rest */
    LS_CHECK (strstr (text, "\"ts\":0.000000,\"dur\":5000.000000") != NULL);
    LS_CHECK (strstr (text, "\"ts\":6000.000000,\"dur\":5000.000001") != NULL);
    LS_CHECK (strstr (text, "\"title\":\"a \\\"job\\\"\"") != NULL);
    LS_CHECK (strstr (text, "\"name\":\"all-reduce\"") != NULL);
    LS_CHECK (strstr (text, "\"name\":\"rank 1 (stage 1)\"") != NULL);
  }
  cJSON_Delete (root);
  pipeline_clear (&p);
}

/* 3 forwards, 3 backwards and the optimizer of each rank; a kernel of 2e9 FLOPs in 5 ms. */
static void
passes_and_kernels_are_told (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  LsKernel kernel
      = { .name = "fc1", .dtype = LS_DTYPE_BF16, .m = 10, .n = 20, .k = 30, .flops = 2e9, .bytes = 1e6 };
  p.plan.kernels = &kernel;
  p.plan.n_kernels = 1;
  for (int s = 0; s < PIPELINE_N_SEGMENTS; s++)
    p.ops[s][PIPELINE_FIRST].kernel = 0;
  g_autofree char *text = NULL;
  cJSON *root = trace_of (&p.t, &text);
  const cJSON *events = cJSON_GetObjectItem (root, "traceEvents"), *event;
  int n_passes = 0;
  cJSON_ArrayForEach (event, events)
    n_passes += g_strcmp0 (text_of (event, "cat"), "pass") == 0;
  LS_CHECK_INT (n_passes, ==, 14);
  LS_CHECK (strstr (text, "\"name\":\"backward 2\"") != NULL);
  LS_CHECK (strstr (text,
                    "\"m\":10,\"n\":20,\"k\":30,\"flops\":2e+09,\"bytes\":1e+06,\"tflop_per_s\":0.4,"
                    "\"gb_per_s\":0.2")
            != NULL);
  cJSON_Delete (root);
  pipeline_clear (&p);
}

static void
arrows_join_slices_forward_in_time (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  g_autofree char *text = NULL;
  cJSON *root = trace_of (&p.t, &text);
  const cJSON *events = cJSON_GetObjectItem (root, "traceEvents"), *event;
  int n_starts = 0, n_ends = 0;
  double from = 0, id = -1;
  cJSON_ArrayForEach (event, events)
    if (is_phase (event, "s")) {
      n_starts++;
      from = number_of (event, "ts");
      id = number_of (event, "id");
      LS_CHECK (has_slice_at (events, event));
    } else if (is_phase (event, "f")) {
      n_ends++;
      LS_CHECK_DOUBLE (number_of (event, "id"), ==, id);
      LS_CHECK_DOUBLE (number_of (event, "ts"), >=, from);
      LS_CHECK_STR (text_of (event, "bp"), "e");
      LS_CHECK (has_slice_at (events, event));
    }

  LS_CHECK_INT (n_starts, ==, n_ends);
  LS_CHECK_INT (n_starts, >, 0);
  cJSON_Delete (root);
  pipeline_clear (&p);
}

/* Window in the middle: nothing before 0 or after its length, no empty slice. */
static void
slices_are_cut_at_the_window (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  p.t.window_start = 15 * LS_MS;
  p.t.window_end = 60 * LS_MS;
  g_autofree char *text = NULL;
  cJSON *root = trace_of (&p.t, &text);
  const cJSON *event;
  int n_cut = 0;
  cJSON_ArrayForEach (event, cJSON_GetObjectItem (root, "traceEvents")) {
    if (is_phase (event, "M"))
      continue;
    LS_CHECK_DOUBLE (number_of (event, "ts"), >=, 0);
    LS_CHECK_DOUBLE (number_of (event, "ts"), <=, 45e3);
    if (!is_phase (event, "X"))
      continue;
    LS_CHECK_DOUBLE (number_of (event, "dur"), >, 0);
    LS_CHECK_DOUBLE (number_of (event, "ts") + number_of (event, "dur"), <=, 45e3 + 1e-6);
    n_cut += number_of (event, "ts") == 0;
  }
  LS_CHECK_INT (n_cut, >, 0);
  cJSON_Delete (root);
  pipeline_clear (&p);
}

/* The counter never goes below zero, and returns to it. */
static void
communication_in_flight_is_counted (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  g_autofree char *text = NULL;
  cJSON *root = trace_of (&p.t, &text);
  const cJSON *event;
  double last = -1, most = 0;
  cJSON_ArrayForEach (event, cJSON_GetObjectItem (root, "traceEvents")) {
    if (g_strcmp0 (text_of (event, "name"), "communication in flight") != 0)
      continue;
    last = number_of (cJSON_GetObjectItem (event, "args"), "ops");
    LS_CHECK_DOUBLE (last, >=, 0);
    most = MAX (most, last);
  }
  LS_CHECK_DOUBLE (last, ==, 0);
  LS_CHECK_DOUBLE (most, >=, 1);
  cJSON_Delete (root);
  pipeline_clear (&p);
}

/* The mean of a counter over the window: what it says holds until it says another. */
static double
mean_of (const cJSON *root, double pid, const char *name, const char *key, double window_us)
{
  const cJSON *event;
  double sum = 0, at = 0, value = 0;
  cJSON_ArrayForEach (event, cJSON_GetObjectItem (root, "traceEvents")) {
    if (g_strcmp0 (text_of (event, "name"), name) != 0 || number_of (event, "pid") != pid)
      continue;
    LS_CHECK_DOUBLE (number_of (event, "ts"), >=, at);
    sum += value * (number_of (event, "ts") - at);
    at = number_of (event, "ts");
    value = number_of (cJSON_GetObjectItem (event, "args"), key);
  }
  return (sum + value * (window_us - at)) / window_us;
}

/* Rates add up to what was done: 6 kernels of 2e9 FLOPs first in their pass (the second has none), each
 * all-reduce of 1 MB over 2 ranks sends 1 MB. Memory is what was said. */
static void
counters_add_up (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  LsKernel kernel = { .name = "fc1", .flops = 2e9 };
  p.plan.kernels = &kernel;
  p.plan.n_kernels = 1;
  for (int s = 0; s < PIPELINE_N_SEGMENTS; s++) {
    p.ops[s][PIPELINE_FIRST].kernel = 0;
    p.ops[s][PIPELINE_TP].bytes = 1000000;
    p.ops[s][PIPELINE_TP].coll = LS_COLL_ALL_REDUCE;
  }
  guint n_kernels = 0;
  double sent = 0;
  for (uint32_t i = 0; i < p.t.ranks[0].n; i++) {
    const LsOp *op = ls_span_op (&p.t, 0, &p.t.ranks[0].spans[i]);
    n_kernels += op->kernel == 0;
    uint32_t n = op->kind == LS_OP_COLLECTIVE ? p.plan.comms[p.plan.bindings[0].comm[op->slot]].n_ranks : 1;
    sent += op->kind == LS_OP_COLLECTIVE ? 1e6 * 2 * (n - 1) / n : 0;
    for (uint16_t k = 0; op->kind == LS_OP_P2P && k < op->n_transfers; k++)
      sent += op->transfers[k].is_send ? (double) op->transfers[k].bytes : 0;
  }
  g_autofree char *text = NULL;
  cJSON *root = trace_of (&p.t, &text);
  double window = (double) (p.t.window_end - p.t.window_start) / (double) LS_US;
  LS_CHECK_INT (n_kernels, >=, 6);
  LS_CHECK_NEAR (mean_of (root, 0, "TFLOP/s", "tflop_per_s", window) * window * 1e-6, n_kernels * 2e-3, 2e-2);
  LS_CHECK_NEAR (mean_of (root, 0, "sent to others, GB/s", "gb_per_s", window) * window * 1e3, sent, 2e-2);
  LS_CHECK (sent > 0 && strstr (text, "\"activations\":1073741824")
            && strstr (text, "\"activations\":2147483648"));
  LS_CHECK (strstr (text, "\"bytes in flight\"") != NULL);
  LS_CHECK (strstr (text, ",\"ranks\":") && strstr (text, ",\"busbw_gb_per_s\":"));
  cJSON_Delete (root);
  pipeline_clear (&p);
}

/* Each begins once and ends once, behind that, on each of two ranks. */
static void
micro_batches_begin_and_end (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  g_autofree char *text = NULL;
  cJSON *root = trace_of (&p.t, &text);
  const cJSON *event;
  double open[2][3] = { { 0 } };
  int n = 0;
  cJSON_ArrayForEach (event, cJSON_GetObjectItem (root, "traceEvents")) {
    if (g_strcmp0 (text_of (event, "cat"), "micro-batch") != 0)
      continue;
    const char *id = text_of (cJSON_GetObjectItem (event, "id2"), "local");
    double *at = &open[(int) number_of (event, "pid")][atoi (id)];
    n += is_phase (event, "b") ? 1 : 100;
    if (is_phase (event, "e"))
      LS_CHECK_DOUBLE (number_of (event, "ts"), >, *at);
    *at = number_of (event, "ts");
  }
  LS_CHECK_INT (n, ==, 606);
  cJSON_Delete (root);
  pipeline_clear (&p);
}

/* Of fewer ops than there are the first, in time, of the first ranks; the rest is counted. */
static void
a_large_trace_is_cut (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  g_autofree char *text = NULL, *whole = NULL;
  const LsTraceSize size = { 64, 24 }, all = { 64, 0 };
  cJSON *root = trace_of_size (&p.t, size, &text), *full = trace_of_size (&p.t, all, &whole);
  const cJSON *event;
  int n = 0, n_all = 0;
  cJSON_ArrayForEach (event, cJSON_GetObjectItem (root, "traceEvents"))
    n += is_phase (event, "X") && g_strcmp0 (text_of (event, "cat"), "wait") != 0;
  cJSON_ArrayForEach (event, cJSON_GetObjectItem (full, "traceEvents"))
    n_all += is_phase (event, "X") && g_strcmp0 (text_of (event, "cat"), "wait") != 0;
  LS_CHECK_INT (n, <=, 24);
  LS_CHECK_INT (n, >, 14); /* 7 passes of each rank, and some ops */
  LS_CHECK_INT (ls_trace_chrome_left_out (&p.t, &size), ==, n_all - n);
  LS_CHECK_DOUBLE (number_of (cJSON_GetObjectItem (root, "otherData"), "left_out"), ==, n_all - n);
  LS_CHECK (!strstr (whole, "left_out"));
  LS_CHECK_INT (ls_trace_chrome_left_out (&p.t, &all), ==, 0);
  cJSON_Delete (root);
  cJSON_Delete (full);
  pipeline_clear (&p);
}

/* Pins which send meets which receive. */

static const LsInstance *
instance_of (const Pipeline *p, uint32_t rank, uint32_t span)
{
  return ls_span_instance (&p->t, rank, &p->t.ranks[rank].spans[span]);
}

/* Both ends of a transfer belong to the same micro-batch and direction. */
static void
check_pairs (const Pipeline *p, const GArray *pairs)
{
  for (guint i = 0; i < pairs->len; i++) {
    const LsP2pPair *pair = &g_array_index (pairs, LsP2pPair, i);
    const LsInstance *send = instance_of (p, pair->from, pair->from_span),
                     *receive = instance_of (p, pair->to, pair->to_span);
    LS_CHECK_INT (send->mb, ==, receive->mb);
    LS_CHECK_INT (send->segment / 4, ==, receive->segment / 4);
    LS_CHECK_INT (send->stage + (send->segment < 4 ? 1 : -1), ==, receive->stage);
    LS_CHECK_INT (
        ls_span_op (&p->t, pair->from, &p->t.ranks[pair->from].spans[pair->from_span])->transfers[0].is_send,
        ==, 1);
    LS_CHECK_INT (
        ls_span_op (&p->t, pair->to, &p->t.ranks[pair->to].spans[pair->to_span])->transfers[0].is_send, ==,
        0);
  }
}

/* All 2 * (stages - 1) * micro-batches of a step; with chunks the stages go round
 * the ranks, and with two ranks both neighbours are one. */
static void
check_schedule (const char *schedule, uint32_t pp, uint32_t vpp)
{
  Pipeline p;
  pipeline_init (&p, schedule,
                 (PipelineShape) { pp, vpp, 8, 10 * LS_MS, 20 * LS_MS, 0, 0, 2 * LS_MS, LS_MS, LS_MS });
  g_autoptr (GArray) pairs = ls_p2p_pairs (&p.t);
  LS_CHECK_INT (pairs->len, ==, 2 * (pp * vpp - 1) * 8);
  check_pairs (&p, pairs);
  pipeline_clear (&p);
}

static void
every_transfer_of_1f1b_is_paired (void)
{
  check_schedule ("1f1b", 4, 1);
}
static void
every_transfer_of_interleaved_1f1b_is_paired (void)
{
  check_schedule ("interleaved-1f1b", 4, 3);
}
static void
two_ranks_keep_the_directions_apart (void)
{
  check_schedule ("interleaved-1f1b", 2, 2);
}

/* The window may hold a receive without its send: pairing must not shift. */
static void
missing_spans_do_not_shift_the_pairing (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b",
                 (PipelineShape) { 4, 1, 6, 10 * LS_MS, 20 * LS_MS, 0, 0, 2 * LS_MS, LS_MS, LS_MS });
  LsRankSpans *first = &p.t.ranks[0];
  const uint32_t n_cut = 3; /* two kernels and the first send */
  first->n -= n_cut;
  memmove (first->spans, first->spans + n_cut, first->n * sizeof *first->spans);
  g_autoptr (GArray) pairs = ls_p2p_pairs (&p.t);
  LS_CHECK_INT (pairs->len, ==, 2 * 3 * 6 - 1);
  check_pairs (&p, pairs);
  pipeline_clear (&p);
}

/* The same transfer of the next step is another one. */
static void
steps_are_kept_apart (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b",
                 (PipelineShape) { 2, 1, 1, 10 * LS_MS, 20 * LS_MS, 0, 0, 2 * LS_MS, LS_MS, LS_MS });
  for (uint32_t i = 0; i < p.t.ranks[1].n; i++)
    p.t.ranks[1].spans[i].step = 1;
  g_autoptr (GArray) pairs = ls_p2p_pairs (&p.t);
  LS_CHECK_INT (pairs->len, ==, 0);
  pipeline_clear (&p);
}

LS_TEST_SUITE (LS_TEST (picoseconds_survive), LS_TEST (passes_and_kernels_are_told),
               LS_TEST (arrows_join_slices_forward_in_time), LS_TEST (slices_are_cut_at_the_window),
               LS_TEST (communication_in_flight_is_counted), LS_TEST (counters_add_up),
               LS_TEST (micro_batches_begin_and_end), LS_TEST (a_large_trace_is_cut),
               LS_TEST (every_transfer_of_1f1b_is_paired),
               LS_TEST (every_transfer_of_interleaved_1f1b_is_paired),
               LS_TEST (two_ranks_keep_the_directions_apart),
               LS_TEST (missing_spans_do_not_shift_the_pairing), LS_TEST (steps_are_kept_apart))
