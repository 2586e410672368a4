/* Pins what whatif promises: the options of a change, appended to the job's, give the step and the memory
 * that its row says, to the last bit; the ranking is by tokens per second; a bubble that a smaller
 * micro-batch closes gains what the formula says; threads change nothing; a machine of links and GPUs that a
 * cluster names as its successor is tried; a trace leaves nothing to change; the order of a file leaves all
 * that does not need another order; a job that says that it has no pipeline and no copies is proposed some;
 * changes are joined. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include <glib/gstdio.h>

#include <lockstep/error.h>

#include "ask/whatif.h"
#include "data/datadir.h"
#include "data/jobs/job_files.h"
#include "job/knobs.h"
#include "show/run/write_run.h"

static void
set (LsJobSpec *spec, const char *key, const char *value)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (!LS_CHECK (ls_job_spec_set (spec, key, value, diags)))
    printf ("# --%s %s\n", key, value);
}

/* knobs: key, value, ..., NULL */
static void
init_job (LsJobSpec *spec, const char *const *knobs)
{
  ls_job_spec_init (spec);
  for (; *knobs; knobs += 2)
    set (spec, knobs[0], knobs[1]);
}

static LsWhatIf *
what_if (const LsJobSpec *spec, guint n_threads, LsJobResult **ret_now)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) now = ls_job_spec_run (spec, &error);
  LS_CHECK_NO_ERROR (error);
  LsWhatIf *w = now ? ls_what_if_new (spec, now, 0, n_threads, NULL, &error) : NULL;
  LS_CHECK_NO_ERROR (error);
  if (ret_now)
    *ret_now = g_steal_pointer (&now);
  return w;
}

/* As somebody would who reads the row: "--tp 4 --dp 2", "--sp 0", "--set grad_fusion=1". */
static void
append_options (LsJobSpec *spec, const char *change)
{
  g_auto (GStrv) words = g_strsplit (change, " ", -1);
  for (guint i = 0; words[i]; i++) {
    const char *flag = words[i] + strlen ("--");
    bool has_value = words[i + 1] && words[i + 1][0] != '-';
    g_auto (GStrv) pair = strcmp (flag, "set") == 0 ? g_strsplit (words[i + 1], "=", 2) : NULL;
    set (spec, pair ? pair[0] : flag, pair ? pair[1] : has_value ? words[i + 1] : "1");
    i += has_value;
  }
}

static void
check_row (const char *const *knobs, const LsWhatIfRow *row)
{
  LsJobSpec spec;
  g_autoptr (GError) error = NULL;
  init_job (&spec, knobs);
  append_options (&spec, row->change);
  g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, &error);
  if (!LS_CHECK (!r == (row->refused != NULL)))
    printf ("# %s: %s\n", row->change, row->refused ? row->refused : error->message);
  if (r && !row->refused
      && !LS_CHECK (r->report.step_time_s == row->step_time_s && r->report.needed_bytes == row->needed_bytes))
    printf ("# %s: %.17g s, %" G_GUINT64_FORMAT " bytes; the row says %.17g s, %" G_GUINT64_FORMAT " bytes\n",
            row->change, r->report.step_time_s, r->report.needed_bytes, row->step_time_s, row->needed_bytes);
  ls_job_spec_clear (&spec);
}

static void
check_ranking (const LsWhatIf *w)
{
  for (guint i = 0; i + 1 < w->rows->len; i++) {
    const LsWhatIfRow *a = &g_array_index (w->rows, LsWhatIfRow, i), *b = a + 1;
    LS_CHECK (a->refused ? b->refused != NULL : b->refused || a->gain >= b->gain);
    LS_CHECK (a->refused || a->gain == a->tokens_per_s / w->now.tokens_per_s - 1);
  }
}

