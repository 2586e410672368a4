/* Pins sweeps: what is refused at a glance is refused by the rules; pruning and the number of threads change
 * nothing; every configuration that was simulated takes the same picoseconds by itself. Small jobs of
 * tests/golden/data. */
#include "ls_test.h"

#include <inttypes.h>
#include <string.h>

#include "data/text/csv.h"
#include "job/knobs.h"
#include "show/answers.h"
#include "small_sweep.h"

static void
check_rows (const GArray *a, const GArray *b)
{
  LS_CHECK_INT (a->len, ==, b->len);
  for (guint i = 0; i < MIN (a->len, b->len); i++) {
    const LsSweepRow *x = &g_array_index (a, LsSweepRow, i), *y = &g_array_index (b, LsSweepRow, i);
    LS_CHECK_INT (x->step, ==, y->step);
    LS_CHECK_INT (x->memory_bytes, ==, y->memory_bytes);
    LS_CHECK_STR (x->knobs, y->knobs);
  }
}

static void
pruning_changes_no_result (void)
{
  LsSweepSpec on, off;
  SPEC_INIT (&on, SMALL);
  SPEC_INIT (&off, SMALL, "prune", "off");
  g_autoptr (LsSweepRun) a = run (&on), b = run (&off);
  const LsSweepReport *x = ls_sweep_run_report (a), *y = ls_sweep_run_report (b);
  check_rows (x->best, y->best);
  LS_CHECK_INT (x->best->len, ==, 5);
  LS_CHECK_INT (x->counts.pruned, >, 0);
  LS_CHECK_INT (y->counts.pruned, ==, 0);
  LS_CHECK_INT (x->counts.pruned + x->counts.simulated, ==, y->counts.simulated);
  LS_CHECK_INT (y->counts.enumerated, ==, y->counts.illegal + y->counts.infeasible + y->counts.simulated);
  ls_sweep_spec_clear (&on);
  ls_sweep_spec_clear (&off);
}

/* Smaller moments make smaller checkpoints, so what is best is not always the fastest step. */
#define GOALS                                                                                                \
  "gpus", "2,4", "global-batch", "16,32", "moment-dtype", "fp32,bf16", "reliability", "lab", "gpu-hour", "2"

/* What is within the limit of its group would not have been left out by the best of all bounds, its own step. */
static void
check_limits (LsSweepRun *x)
{
  for (guint i = 0; i < x->groups->len; i++) {
    const Group *g = &g_array_index (x->groups, Group, i);
    g_autoptr (GPtrArray) done = sweep_ranking (x, g);
    for (guint k = 0; k < done->len; k++) {
      const Candidate *c = done->pdata[k];
      LS_CHECK_INT (c->key, ==, c->step);
      if (sweep_paced (c) <= g->limit)
        LS_CHECK_INT (c->key, <=, sweep_step_limit (x, c));
      else if (sweep_paced (c) > 1.000001 * g->limit)
        LS_CHECK (sweep_cannot_win (x, c));
    }
  }
}

/* Returns how often a slower step stands before a faster one. */
static guint
check_objective (const char *name, const char *top)
{
  const char *tokens = strcmp (name, "goodput") != 0 ? "tokens" : NULL;
  LsSweepSpec on, off;
  SPEC_INIT (&on, SMALL, GOALS, "top", top, "objective", name, tokens, "1T");
  SPEC_INIT (&off, SMALL, GOALS, "top", top, "prune", "off", "objective", name, tokens, "1T");
  g_autoptr (LsSweepRun) a = run (&on), b = run (&off);
  const GArray *best = ls_sweep_run_report (a)->best;
  guint n = 0;
  check_rows (best, ls_sweep_run_report (b)->best);
  check_limits (a);
  LS_CHECK_INT (ls_sweep_run_report (a)->counts.pruned, >, 0);
  for (guint k = 1; k < best->len; k++) {
    const LsSweepRow *first = &g_array_index (best, LsSweepRow, k - 1), *row = first + 1;
    LS_CHECK (first->value <= row->value);
    n += first->strategy.gpus == row->strategy.gpus
        && first->strategy.global_batch == row->strategy.global_batch && first->step > row->step;
  }
  ls_sweep_spec_clear (&on);
  ls_sweep_spec_clear (&off);
  return n;
}

