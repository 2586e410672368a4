/* Pins the activations of Korthikanti et al. 2022, layers only, to 2 % (figure 1 in GiB, figure 7 in percent
 * of tensor parallelism alone), on the device clock of simulated steps; and that advice keeps its word: each
 * change that it lists is one that whatif proposes, or several of them, saves what it says when it is run,
 * and leaves too much what it says; the ranking is by that, then by tokens per second. */
#include "ls_test.h"

#include <string.h>

#include <lockstep/error.h>

#include "ask/memory_view.h"
#include "ask/whatif.h"
#include "data/jobs/job_files.h"
#include "data/text/csv.h"
#include "job/job.h"

#define GIB       1073741824.0
#define TOLERANCE 0.02

static void
set (LsJobSpec *spec, const char *key, const char *value)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (ls_job_spec_set (spec, key, value, diags));
}

/* --- Korthikanti et al. ---------------------------------------------------------------- */

enum { NONE, SEQ, SELECTIVE, BOTH, FULL, N_MODES };

static const struct {
  const char *name, *recompute;
  bool sp;
} modes[N_MODES] = {
  { "none", "none", false },           { "seq", "none", true },
  { "selective", "selective", false }, { "seq+selective", "selective", true },
  { "full", "full", false },
};

/* arXiv 2205.05198 as quoted by calculon-ai/calculon@caa4b11f, calculon/llm/validation.py.
 * Micro-batches: as many as fill the pipeline with what the first stage can hold. */
static const struct {
  const char *name, *model, *pp, *vpp, *micro_batch, *global_batch;
  double gib[N_MODES]; /* figure 1; 0: not given */
  double pct[N_MODES]; /* figure 7               */
} rows[] = {
  { "22B",
    "gpt-22b",
    "1",
    "1",
    "4",
    "4",
    { [NONE] = 59.25, [BOTH] = 9.5625 },
    { 100, 66.84, 49.42, 16.18, 7.64 } },
  { "175B",
    "gpt3-175b",
    "8",
    "3",
    "1",
    "16",
    { [NONE] = 66.84375, [BOTH] = 12.3515625 },
    { 100, 62.04, 56.53, 18.49, 8.71 } },
  { "530B",
    "gpt-529.6b",
    "35",
    "3",
    "1",
    "70",
    { [NONE] = 114.0234375, [BOTH] = 23.076171875 },
    { 100, 58.31, 62.04, 20.27, 9.42 } },
  { "1T",
    "gpt-1008b",
    "64",
    "1",
    "1",
    "64",
    { [NONE] = 131.25, [BOTH] = 26.5625 },
    { 100, 58.31, 62.04, 20.27, 9.42 } },
};

static void
init_row (LsJobSpec *spec, size_t row, int mode)
{
  ls_job_spec_init (spec);
  set (spec, "model", rows[row].model);
  set (spec, "cluster", "dgx-a100-80g");
  set (spec, "tp", "8");
  set (spec, "pp", rows[row].pp);
  set (spec, "vpp", rows[row].vpp);
  set (spec, "micro-batch", rows[row].micro_batch);
  set (spec, "global-batch", rows[row].global_batch);
  set (spec, "recompute", modes[mode].recompute);
  set (spec, "sp", modes[mode].sp ? "1" : "0");
  set (spec, "dtype", "fp16");
  set (spec, "grad-dtype", "fp32");
  set (spec, "steps", "1");
  set (spec, "memory-clock", "device");
}

/* What layers of the first stage keep at most. */
static double
kept_gib (size_t row, int mode)
{
  g_autoptr (GError) error = NULL;
  LsJobSpec spec;
  init_row (&spec, row, mode);
  g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  ls_job_spec_clear (&spec);
  return r ? (double) r->memory->classes[0].kept_by_layers / GIB : 0;
}