/* A pipeline, one with experts, and sharded data parallelism: every kind of change occurs. */
static const char *const jobs[][24] = {
  { "model", "gpt-1.7b:layers=8", "cluster", "dgx-a100-80g", "gpus", "16", "tp", "2", "pp", "2", "sp", "1",
    "global-batch", "32", NULL },
  { "model", "llama3.1-8b:layers=4", "cluster", "dgx-h100", "nodes", "2", "dp-kind", "fsdp2", "global-batch",
    "32", NULL },
  { "model",
    "gpt-1.7b:layers=16",
    "cluster",
    "dgx-1-v100",
    "gpus",
    "8",
    "dtype",
    "fp16",
    "pp",
    "4",
    "vpp",
    "2",
    "schedule",
    "interleaved-1f1b",
    "dp",
    "2",
    "global-batch",
    "32",
    "micro-batch",
    "2",
    NULL },
  { "model", "mixtral-8x7b:layers=4", "cluster", "dgx-h100", "gpus", "16", "tp", "2", "sp", "1", "ep", "4",
    "dtype", "fp8", "global-batch", "32", NULL },
  { "model", "gpt-1.7b:layers=4", "cluster", "dgx-a100-80g", "gpus", "8", "zero", "3", "offload",
    "parameters", "recompute", "full", "tp", "2", "global-batch", "32", NULL },
};

static void
the_options_of_a_row_do_what_it_says (void)
{
  for (guint j = 0; j < G_N_ELEMENTS (jobs); j++) {
    LsJobSpec spec;
    init_job (&spec, jobs[j]);
    g_autoptr (LsWhatIf) w = what_if (&spec, 2, NULL);
    ls_job_spec_clear (&spec);
    if (!w)
      continue;
    LS_CHECK (w->rows->len > 10);
    check_ranking (w);
    for (guint i = 0; i < w->rows->len; i++)
      check_row (jobs[j], &g_array_index (w->rows, LsWhatIfRow, i));
  }
}

static const LsWhatIfRow *
row_of (const LsWhatIf *w, const char *change)
{
  for (guint i = 0; i < w->rows->len; i++)
    if (strcmp (g_array_index (w->rows, LsWhatIfRow, i).change, change) == 0)
      return &g_array_index (w->rows, LsWhatIfRow, i);
  LS_CHECK_STR (change, "proposed");
  return NULL;
}

/* More micro-batches fill a pipeline: (p - 1) / m of bubble with m of them, half that with twice as
 * many, less what smaller kernels lose. */
static void
a_smaller_micro_batch_closes_the_bubble (void)
{
  LsJobSpec spec;
  init_job (&spec,
            (const char *const[]) { "model", "llama3.1-8b:layers=32,vocab=1024", "cluster", "dgx-h100",
                                    "gpus", "4", "pp", "4", "micro-batch", "2", "global-batch", "8",
                                    "schedule", "1f1b", NULL });
  g_autoptr (LsWhatIf) w = what_if (&spec, 1, NULL);
  ls_job_spec_clear (&spec);
  const LsWhatIfRow *row = w ? row_of (w, "--micro-batch 1") : NULL;
  if (!row)
    return;
  double most = (1 + 3.0 / 4) / (1 + 3.0 / 8) - 1;
  LS_CHECK (row->gain > 0.7 * most && row->gain <= most);
}

static void
threads_change_nothing (void)
{
  LsJobSpec spec;
  init_job (&spec, jobs[0]);
  g_autoptr (LsWhatIf) one = what_if (&spec, 1, NULL), three = what_if (&spec, 3, NULL);
  ls_job_spec_clear (&spec);
  g_autofree char *a = one ? ls_what_if_to_json (one) : NULL, *b = three ? ls_what_if_to_json (three) : NULL;
  LS_CHECK (a && b);
  LS_CHECK_STR (a, b);
}

static void
a_successor_is_tried (void)
{
  LsJobSpec spec;
  init_job (&spec,
            (const char *const[]) { "model", "llama3.1-8b:layers=4", "cluster",
                                    "dgx-h100:successors=[\"dgx-b200\"]", "nodes", "2", "tp", "8", NULL });
  g_autoptr (LsWhatIf) w = what_if (&spec, 1, NULL);
  ls_job_spec_clear (&spec);
  const LsWhatIfRow *row = w ? row_of (w, "--cluster dgx-b200 --gpus 16") : NULL;
  LS_CHECK (row && !row->refused && row->gain > 0.2);
}