/* The best of all of its GPUs and batch by the objective is there, whatever was left out. */
static void
check_first (const char *name)
{
  const char *tokens = strcmp (name, "goodput") != 0 ? "tokens" : NULL;
  LsSweepSpec one, all;
  SPEC_INIT (&one, SMALL, GOALS, "top", "1", "objective", name, tokens, "1T");
  SPEC_INIT (&all, SMALL, GOALS, "top", "1000", "prune", "off", "objective", name, tokens, "1T");
  g_autoptr (LsSweepRun) a = run (&one), b = run (&all);
  const GArray *found = ls_sweep_run_report (a)->groups, *known = ls_sweep_run_report (b)->groups;
  for (guint i = 0; i < known->len; i++)
    LS_CHECK_STR (g_array_index (found, LsSweepGroup, i).first->knobs,
                  g_array_index (known, LsSweepGroup, i).first->knobs);
  ls_sweep_spec_clear (&one);
  ls_sweep_spec_clear (&all);
}

static void
objectives_lose_none_to_pruning (void)
{
  static const char *const names[] = { "goodput", "time-to-loss", "cost-to-loss" };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    LS_CHECK_INT (check_objective (names[i], "3"), >, 0);
    check_objective (names[i], "1");
    check_first (names[i]);
  }
}

/* 2^20 tokens in small batches, 2^14 a step, critical 2^15: 1.5 times as many, in 96 steps. Nothing fails. */
static void
a_loss_takes_steps_times_their_time (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, SMALL, "objective", "cost-to-loss", "tokens", "1048576", "critical-batch", "32768",
             "reliability", "lab:causes=[]", "gpu-hour", "3", "top", "1");
  g_autoptr (LsSweepRun) x = run (&spec);
  const LsSweepRow *row = &g_array_index (ls_sweep_run_report (x)->best, LsSweepRow, 0);
  double time_s = 96 * ls_time_to_s (row->step);
  LS_CHECK_NEAR (row->to_loss.steps, 96, 0);
  LS_CHECK_NEAR (row->to_loss.tokens, 1.5 * 1048576, 0);
  LS_CHECK_NEAR (row->to_loss.goodput, 1, 0);
  LS_CHECK_NEAR (row->to_loss.time_s, time_s, 1e-12);
  LS_CHECK_NEAR (row->to_loss.usd, 4 * 3 * time_s / 3600, 1e-12);
  LS_CHECK_NEAR (row->value, row->to_loss.usd, 0);
  ls_sweep_spec_clear (&spec);
}

/* Less is saved where less learns, and by FSDP, whose fp32 weights are the master weights too: 12 bytes a
 * parameter in the place of 14. */
static void
goodput_is_of_what_is_saved (void)
{
  static const char *const less[][3] = { { "fsdp2", "3", "8" }, { "fsdp2", "3", "0" }, { "ddp", "0", "0" } };
  double goodput[G_N_ELEMENTS (less)] = { 0 };
  for (guint i = 0; i < G_N_ELEMENTS (less); i++) {
    LsSweepSpec spec;
    SPEC_INIT (&spec, SMALL, "objective", "goodput", "tp", "1", "pp", "1", "reliability", "lab", "top", "1",
               "dp-kind", less[i][0], "zero", less[i][1], "lora-rank", less[i][2]);
    g_autoptr (LsSweepRun) r = run (&spec);
    const GArray *best = ls_sweep_run_report (r)->best;
    if (LS_CHECK_INT (best->len, ==, 1))
      goodput[i] = g_array_index (best, LsSweepRow, 0).to_loss.goodput;
    ls_sweep_spec_clear (&spec);
  }
  LS_CHECK (goodput[0] > goodput[1] && goodput[1] > goodput[2]);
}

/* tiny has flash attention, whose core keeps no scores: without a word about parts, norms and activations
 * run again. */