static void
check_row (size_t row)
{
  double of_tp = kept_gib (row, NONE);
  for (int mode = 0; mode < N_MODES; mode++) {
    double gib = mode == NONE ? of_tp : kept_gib (row, mode);
    LS_CHECK_NEAR (100 * gib / of_tp, rows[row].pct[mode], TOLERANCE);
    if (rows[row].gib[mode] > 0)
      LS_CHECK_NEAR (gib, rows[row].gib[mode], TOLERANCE);
  }
}

static void
activations_are_the_published (void)
{
  check_row (0);
  check_row (1);
}

/* Hundreds of ranks: what forward keeps follows from the order of a stage's program. */
static double
kept_in_order_gib (size_t row, int mode)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsJobSpec spec;
  LsModel model;
  init_row (&spec, row, mode);
  g_autoptr (LsHardware) hardware = ls_hardware_load (spec.cluster, diags);
  if (!LS_CHECK (hardware && ls_model_load (spec.model, &model, NULL, diags)))
    return 0;
  g_autoptr (LsJobResult) r = ls_job_prepare (&model, hardware, 0, &spec.strategy, &error);
  LS_CHECK_NO_ERROR (error);
  g_autoptr (LsMemory) m = r ? ls_memory_new (&(LsMemoryInput) { .plan = r->plan }) : NULL;
  ls_model_clear (&model);
  ls_job_spec_clear (&spec);
  return m ? (double) m->classes[0].kept_by_layers / GIB : 0;
}

static void
activations_of_large_models_are_the_published (void)
{
  for (size_t row = 2; row < G_N_ELEMENTS (rows); row++) {
    double of_tp = kept_in_order_gib (row, NONE), of_both = kept_in_order_gib (row, BOTH);
    LS_CHECK_NEAR (of_tp, rows[row].gib[NONE], TOLERANCE);
    LS_CHECK_NEAR (of_both, rows[row].gib[BOTH], TOLERANCE);
    LS_CHECK_NEAR (100 * of_both / of_tp, rows[row].pct[BOTH], TOLERANCE);
    LS_CHECK_NEAR (100 * kept_in_order_gib (row, FULL) / of_tp, rows[row].pct[FULL], TOLERANCE);
  }
}

static double
number_in (const LsCsv *csv, guint row, const char *column)
{
  return g_ascii_strtod (ls_csv_cell (csv, row, (guint) ls_csv_column (csv, column)), NULL);
}

/* The table above is that of the data. */
static void
the_expected_values_are_those_of_the_data (void)
{
  const char *dir = ls_test_shared_data ();
  if (!dir)
    return;
  g_autofree char *path = g_build_filename (dir, "runs", "memory_korthikanti.csv", NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsCsv) csv = ls_csv_parse (path, NULL, -1, diags);
  guint n = 0;
  for (guint i = 0; csv && i < ls_csv_n_rows (csv); i++)
    for (size_t row = 0; row < G_N_ELEMENTS (rows); row++)
      for (int mode = 0; mode < N_MODES; mode++) {
        if (strcmp (ls_csv_cell (csv, i, (guint) ls_csv_column (csv, "model")), rows[row].name) != 0
            || strcmp (ls_csv_cell (csv, i, (guint) ls_csv_column (csv, "mode")), modes[mode].name) != 0)
          continue;
        bool is_gib = number_in (csv, i, "figure") == 1;
        LS_CHECK_DOUBLE (number_in (csv, i, is_gib ? "activation_GiB" : "activation_pct_of_TP_baseline"), ==,
                         is_gib ? rows[row].gib[mode] : rows[row].pct[mode]);
        n++;
      }
  LS_CHECK_INT (n, ==, 28);
}

/* --- advice ------------------------------------------------------------------------------ */

static void
init_job (LsJobSpec *spec, const char *const knobs[][2], guint n)
{
  ls_job_spec_init (spec);
  set (spec, "model", "gpt-7.5b");
  set (spec, "cluster", "dgx-a100-80g");
  for (guint i = 0; i < n; i++)
    set (spec, knobs[i][0], knobs[i][1]);
  set (spec, "gpus", "8");
}