/* Its program is fixed: changes are of the machine, and of what the host pays. */
static void
of_a_trace_the_machine_changes (void)
{
  LsJobSpec spec;
  g_autoptr (GError) error = NULL;
  init_job (&spec, (const char *const[]) { "trace", "two-ranks", "cluster", "dgx-h100", NULL });
  g_autoptr (LsJobResult) now = ls_job_spec_run (&spec, &error);
  g_autoptr (LsWhatIf) w = now ? ls_what_if_new (&spec, now, 0, 1, NULL, &error) : NULL;
  for (guint i = 0; w && i < w->rows->len; i++) {
    const char *change = g_array_index (w->rows, LsWhatIfRow, i).change;
    LS_CHECK (strstr (change, "--cluster") || strstr (change, "host"));
  }
  LS_CHECK (w && w->rows->len > 0);
  ls_job_spec_clear (&spec);
}

/* A pipeline and copies are proposed also to a job that says that it has none. */
static void
what_a_job_has_not_can_be_proposed (void)
{
  LsJobSpec spec;
  init_job (&spec,
            (const char *const[]) { "model", "gpt-1.7b:layers=4", "cluster", "dgx-a100-80g", "gpus", "8",
                                    "tp", "8", "attention", "flash", "schedule", "none", "p2p", "none",
                                    "dp-kind", "none", "global-batch", "32", NULL });
  g_autoptr (LsWhatIf) w = what_if (&spec, 1, NULL);
  ls_job_spec_clear (&spec);
  static const char *const expected[]
      = { "--pp 2 --tp 4 --schedule 1f1b --p2p auto", "--dp 2 --tp 4 --dp-kind auto",
          "--cp 2 --tp 4 --dp-kind auto", "--offload-activations",
          "--offload optimizer --dp-kind deepspeed --zero 2" };
  for (guint i = 0; w && i < G_N_ELEMENTS (expected); i++) {
    const LsWhatIfRow *row = row_of (w, expected[i]);
    if (row && !LS_CHECK (!row->refused))
      printf ("# %s: %s\n", row->change, row->refused);
  }
}

/* Norms and activations are computed again for little: with the inside of attention where that keeps scores,
 * without it where it is flash attention, which frees nothing; not where they are already, nor beside
 * adapters, whose layers run again whole. For Megatron-LM those that it can run again: of a dense model norms
 * and MLPs. Sets that the job runs again already are not proposed. */
static void
cheap_recomputation_is_proposed (void)
{
  static const struct {
    const char *attention, *recompute, *parts, *lora, *expected, *program;
  } rows[] = {
    { "flash", "none", "", "0", "--recompute selective --recompute-parts norm", "megatron" },
    { "flash", "selective", "norm", "0", "--recompute selective --recompute-parts mlp", "megatron" },
    { "flash", "none", "", "0", "--recompute selective --recompute-parts norm,activation" },
    { "flash", "full", "", "0", "--recompute selective --recompute-parts norm,activation" },
    { "unfused", "none", "", "0", "--recompute selective --recompute-parts core,norm,activation" },
    { "unfused", "selective", "", "0", "--recompute selective --recompute-parts core,norm,activation" },
    { "flash", "selective", "norm,activation", "0", "--recompute selective --recompute-parts core,norm,mlp" },
    { "flash", "selective", "core,norm,activation,mlp", "0",
      "--recompute selective --recompute-parts keep-qkv,keep-attention" },
    { "flash", "none", "", "8", NULL },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    bool has_parts = *rows[i].parts != '\0';
    const char *key = rows[i].program ? "for" : "seq", *value = rows[i].program ? rows[i].program : "2048";
    LsJobSpec spec;
    init_job (&spec,
              (const char *const[]) { key, value, "model", "gpt-1.7b:layers=2", "cluster", "dgx-h100", "gpus",
                                      "2", "global-batch", "4", "attention", rows[i].attention, "recompute",
                                      rows[i].recompute, "lora-rank", rows[i].lora,
                                      has_parts ? "recompute-parts" : NULL, rows[i].parts, NULL });
    g_autoptr (LsWhatIf) w = what_if (&spec, 1, NULL);
    ls_job_spec_clear (&spec);
    const LsWhatIfRow *row = NULL;
    for (guint k = 0; w && k < w->rows->len && !row; k++) {
      const LsWhatIfRow *r = &g_array_index (w->rows, LsWhatIfRow, k);
      row = strstr (r->change, "--recompute-parts") ? r : NULL;
    }
    LS_CHECK_STR (row ? row->change : "", rows[i].expected ? rows[i].expected : "");
    LS_CHECK (!row || !row->refused);
  }
}