static void
selective_recomputation_is_of_something (void)
{
  LsSweepSpec none, core, parts, unfused;
  SPEC_INIT (&none, SMALL, "prune", "off");
  SPEC_INIT (&core, SMALL, "prune", "off", "recompute", "none,selective", "recompute-parts", "core");
  SPEC_INIT (&parts, SMALL, "prune", "off", "recompute", "none,selective");
  SPEC_INIT (&unfused, SMALL, "prune", "off", "recompute", "none,selective", "attention", "unfused");
  g_autoptr (LsSweepRun) a = run (&none), b = run (&core), c = run (&parts), d = run (&unfused);
  const LsSweepReport *x = ls_sweep_run_report (a), *y = ls_sweep_run_report (b);
  g_autofree char *list = ls_sweep_run_list (c), *cores = ls_sweep_run_list (d);
  check_rows (x->best, y->best);
  LS_CHECK_INT (y->counts.simulated, ==, x->counts.simulated);
  LS_CHECK_INT (ls_sweep_run_report (c)->counts.simulated, ==, 2 * x->counts.simulated);
  LS_CHECK_INT (ls_sweep_run_report (d)->counts.simulated, ==, 2 * x->counts.simulated);
  LS_CHECK (strstr (list, "--recompute-parts norm,activation") != NULL
            && strstr (cores, "norm,activation") == NULL);
  LS_CHECK_INT (y->counts.enumerated, ==, y->counts.illegal + y->counts.infeasible + y->counts.simulated);
  ls_sweep_spec_clear (&none);
  ls_sweep_spec_clear (&core);
  ls_sweep_spec_clear (&parts);
  ls_sweep_spec_clear (&unfused);
}

static void
threads_change_no_byte (void)
{
  g_autofree char *first = NULL;
  const char *const threads[] = { "1", "3" };
  for (guint i = 0; i < 2; i++) {
    LsSweepSpec spec;
    SPEC_INIT (&spec, SMALL, "threads", threads[i]);
    spec.pareto = true;
    g_autoptr (LsSweepRun) x = run (&spec);
    LS_CHECK_INT (x->report.counts.simulated, >, LS_SWEEP_WAVE);
    g_autofree char *list = ls_sweep_run_list (x), *json = ls_sweep_to_json (ls_sweep_run_report (x));
    g_autofree char *both = g_strconcat (json, list, NULL);
    if (i == 0)
      first = g_steal_pointer (&both);
    else
      LS_CHECK_STR (first, both);
    ls_sweep_spec_clear (&spec);
  }
}

/* "--tp 2 --sp ...", as one job. */
static LsJobResult *
run_alone (const char *model, const char *knobs)
{
  LsJobSpec spec;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) words = g_strsplit (knobs, " ", -1);
  ls_job_spec_init (&spec);
  LS_CHECK (ls_job_spec_set (&spec, "model", model, diags)
            && ls_job_spec_set (&spec, "cluster", "pair", diags));
  for (guint i = 0; words[i]; i++) {
    bool has_value = words[i + 1] && !g_str_has_prefix (words[i + 1], "--");
    LS_CHECK (ls_job_spec_set (&spec, words[i] + 2, has_value ? words[i + 1] : "1", diags));
    i += has_value;
  }
  LsJobResult *r = ls_job_spec_run (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  ls_job_spec_clear (&spec);
  return r;
}

static uint64_t
needed_alone (const char *model, const char *knobs)
{
  g_autoptr (LsJobResult) r = run_alone (model, knobs);
  return r ? r->report.needed_bytes : 0;
}

/* Of a line of the list: "ps,bytes,\"--tp 2 --sp ...\"". */
static LsTime
step_alone (const char *model, const char *line)
{
  g_auto (GStrv) cells = g_strsplit (line, "\"", -1);
  g_autoptr (LsJobResult) r = run_alone (model, cells[1]);
  return r ? r->timeline->window_end - r->timeline->window_start : 0;
}