static LsJobResult *
run_job (LsJobSpec *spec, const char *const knobs[][2], guint n)
{
  g_autoptr (GError) error = NULL;
  init_job (spec, knobs, n);
  LsJobResult *r = ls_job_spec_run (spec, &error);
  LS_CHECK_NO_ERROR (error);
  return r;
}

/* As somebody would who reads the row: "--tp 2 --dp 4", "without --sp". */
static void
append_options (LsJobSpec *spec, const char *change)
{
  g_auto (GStrv) words = g_strsplit (change, " ", -1);
  for (guint i = 0; words[i]; i++) {
    bool is_off = strcmp (words[i], "without") == 0;
    const char *flag = words[i += is_off] + strlen ("--");
    bool has_value = words[i + 1] && words[i + 1][0] != '-' && strcmp (words[i + 1], "without") != 0;
    set (spec, flag, is_off ? "0" : has_value ? words[i + 1] : "1");
    i += has_value;
  }
}

static const LsWhatIfRow *
row_at (const LsWhatIf *w, guint i)
{
  return &g_array_index (w->rows, LsWhatIfRow, i);
}

/* What it leaves of the headroom, where it fits. */
static bool
lacks_what_it_says (const LsReport *r, const LsWhatIfRow *row)
{
  bool is_left = ls_headroom_is_left (&r->headroom, r->needed_bytes, r->capacity_bytes);
  uint64_t lacking = r->fits && !is_left ? r->needed_bytes + r->headroom.bytes - r->capacity_bytes : 0;
  return row->lacking_bytes == lacking;
}

/* The job with its options saves what the row says, and leaves too much what it says, with the job's
 * headroom. */
static void
check_promise (const LsJobSpec *job, const LsWhatIfRow *now, const LsWhatIfRow *row)
{
  LsJobSpec spec;
  g_autoptr (GError) error = NULL;
  ls_job_spec_copy (job, &spec);
  spec.no_notes = true;
  append_options (&spec, row->change);
  g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, &error);
  uint64_t wanted
      = r ? r->report.needed_bytes + (r->report.headroom.is_asked ? r->report.headroom.bytes : 0) : 0;
  ls_check_impl (r && !row->refused && r->report.needed_bytes == row->needed_bytes
                     && r->report.step_time_s == row->step_time_s && r->report.fits == row->fits
                     && row->short_bytes == wanted - MIN (wanted, r->report.capacity_bytes)
                     && row->short_bytes < now->short_bytes && lacks_what_it_says (&r->report, row),
                 __FILE__, __LINE__, "%s: not what was promised", row->change);
  ls_job_spec_clear (&spec);
}

/* Whether the keys of text are those of the change, in their order, and perhaps others behind them. */
static bool
leads_to (const LsChange *change, const char *text)
{
  const char *at = text;
  for (guint i = 0; i < change->settings->len && at; i += 2) {
    g_autofree char *option
        = g_strdelimit (g_strdup_printf ("--%s", (const char *) change->settings->pdata[i]), "_", '-');
    at = strstr (at, "--");
    at = at && g_str_has_prefix (at, option) ? at + strlen (option) : NULL;
  }
  return at != NULL;
}

/* Whether `text` is `so_far` and up to n changes more, each of which whatif proposes for the job that those
 * before it make. */
static bool
is_known (const LsJobSpec *job, LsChange *so_far, const char *text, guint n)
{
  LsJobSpec spec;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  bool is_made = ls_change_make (so_far, job, &spec, diags);
  spec.no_notes = true;
  g_autoptr (LsJobResult) r = is_made ? ls_job_spec_prepare (&spec, NULL) : NULL;
  g_autoptr (GPtrArray) changes = r ? ls_changes_propose (&spec, r) : g_ptr_array_new ();
  bool is_found = false;
  for (guint i = 0; i < changes->len && !is_found; i++) {
    g_autoptr (LsChange) joined = ls_change_join (so_far, changes->pdata[i]);
    g_autofree char *words = ls_change_text (joined);
    is_found = strcmp (words, text) == 0
        || (n > 1 && leads_to (joined, text) && is_known (job, joined, text, n - 1));
  }
  ls_job_spec_clear (&spec);
  return is_found;
}