/* The later one counts where both set something; what they take is said once. */
static void
changes_join (void)
{
  g_autoptr (LsChange) a = ls_change_new ("layout", "other kernels", false),
                       b = ls_change_new ("offloading", "memory of the host", true);
  ls_change_set (a, "tp", "%u", 4);
  ls_change_set (a, "dp", "%u", 2);
  ls_change_set (b, "zero", "3");
  ls_change_set (b, "dp", "%u", 1);
  ls_change_need (b, "other kernels");
  g_autoptr (LsChange) joined = ls_change_join (a, b), reversed = ls_change_join (b, a);
  g_autofree char *text = ls_change_text (joined), *key = ls_change_key (joined),
                  *other = ls_change_key (reversed);
  LS_CHECK_STR (text, "--tp 4 --dp 1 --zero 3");
  LS_CHECK_STR (joined->idea, "layout; offloading");
  LS_CHECK_STR (joined->cost, "memory of the host; other kernels");
  LS_CHECK (joined->needs_more && reversed->needs_more && !a->needs_more);
  LS_CHECK (strcmp (key, other) != 0); /* dp 1, dp 2 */
  ls_change_set (b, "dp", "%u", 2);
  g_autoptr (LsChange) same = ls_change_join (a, b), again = ls_change_join (b, a);
  g_autofree char *one = ls_change_key (same), *two = ls_change_key (again);
  LS_CHECK_STR (one, two);
}

/* The order of 1f1b on 2 ranks with 4 micro-batches. */
#define ORDER "0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n"

static bool
keeps_the_order (const char *change)
{
  static const char *const fixed[]
      = { "--schedule ", "--pp ", "--vpp ", "--dp ", "--micro-batch ", "--global-batch " };
  for (guint i = 0; i < G_N_ELEMENTS (fixed); i++)
    if (strstr (change, fixed[i]))
      return false;
  return true;
}

static void
the_order_of_a_file_leaves_what_it_does_not_fix (void)
{
  static const char *const left[]
      = { "--cp 2 --tp 1",
          "--sp",
          "--recompute full",
          "--dp-overlap 0",
          "--dtype fp16",
          "--attention flash",
          "--host-launch 0us --host-comm 0us",
          "--cluster dgx-h100:node.nics.link.bandwidth=100GB/s,node.pcie.link.bandwidth=126GB/s",
          "--cluster dgx-b200 --gpus 16" };
  g_autofree char *folder = g_dir_make_tmp ("lockstep-XXXXXX", NULL),
                  *path = g_build_filename (folder, "order.csv", NULL);
  LS_CHECK (g_file_set_contents (path, ORDER, -1, NULL));
  const char *const knobs[]
      = { "model", "gpt-1.7b:layers=8", "cluster", "dgx-h100",     "gpus", "16",    "tp", "2", "pp",
          "2",     "schedule",          "1f1b",    "global-batch", "16",   "order", path, NULL };
  LsJobSpec spec;
  init_job (&spec, knobs);
  g_autoptr (LsWhatIf) w = what_if (&spec, 2, NULL);
  ls_job_spec_clear (&spec);
  if (!w)
    return;
  LS_CHECK (w->left_out != NULL);
  for (guint i = 0; i < w->rows->len; i++) {
    const LsWhatIfRow *row = &g_array_index (w->rows, LsWhatIfRow, i);
    if (!LS_CHECK (keeps_the_order (row->change))
        || (row->refused && !LS_CHECK (!strstr (row->refused, path))))
      printf ("# %s: %s\n", row->change, row->refused);
    check_row (knobs, row);
  }
  for (guint i = 0; i < G_N_ELEMENTS (left); i++)
    row_of (w, left[i]);
  g_remove (path);
  g_rmdir (folder);
}