/* The bytes of a row are the peak that `run` says, or there are none and the lower bound stands apart. */
static void
listed_bytes_are_the_peak_or_none (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, SMALL, "zero", "1");
  g_autoptr (LsSweepRun) x = run (&spec);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *list = ls_sweep_run_list (x);
  g_autoptr (LsCsv) csv = ls_csv_parse ("list", list, -1, diags);
  guint n_open = 0;
  LS_CHECK (csv && ls_csv_column (csv, "p2p") > 0 && ls_csv_column (csv, "grad_dtype") > 0);
  for (guint i = 0; csv && i < ls_csv_n_rows (csv); i++) {
    const char *bytes = ls_csv_cell (csv, i, 1), *knobs = ls_csv_cell (csv, i, 2),
               *is = ls_csv_cell (csv, i, 3);
    bool is_open = strcmp (is, "at least") == 0;
    LS_CHECK (is_open ? *bytes == '\0' : strcmp (is, "peak") == 0);
    n_open += is_open;
    uint64_t needed = needed_alone ("tiny", knobs),
             told = g_ascii_strtoull (ls_csv_cell (csv, i, 4), NULL, 10);
    if (is_open)
      LS_CHECK_INT (told, <=, needed);
    else
      LS_CHECK_INT (g_ascii_strtoull (bytes, NULL, 10), ==, needed);
  }
  LS_CHECK_INT (n_open, >, 0);
  ls_sweep_spec_clear (&spec);
}

/* With all else but the order of results: --timing alone differs from run to run. */
static void
timing_stands_apart (void)
{
  for (int has_timing = 0; has_timing < 2; has_timing++) {
    LsSweepSpec spec;
    SPEC_INIT (&spec, SMALL, "zero", "1");
    spec.has_timing = has_timing;
    g_autoptr (LsSweepRun) x = run (&spec);
    g_autofree char *json = ls_sweep_to_json (ls_sweep_run_report (x)),
                    *text = ls_sweep_to_text (ls_sweep_run_report (x));
    LS_CHECK_INT (strstr (json, "wall_s") != NULL, ==, has_timing);
    LS_CHECK_INT (strstr (json, "simulate_s") != NULL, ==, has_timing);
    LS_CHECK_INT (strstr (text, "Took ") != NULL, ==, has_timing);
    ls_sweep_spec_clear (&spec);
  }
}

/* What nothing was pruned of, has an exact rank. */
static void
without_pruning_ranks_are_exact (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, SMALL, "prune", "off", "top", "1");
  g_autoptr (LsSweepRun) x = run (&spec);
  g_autofree char *text = ls_sweep_to_text (ls_sweep_run_report (x));
  LS_CHECK (strstr (text, "The rule of thumb (TP in the node, PP across, DP the rest) is number")
            && !strstr (text, "at best"));
  ls_sweep_spec_clear (&spec);
}

static void
listed_jobs_take_the_same_picoseconds (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, SMALL, "zero", "1");
  g_autoptr (LsSweepRun) x = run (&spec);
  g_autofree char *list = ls_sweep_run_list (x);
  g_auto (GStrv) lines = g_strsplit (list, "\n", -1);
  LS_CHECK_INT (g_strv_length (lines), >, 10);
  for (guint i = 1; i + 1 < g_strv_length (lines); i += 5)
    LS_CHECK_INT (step_alone ("tiny", lines[i]), ==, g_ascii_strtoll (lines[i], NULL, 10));
  ls_sweep_spec_clear (&spec);
}

/* What the run refuses, as its states find no room in the host's memory, is counted as illegal. */
static void
what_a_run_refuses_is_illegal (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, "model", "tiny", "cluster", "pair:node.cpu.memory_size=100MiB", "gpus", "4",
             "global-batch", "8", "micro-batch", "1", "tp", "1", "pp", "1", "dp-kind", "deepspeed", "zero",
             "1,2", "offload", "none,optimizer", "recompute", "none");
  g_autoptr (LsSweepRun) x = run (&spec);
  const LsSweepReport *r = ls_sweep_run_report (x);
  LS_CHECK_INT (r->counts.enumerated, ==, 4);
  LS_CHECK_INT (r->counts.illegal, ==, 2);
  LS_CHECK_INT (r->counts.simulated + r->counts.pruned, ==, 2);
  ls_sweep_spec_clear (&spec);
}