static bool
is_single (const LsWhatIf *single, const LsWhatIfRow *row)
{
  for (guint i = 0; i < single->rows->len; i++)
    if (strcmp (row_at (single, i)->change, row->change) == 0)
      return LS_CHECK (row_at (single, i)->needed_bytes == row->needed_bytes
                       && row_at (single, i)->step_time_s == row->step_time_s);
  return false;
}

/* Returns how many single changes that cost nothing make the job fit. */
static guint
check_rows (const LsJobSpec *spec, const LsWhatIf *tried, const LsWhatIf *single)
{
  guint n = 0;
  g_autoptr (LsChange) nothing = ls_change_new (NULL, NULL, false);
  for (guint i = 0; i < tried->rows->len; i++) {
    const LsWhatIfRow *row = row_at (tried, i), *before = i > 0 ? row_at (tried, i - 1) : row;
    LS_CHECK (before->short_bytes < row->short_bytes
              || (before->short_bytes == row->short_bytes && before->gain >= row->gain));
    check_promise (spec, &tried->now, row);
    bool is_one = is_single (single, row);
    n += is_one && row->fits && (!row->cost || strcmp (row->cost, "other kernels") == 0);
    if (!LS_CHECK (is_one || is_known (spec, nothing, row->change, LS_ADVICE_MAX_CHANGES)))
      printf ("# %s: not what whatif proposes\n", row->change);
  }
  return n;
}

static void
check_advice (const char *const knobs[][2], guint n, bool is_enough, bool is_simple)
{
  LsJobSpec spec;
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) r = run_job (&spec, knobs, n);
  LS_CHECK (r && !r->report.fits);
  g_autoptr (LsWhatIf) advice = r ? ls_memory_advise (&spec, r, &error) : NULL;
  LS_CHECK_NO_ERROR (error);
  g_autoptr (LsWhatIf) single = r ? ls_what_if_new (&spec, r, 0, 0, NULL, &error) : NULL;
  LS_CHECK_NO_ERROR (error);
  if (advice && single) {
    LS_CHECK_INT (advice->rows->len, >, 0);
    LS_CHECK ((ls_what_if_n_fit (advice) > 0) == is_enough);
    LS_CHECK ((check_rows (&spec, advice, single) > 0) == is_simple);
  }
  ls_job_spec_clear (&spec);
}

/* 120 GB of states and 33 GiB of activations: one change is enough. */
static void
single_changes_keep_their_word (void)
{
  static const char *const knobs[][2] = { { "global-batch", "8" } };
  check_advice (knobs, G_N_ELEMENTS (knobs), true, true);
}

/* With four times the micro-batch none is that needs no other software or machine. */
static void
combinations_keep_their_word (void)
{
  static const char *const knobs[][2] = { { "micro-batch", "4" }, { "global-batch", "32" } };
  check_advice (knobs, G_N_ELEMENTS (knobs), true, false);
}

/* A headroom that leaves less than the workspaces take: what is still too much is said. */
static void
what_is_not_enough_is_told (void)
{
  static const char *const knobs[][2] = { { "global-batch", "8" }, { "headroom", "99.9%" } };
  check_advice (knobs, G_N_ELEMENTS (knobs), false, false);
}

/* Only what the program can run is advised. */
static void
a_program_limits_the_advice (void)
{
  static const char *const knobs[][2]
      = { { "for", "megatron" }, { "micro-batch", "4" }, { "global-batch", "32" } };
  check_advice (knobs, G_N_ELEMENTS (knobs), true, false);
}