/* torch.compile of torchtitan's blocks, and nobody else's kernels. */
static void
other_kernels_of_the_program_are_tried (void)
{
  static const char *const knobs[]
      = { "software",     "torchtitan", "model", "llama3.1-8b:layers=4", "cluster", "dgx-h100", "gpus", "8",
          "global-batch", "8",          NULL };
  LsJobSpec spec;
  init_job (&spec, knobs);
  LsWhatIf *w = what_if (&spec, 1, NULL);
  guint n = 0;
  if (LS_CHECK (w != NULL)) {
    row_of (w, "--reshard-after-forward 0");
    const LsWhatIfRow *row = row_of (w, "--kernels torchtitan-2025-03-compile");
    if (LS_CHECK (row != NULL))
      check_row (knobs, row);
    for (guint i = 0; i < w->rows->len; i++)
      n += g_str_has_prefix (g_array_index (w->rows, LsWhatIfRow, i).change, "--kernels");
  }
  LS_CHECK_INT (n, ==, 1);
  ls_what_if_free (w);
  ls_job_spec_clear (&spec);
}

/* A list that names one which is not there would never be proposed. */
static void
variants_are_of_lists_that_there_are (void)
{
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_KERNELS);
  guint n = 0;
  for (guint i = 0; i < entries->len; i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsRecipes *list = ls_recipes_load (((const LsDataEntry *) entries->pdata[i])->path, diags);
    LsRecipes *other = list && list->variant_of ? ls_recipes_load (list->variant_of, diags) : NULL;
    ls_check_impl (list && (!list->variant_of || other), __FILE__, __LINE__, "%s",
                   ((const LsDataEntry *) entries->pdata[i])->name);
    n += other != NULL;
    ls_recipes_unref (other);
    ls_recipes_unref (list);
  }
  LS_CHECK_INT (n, >, 0);
}

/* Parameters that stay behind the forward are freed, and those that are freed stay (above). */
static void
a_switch_is_turned_from_where_it_is (void)
{
  static const char *const knobs[]
      = { "model", "gpt-1.7b:layers=1",     "cluster", "dgx-h100",     "gpus", "2", "dp-kind",
          "fsdp2", "reshard-after-forward", "0",       "global-batch", "2",    NULL };
  LsJobSpec spec;
  init_job (&spec, knobs);
  g_autoptr (LsWhatIf) w = what_if (&spec, 1, NULL);
  ls_job_spec_clear (&spec);
  const LsWhatIfRow *row = w ? row_of (w, "--reshard-after-forward 1") : NULL;
  if (LS_CHECK (row && !row->refused))
    check_row (knobs, row);
}

LS_TEST_SUITE (LS_TEST (the_options_of_a_row_do_what_it_says),
               LS_TEST (a_smaller_micro_batch_closes_the_bubble), LS_TEST (threads_change_nothing),
               LS_TEST (a_successor_is_tried), LS_TEST (what_a_job_has_not_can_be_proposed),
               LS_TEST (cheap_recomputation_is_proposed), LS_TEST (changes_join),
               LS_TEST (a_switch_is_turned_from_where_it_is),
               LS_TEST (other_kernels_of_the_program_are_tried),
               LS_TEST (variants_are_of_lists_that_there_are), LS_TEST (of_a_trace_the_machine_changes),
               LS_TEST (the_order_of_a_file_leaves_what_it_does_not_fix))