/* An implementation of attention that takes the time of another one is not compared with it; what all jobs
 * run by themselves stays. "pair" was measured with none. */
static void
attention_without_times_is_not_compared (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, "model", "tiny", "cluster", "pair", "gpus", "4", "global-batch", "8", "micro-batch", "1",
             "tp", "1", "pp", "1", "dp-kind", "megatron", "zero", "1", "recompute", "none", "attention",
             "flash", "attention_kernel", "auto,fa2,fa3");
  g_autoptr (LsSweepRun) x = run (&spec);
  const LsSweepReport *r = ls_sweep_run_report (x);
  LS_CHECK_INT (r->counts.enumerated, ==, 3);
  LS_CHECK_INT (r->counts.illegal, ==, 2);
  ls_sweep_spec_clear (&spec);
}

/* A number of nodes stands for all of their GPUs. */
static void
nodes_are_swept_whole (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, "model", "tiny", "nodes", "2", "global-batch", "8", "micro-batch", "1", "tp", "1", "pp",
             "1", "recompute", "none");
  g_autoptr (LsSweepRun) x = run (&spec);
  const LsSweepReport *r = ls_sweep_run_report (x);
  LS_CHECK_INT (r->best->len, >, 0);
  for (guint i = 0; i < r->best->len; i++)
    LS_CHECK (strstr (g_array_index (r->best, LsSweepRow, i).knobs, "--gpus 4 ") != NULL);
  ls_sweep_spec_clear (&spec);
}

/* Experts that are not spread over ranks may still be whole on each rank of tp: that is another
 * configuration, and not the same again. What says nothing is tried once. */
static void
only_what_makes_a_difference_is_tried (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, "model", "tiny-moe", "gpus", "2", "global-batch", "8", "micro-batch", "1", "tp", "2",
             "pp", "1", "ep", "1", "etp", "1,2", "cp-kind", "ring,ulysses", "recompute", "none", "sp", "1",
             "tp-overlap", "0", "zero", "1");
  spec.no_prune = true;
  g_autoptr (LsSweepRun) x = run (&spec);
  const LsSweepReport *r = ls_sweep_run_report (x);
  LS_CHECK_INT (r->counts.enumerated, ==, 2);
  LS_CHECK_INT (r->counts.simulated, ==, 2);
  ls_sweep_spec_clear (&spec);
}

/* --- ends ---------------------------------------------------------------------------------- */

static void
what_was_stopped_says_so (void)
{
  LsSweepSpec spec;
  gint stop = 1;
  SPEC_INIT (&spec, SMALL);
  spec.stop = &stop;
  g_autoptr (LsSweepRun) x = run (&spec);
  LS_CHECK (x->report.is_interrupted);
  LS_CHECK_INT (x->report.best->len, ==, 0);
  ls_sweep_spec_clear (&spec);
}

static void
bad_ranges_are_refused (void)
{
  const char *const bad[][2] = { { "tp", "1,x" },     { "tp", "" },         { "schedule", "1f1b,nope" },
                                 { "zero", "1,4@8" }, { "prune", "maybe" }, { "top", "0" },
                                 { "pue", "0.5" } };
  LsSweepSpec spec;
  ls_sweep_spec_init (&spec);
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LS_CHECK (!ls_sweep_spec_set (&spec, bad[i][0], bad[i][1], diags));
    LS_CHECK_INT (ls_diag_list_n (diags), ==, 1);
  }
  ls_sweep_spec_clear (&spec);
}