static void
a_rank_that_is_not_there_has_no_curve (void)
{
  LsJobSpec spec;
  g_autoptr (GError) error = NULL;
  static const char *const knobs[][2] = { { "tp", "8" } };
  g_autoptr (LsJobResult) r = run_job (&spec, knobs, 1);
  if (r) {
    g_autoptr (GArray) curve = ls_memory_curve_of (r, &spec.options.memory, 7, &error);
    LS_CHECK_NO_ERROR (error);
    LS_CHECK (curve && curve->len > 10);
    LS_CHECK (!ls_memory_curve_of (r, &spec.options.memory, 8, &error));
    LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_USAGE));
  }
  ls_job_spec_clear (&spec);
}

/* --- clocks ------------------------------------------------------------------------------ */

static uint64_t
most_activations (const char *knob, const char *value, const char *clock)
{
  LsJobSpec spec;
  g_autoptr (GError) error = NULL;
  ls_job_spec_init (&spec);
  set (&spec, "model", "llama3.1-8b");
  set (&spec, "cluster", "dgx-h100");
  set (&spec, "gpus", "8");
  set (&spec, "seq", "32768");
  set (&spec, "recompute", "full");
  set (&spec, "steps", "1");
  set (&spec, knob, value);
  set (&spec, "memory-clock", clock);
  g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  ls_job_spec_clear (&spec);
  return r ? ls_memory_fullest (r->memory)->category_peak[LS_MEM_ACTIVATIONS] : 0;
}

/* A host that is far ahead takes no more memory for what the compute stream uses again, such as
 * the buffers of ring attention, or what comes back into a place of its own, such as
 * offloaded activations. */
static void
the_host_does_not_hoard (void)
{
  LS_CHECK_INT (most_activations ("cp", "8", "host"), ==, most_activations ("cp", "8", "device"));
  uint64_t kept = most_activations ("tp", "1", "host");
  LS_CHECK_INT (most_activations ("offload-activations", "1", "host"), <=, kept);
}

static LsClassMemory
of_llama (const char *placeholders)
{
  g_autoptr (GError) error = NULL;
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  set (&spec, "model", "llama3.1-8b");
  set (&spec, "cluster", "dgx-h100");
  set (&spec, "gpus", "2");
  set (&spec, "tp", "2");
  set (&spec, "sp", "1");
  set (&spec, "steps", "1");
  set (&spec, "wgrad-placeholders", placeholders);
  g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  ls_job_spec_clear (&spec);
  LS_CHECK (!r
            || ls_memory_allocated (r->memory)
                == r->memory->classes[0].peak_bytes
                    - r->memory->classes[0].category_peak[LS_MEM_COMM_BUFFERS]);
  return r ? *ls_memory_fullest (r->memory) : (LsClassMemory) { 0 };
}

/* Half of each of the four matrices of a layer (hidden 4096, K and V 1024, MLP 14336), once, for
 * good; half of the head (128256) only in its backward. */
static void
placeholders_stand_for_gradients (void)
{
  LsClassMemory without = of_llama ("0"), with = of_llama ("1");
  uint64_t of_layer = UINT64_C (4096) * (4096 + 2 * 1024 + 4096 + 3 * 14336);
  LS_CHECK_INT (with.at_begin[LS_MEM_WORKSPACE] - without.at_begin[LS_MEM_WORKSPACE], ==, of_layer);
  LS_CHECK_INT (with.category_peak[LS_MEM_UNSHARDED] - without.category_peak[LS_MEM_UNSHARDED], ==,
                UINT64_C (4096) * 128256);
  LS_CHECK_INT (with.at_end[LS_MEM_UNSHARDED], ==, with.at_begin[LS_MEM_UNSHARDED]);
}

LS_TEST_SUITE (LS_TEST (activations_are_the_published),
               LS_TEST (activations_of_large_models_are_the_published),
               LS_TEST (the_expected_values_are_those_of_the_data), LS_TEST (single_changes_keep_their_word),
               LS_TEST (combinations_keep_their_word), LS_TEST (what_is_not_enough_is_told),
               LS_TEST (a_program_limits_the_advice), LS_TEST (a_rank_that_is_not_there_has_no_curve),
               LS_TEST (the_host_does_not_hoard), LS_TEST (placeholders_stand_for_gradients))
