/* Pins: what `trace export` writes is the job. Its replay gives the same bytes as the
 * job itself, in every output; on another GPU it gives what the job gives there; more
 * replicas of a trace are the job with more replicas; and the file grows with what ranks
 * do, not with their number. Simulates real models on real clusters. */
#include "asked.h"

#include <glib/gstdio.h>

/* All that a run can print or write. */
typedef struct {
  char *json, *text, *chrome, *csv;
} Outputs;

static void
outputs_clear (Outputs *o)
{
  char *texts[] = { o->json, o->text, o->chrome, o->csv };
  for (size_t i = 0; i < G_N_ELEMENTS (texts); i++)
    g_free (texts[i]);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Outputs, outputs_clear)

/* What was written there, which is removed. */
static char *
taken (const char *path)
{
  char *text = NULL;
  LS_CHECK (g_file_get_contents (path, &text, NULL, NULL));
  g_unlink (path);
  return text;
}

static bool
run (const char *job, const char *folder, Outputs *ret)
{
  g_autofree char *chrome = g_build_filename (folder, "chrome", NULL),
                  *csv = g_build_filename (folder, "csv", NULL);
  g_autofree char *options = g_strdup_printf ("%s show-placement - chrome-trace %s csv %s", job, chrome, csv);
  g_autoptr (LsAnswer) answer = asked ("run", options);
  if (!answer)
    return false;
  *ret = (Outputs) { .json = ls_answer_format (answer, LS_FORM_JSON, NULL),
                     .text = ls_answer_format (answer, LS_FORM_TEXT, NULL),
                     .chrome = taken (chrome),
                     .csv = taken (csv) };
  return true;
}

static void export(const char *job, const char *path)
{
  g_autofree char *options = g_strdup_printf ("action export output %s %s", path, job);
  g_autoptr (LsAnswer) answer = asked ("trace", options);
}

/* Without the lines that say whence an assumption is, what to type for another one, and where ranks are: a
 * trace has it from itself. */
static char *
without_reasons (const char *text)
{
  g_auto (GStrv) lines = g_strsplit (text ? text : "", "\n", -1);
  GString *out = g_string_new (NULL);
  bool is_reason = false;
  for (char **line = lines; *line; line++) {
    is_reason = g_str_has_prefix (*line, "rests on ") || (is_reason && **line != '\0');
    if (!is_reason && !strstr (*line, "\"why\": ") && !strstr (*line, "\"instead\": ")
        && !strstr (*line, "\"block\"") && !strstr (*line, "\"as in its file\""))
      g_string_append_printf (out, "%s\n", *line);
  }
  return g_string_free (out, FALSE);
}

static void
check_same (const Outputs *a, const Outputs *b, const char *what)
{
  const char *names[] = { "JSON", "placement or summary", "Chrome trace", "spans" };
  const char *x[] = { a->json, a->text, a->chrome, a->csv };
  const char *y[] = { b->json, b->text, b->chrome, b->csv };
  for (size_t i = 0; i < G_N_ELEMENTS (names); i++) {
    bool has_reasons = i < 2;
    g_autofree char *left = has_reasons ? without_reasons (x[i]) : g_strdup (x[i]),
                    *right = has_reasons ? without_reasons (y[i]) : g_strdup (y[i]);
    ls_check_impl (x[i] && strcmp (left, right) == 0, __FILE__, __LINE__, "%s: %s differs", what, names[i]);
  }
}

/* Exports `job` on `from`, replays on `to` with further knobs, and compares with
 * `direct` there. */
static void
check_replay (const char *job, const char *from, const char *to, const char *further, const char *direct)
{
  g_autofree char *folder = g_dir_make_tmp ("lockstep-XXXXXX", NULL);
  g_autofree char *path = g_build_filename (folder, "exported.json", NULL);
  g_autofree char *exported = g_strdup_printf ("cluster %s %s", from, job);
  g_autofree char *replayed = g_strdup_printf ("cluster %s trace %s%s", to, path, further);
  g_autofree char *run_there = g_strdup_printf ("cluster %s %s", to, direct);
  g_auto (Outputs) a = { 0 }, b = { 0 };
  export(exported, path);
  if (run (run_there, folder, &a) && run (replayed, folder, &b))
    check_same (&a, &b, exported);
  g_unlink (path);
  LS_CHECK_INT (g_rmdir (folder), ==, 0);
}

/* --- the tests ------------------------------------------------------------------------ */