/* The layers of the first are those of its job, and it says them. */
static void
layers_are_an_axis (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, "model", "tiny-odd", "gpus", "4", "global-batch", "24", "micro-batch", "1", "pp", "4",
             "vpp", "1", "schedule", "1f1b", "zero", "0", "dp-kind", "auto", "tp", "1", "ep", "1",
             "recompute", "none", "prune", "off", "layers-per-chunk",
             "2x3,1/auto/0,4,3,0/balanced/2x2,1/2,4,1,0");
  g_autoptr (LsSweepRun) x = run (&spec);
  const LsSweepReport *r = ls_sweep_run_report (x);
  LS_CHECK_INT (r->counts.simulated, ==, 4); /* balanced is auto; 2x2,1 is of too few */
  LS_CHECK_INT (r->counts.illegal, ==, 1);
  for (guint i = 0; i < r->best->len; i++) {
    const LsSweepRow *row = &g_array_index (r->best, LsSweepRow, i);
    LS_CHECK (strstr (row->knobs, " --layers-per-chunk ") != NULL);
    g_autofree char *line = g_strdup_printf ("%" PRId64 ",0,\"%s\"", row->step, row->knobs);
    LS_CHECK_INT (step_alone ("tiny-odd", line), ==, row->step);
  }
  ls_sweep_spec_clear (&spec);
  LsSweepSpec even; /* whatever "balanced" finds, a layout is there once */
  SPEC_INIT (&even, "model", "tiny-odd", "gpus", "4", "global-batch", "24", "micro-batch", "1", "pp", "1,3",
             "vpp", "1,3", "schedule", "1f1b,interleaved-1f1b", "zero", "0", "dp-kind", "auto", "tp", "1",
             "ep", "1", "recompute", "none", "prune", "off", "layers-per-chunk", "auto/balanced");
  even.top = 100;
  g_autoptr (LsSweepRun) y = run (&even);
  const GArray *rows = ls_sweep_run_report (y)->best;
  for (guint i = 0; i < rows->len; i++)
    for (guint k = 0; k < i; k++)
      LS_CHECK (strcmp (g_array_index (rows, LsSweepRow, i).knobs, g_array_index (rows, LsSweepRow, k).knobs)
                != 0);
  ls_sweep_spec_clear (&even);
}

typedef struct {
  guint n;
  double step_s;
  char *what;
} Told;

/* Of one group: each is faster than all before. */
static void
hear (double step_s, const char *what, gpointer data)
{
  Told *told = data;
  LS_CHECK (told->n == 0 || step_s < told->step_s);
  told->n++;
  told->step_s = step_s;
  g_free (told->what);
  told->what = g_strdup (what);
}

static void
the_last_that_is_told_is_the_best (void)
{
  static const char *const threads[] = { "1", "3" };
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++) {
    Told told = { 0 };
    LsSweepSpec spec;
    SPEC_INIT (&spec, SMALL, "threads", threads[i]);
    spec.progress.best = hear;
    spec.progress.best_data = &told;
    g_autoptr (LsSweepRun) x = run (&spec);
    const LsSweepRow *best = &g_array_index (ls_sweep_run_report (x)->best, LsSweepRow, 0);
    g_autofree char *words = ls_knobs_summary (&best->strategy, &x->model);
    LS_CHECK_INT (told.n, >, 1); /* the rule of thumb, and better ones */
    LS_CHECK_DOUBLE (told.step_s, ==, ls_time_to_s (best->step));
    LS_CHECK_STR (told.what, words);
    g_free (told.what);
    ls_sweep_spec_clear (&spec);
  }
}

LS_TEST_SUITE_WITH (ls_test_golden_data, NULL, LS_TEST (layers_are_an_axis),
                    LS_TEST (the_last_that_is_told_is_the_best), LS_TEST (pruning_changes_no_result),
                    LS_TEST (objectives_lose_none_to_pruning), LS_TEST (a_loss_takes_steps_times_their_time),
                    LS_TEST (goodput_is_of_what_is_saved), LS_TEST (selective_recomputation_is_of_something),
                    LS_TEST (threads_change_no_byte), LS_TEST (listed_jobs_take_the_same_picoseconds),
                    LS_TEST (what_was_stopped_says_so), LS_TEST (listed_bytes_are_the_peak_or_none),
                    LS_TEST (timing_stands_apart), LS_TEST (without_pruning_ranks_are_exact),
                    LS_TEST (bad_ranges_are_refused), LS_TEST (what_a_run_refuses_is_illegal),
                    LS_TEST (attention_without_times_is_not_compared), LS_TEST (nodes_are_swept_whole),
                    LS_TEST (only_what_makes_a_difference_is_tried))