static const struct {
  const char *cluster, *job;
} jobs[] = {
  { "dgx-a100-80g", "model gpt-1.7b gpus 1" },
  { "dgx-a100-80g", "model gpt-1.7b gpus 8 tp 2 pp 2" },
  { "dgx-a100-80g", "model gpt-3.6b gpus 16 tp 2 sp 1 zero 1 micro-batch 2 global-batch 32" },
  { "dgx-a100-80g", "model gpt-7.5b gpus 8 tp 4 pp 2 recompute full dtype fp16 grad-dtype fp32" },
  { "dgx-h100", "model llama3.1-8b gpus 8 tp 2 pp 2 vpp 2 p2p overlapped" },
  { "dgx-a100-80g", "strategy ddp model gpt-1.7b gpus 8" },
  { "dgx-a100-80g", "model gpt-18.4b gpus 16 tp 8 pp 2 vpp 4 sp 1 recompute selective p2p scatter-gather" },
  { "dgx-a100-80g", "model gpt-1.7b nodes 4 gpus 8 pp 4 grad-norm 0 layers-per-chunk 5,7,7,5 dp-overlap 0" },
  { "dgx-h100", "model llama3.1-70b tp 8 pp 4 vpp 5 global-batch 8 micro-batch 2" },
  { "a100-80g-ib800",
    "model gpt3-175b tp 8 pp 8 vpp 3 sp 1 recompute selective global-batch 16 bucket-params 1000000" },
};

static void
a_replay_gives_the_same_bytes (void)
{
  for (size_t i = 0; i < G_N_ELEMENTS (jobs); i++)
    check_replay (jobs[i].job, jobs[i].cluster, jobs[i].cluster,
                  strstr (jobs[i].job, "nodes 4") ? " nodes 4" : "", jobs[i].job);
}

static void
on_another_gpu_kernels_are_costed_again (void)
{
  for (size_t i = 1; i < G_N_ELEMENTS (jobs); i += G_N_ELEMENTS (jobs) - 2) {
    g_autofree char *job = g_strconcat ("attention-kernel fa2 kernels megatron-core-fa2 ", jobs[i].job, NULL);
    check_replay (job, "dgx-a100-80g", "dgx-h100", "", job);
  }
}

static void
more_replicas_are_the_job_with_more_replicas (void)
{
  check_replay ("model gpt-1.7b gpus 8 tp 2 pp 2", "dgx-a100-80g", "dgx-a100-80g", " dp 8",
                "model gpt-1.7b gpus 32 tp 2 pp 2");
}

static gsize
size_of_trace (const char *dp)
{
  g_autofree char *folder = g_dir_make_tmp ("lockstep-XXXXXX", NULL);
  g_autofree char *path = g_build_filename (folder, "exported.json", NULL), *text = NULL;
  g_autofree char *job
      = g_strdup_printf ("model gpt3-175b cluster dgx-a100-80g tp 8 pp 8 micro-batch 1 dp %s", dp);
  gsize n = 0;
  export(job, path);
  LS_CHECK (g_file_get_contents (path, &text, &n, NULL));
  g_unlink (path);
  g_rmdir (folder);
  return n;
}

static void
the_file_does_not_grow_with_ranks (void)
{
  gsize small = size_of_trace ("2"), large = size_of_trace ("16"); /* 128 and 1,024 ranks */
  LS_CHECK_INT (large, <, small + 1000);
  LS_CHECK_INT (large, <, 2000000);
}

static void
a_trace_has_fixed_the_rest (void)
{
  check_fails ("run", "trace two-ranks", LS_ERROR_USAGE);
  check_fails ("run", "trace two-ranks cluster dgx-h100 model gpt-1.7b", LS_ERROR_USAGE);
  check_fails ("run", "trace two-ranks cluster dgx-h100 tp 2", LS_ERROR_USAGE);
  check_fails ("run", "trace two-ranks cluster dgx-h100 strategy ddp", LS_ERROR_USAGE);
  check_fails ("run", "trace two-ranks cluster dgx-h100 dp 1", LS_ERROR_CONFLICT);
  check_fails ("run", "trace late-rank cluster dgx-h100 dp 8", LS_ERROR_CONFLICT);
  check_fails ("run", "trace 1f1b-four-stages cluster dgx-h100 dp 2", LS_ERROR_CONFLICT);
  check_fails ("run", "trace no-such-trace cluster dgx-h100", LS_ERROR_INPUT);
  check_fails ("run", "trace two-ranks cluster dgx-h100 nodes 1 dp 16", LS_ERROR_CONFLICT);
}

LS_TEST_SUITE (LS_TEST (a_replay_gives_the_same_bytes), LS_TEST (on_another_gpu_kernels_are_costed_again),
               LS_TEST (more_replicas_are_the_job_with_more_replicas),
               LS_TEST (the_file_does_not_grow_with_ranks), LS_TEST (a_trace_has_fixed_the_rest))
