/* Pins jobs for a program: whose word counts for a knob; what a headroom is; that a sweep for a program
 * ranks only what the writer of its jobs accepts and what leaves the headroom, and that its best is the best
 * of a search made by hand over what the writer accepts. The program is tests/golden/data's. */
#include "small_sweep.h"

#include <math.h>
#include <string.h>

#include "data/jobs/emit.h"
#include "sweep/sweep_state.h"

/* --- whose word counts ---------------------------------------------------------------------------- */

static void
job_init (LsJobSpec *spec)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  ls_job_spec_init (spec);
  LS_CHECK (ls_job_spec_set (spec, "model", "tiny", diags)
            && ls_job_spec_set (spec, "cluster", "pair", diags));
}

static void
set (LsJobSpec *spec, const char *key, const char *value)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (ls_job_spec_set (spec, key, value, diags));
}

static void
a_program_sets_defaults_and_flags_override (void)
{
  LsJobSpec spec;
  job_init (&spec);
  LS_CHECK (spec.strategy.data.overlap);
  set (&spec, "for", "trainer");
  LS_CHECK (!spec.strategy.data.overlap);
  LS_CHECK_INT (spec.strategy.opt.grad_dtype, ==, LS_DTYPE_FP32);
  set (&spec, "grad-dtype", "bf16");
  LS_CHECK_INT (spec.strategy.opt.grad_dtype, ==, LS_DTYPE_BF16);
  ls_job_spec_clear (&spec);
}

/* A default that came after a knob would undo it. */
static void
a_program_after_knobs_is_refused (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsJobSpec spec;
  job_init (&spec);
  set (&spec, "tp", "2");
  LS_CHECK (!ls_job_spec_set (&spec, "for", "trainer", diags));
  LS_CHECK_INT (spec.strategy.tp, ==, 2);
  LS_CHECK (!spec.software);
  ls_job_spec_clear (&spec);
}

/* --- headroom ------------------------------------------------------------------------------------- */

static void
headrooms_are_sizes_or_shares (void)
{
  static const char *const bad[] = { "", "5", "-1GiB", "8 %%", "100%", "nan%", "1e400%", "%", "6GiBs" };
  LsHeadroomAsk ask = { 0 };
  LS_CHECK (ls_headroom_parse ("6GiB", &ask));
  LS_CHECK (ask.is_set && ask.bytes == UINT64_C (6) << 30 && ask.percent <= 0);
  LS_CHECK (ls_headroom_parse ("8%", &ask));
  LS_CHECK (ask.bytes == 0 && fabs (ask.percent - 8) < 1e-12);
  LS_CHECK (ls_headroom_parse ("0", &ask));
  LS_CHECK (ask.is_set && ask.bytes == 0 && ask.percent <= 0);
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    ls_check_impl (!ls_headroom_parse (bad[i], &ask), __FILE__, __LINE__, "taken: \"%s\"", bad[i]);
}

static LsReport *
report_of (LsJobSpec *spec, LsJobResult **ret)
{
  g_autoptr (GError) error = NULL;
  *ret = ls_job_spec_run (spec, &error);
  LS_CHECK_NO_ERROR (error);
  return &(*ret)->report;
}

/* To the byte: what is asked for is left, or the job does not fit. */
static void
a_headroom_is_left_to_the_byte (void)
{
  LsJobResult *r;
  LsJobSpec spec;
  job_init (&spec);
  LsReport *plain = report_of (&spec, &r);
  uint64_t free_bytes = plain->capacity_bytes - plain->needed_bytes;
  LS_CHECK (plain->fits && !plain->headroom.is_asked);
  ls_job_result_free (r);
  for (uint64_t more = 0; more < 2; more++) {
    g_autofree char *size = g_strdup_printf ("%" G_GUINT64_FORMAT "B", free_bytes + more);
    set (&spec, "headroom", size);
    LS_CHECK_INT (report_of (&spec, &r)->fits, ==, more == 0);
    ls_job_result_free (r);
  }
  ls_job_spec_clear (&spec);
}

/* A program that has none of its own says whose it is. */
static void
a_headroom_is_of_the_program_that_runs (void)
{
  const LsHeadroomAsk nothing = { 0 };
  LsSoftwareSpec other = { .program = (char *) "Mine" };
  LsJobResult *r;
  LsJobSpec spec;
  job_init (&spec);
  set (&spec, "software", "trainer");
  LS_CHECK_STR (report_of (&spec, &r)->headroom.program, "Trainer");
  const LsSoftwareSpec *own[] = { NULL, &other, spec.software };
  const char *const expected[] = { NULL, "Mine, as Server has it", "Trainer" }; /* its textbook has none */
  for (guint i = 0; i < G_N_ELEMENTS (own); i++) {
    g_auto (LsHeadroom) h = { 0 };
    ls_headroom_of (&nothing, NULL, own[i], LS_DP_PS, r->hardware, &spec.options.memory, &h);
    LS_CHECK_STR (h.program, expected[i]);
  }
  ls_job_result_free (r);
  ls_job_spec_clear (&spec);
}

/* --- a sweep for a program ------------------------------------------------------------------------ */

#define JOB "model", "tiny", "gpus", "4", "global-batch", "16", "micro-batch", "1,2", "recompute", "none,full"

/* Ranked for the program, and not so little. */
static void
check_ranked (const LsSweepRun *x, const LsSoftwareSpec *software)
{
  const LsSweepReport *report = ls_sweep_run_report (x);
  LS_CHECK_INT (report->best->len, ==, 5);
  for (guint i = 0; i < report->best->len; i++) {
    const LsSweepRow *row = &g_array_index (report->best, LsSweepRow, i);
    g_autoptr (GError) error = NULL;
    LS_CHECK (ls_software_check (software, &x->model, &row->strategy, &error));
    LS_CHECK_NO_ERROR (error);
    LS_CHECK_INT (row->strategy.opt.grad_dtype, ==, LS_DTYPE_FP32);
    LS_CHECK (row->memory_bytes + x->headroom[LS_DP_MEGATRON].bytes <= x->capacity_bytes);
  }
}

/* Of what the writer accepts, one job after the other; LS_TIME_NEVER: none that leaves the headroom. */
static LsTime
search_by_hand (uint64_t *ret_n)
{
  static const uint32_t two[] = { 1, 2 }, degrees[] = { 1, 2, 4 };
  LsTime best = LS_TIME_NEVER;
  for (guint i = 0; i < 3 * 3 * 2 * 2 * 2 * 2 * 2 * 2 * 2; i++) {
    guint k = i;
    LsJobSpec spec;
    job_init (&spec);
    set (&spec, "for", "trainer");
    LsStrategy *s = &spec.strategy;
    s->gpus = 4, s->global_batch = 16;
    s->tp = degrees[k % 3], k /= 3;
    s->pp = degrees[k % 3], k /= 3;
    s->vpp = two[k % 2], k /= 2;
    s->micro_batch = two[k % 2], k /= 2;
    s->zero_stage = k % 2, k /= 2;
    s->sp = k % 2, k /= 2;
    s->mp.p2p = k % 2 ? LS_P2P_BATCHED : LS_P2P_OVERLAPPED, k /= 2;
    s->recompute = k % 2 ? LS_RECOMPUTE_FULL : LS_RECOMPUTE_NONE, k /= 2;
    s->data.overlap = k % 2;
    g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, NULL); /* illegal, refused: nothing */
    *ret_n += r != NULL;
    if (r && r->report.fits)
      best = MIN (best, r->timeline->window_end - r->timeline->window_start);
    ls_job_spec_clear (&spec);
  }
  return best;
}

static void
the_winner_is_that_of_a_search_by_hand (void)
{
  LsSweepSpec spec;
  uint64_t n = 0;
  ls_sweep_spec_init (&spec);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (ls_sweep_spec_set (&spec, "for", "trainer", diags));
  static const char *const knobs[]
      = { JOB, "cluster", "pair", "tp", "1,2,4", "vpp", "1,2", "tp-overlap", "0", "zero", "0,1", NULL };
  for (guint i = 0; knobs[i]; i += 2)
    LS_CHECK (ls_sweep_spec_set (&spec, knobs[i], knobs[i + 1], diags));
  g_autoptr (LsSweepRun) x = run (&spec);
  check_ranked (x, spec.job.software);
  LsTime by_hand = search_by_hand (&n);
  const LsSweepRow *first = &g_array_index (ls_sweep_run_report (x)->best, LsSweepRow, 0);
  LS_CHECK_INT (n, >, 100);
  LS_CHECK_INT (first->step, ==, by_hand);
  ls_sweep_spec_clear (&spec);
}

/* Of layers that do not come out even the writer is asked once they are balanced. */
static void
uneven_layers_are_asked_about_when_balanced (void)
{
  LsSweepSpec spec;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  ls_sweep_spec_init (&spec);
  static const char *const knobs[]
      = { "for",          "trainer", "model",       "tiny-odd", "cluster", "pair", "gpus", "4",
          "global-batch", "24",      "micro-batch", "1",        "pp",      "2,4",  "vpp",  "1",
          "ep",           "1",       "recompute",   "none",     NULL };
  for (guint i = 0; knobs[i]; i += 2)
    LS_CHECK (ls_sweep_spec_set (&spec, knobs[i], knobs[i + 1], diags));
  g_autoptr (LsSweepRun) x = run (&spec);
  const LsSweepReport *report = ls_sweep_run_report (x);
  LS_CHECK_INT (report->best->len, >, 0);
  for (guint i = 0; i < report->best->len; i++) {
    const LsStrategy *s = &g_array_index (report->best, LsSweepRow, i).strategy;
    LS_CHECK (s->layout.n_layers_per_chunk > 0 && ls_software_check (spec.job.software, &x->model, s, NULL));
  }
  ls_sweep_spec_clear (&spec);
}

/* A range of the program gives way to a flag, and to what is listed. */
static void
ranges_of_a_program_give_way (void)
{
  static const struct {
    const char *value;
    guint n;
  } cases[] = { { NULL, 2 }, { "overlapped", 1 }, { "batched,overlapped,scatter-gather", 3 } };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsSweepSpec spec;
    gint stop = 1;
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    ls_sweep_spec_init (&spec);
    spec.stop = &stop;
    LS_CHECK (ls_sweep_spec_set (&spec, "for", "trainer", diags));
    static const char *const knobs[] = { JOB, "cluster", "pair", NULL };
    for (guint k = 0; knobs[k]; k += 2)
      LS_CHECK (ls_sweep_spec_set (&spec, knobs[k], knobs[k + 1], diags));
    if (cases[i].value)
      LS_CHECK (ls_sweep_spec_set (&spec, "p2p", cases[i].value, diags));
    g_autoptr (LsSweepRun) x = run (&spec);
    LS_CHECK_INT (ls_space_n (&spec.space, ls_space_axis ("p2p")), ==, cases[i].n);
    ls_sweep_spec_clear (&spec);
  }
}

/* --- ideas ---------------------------------------------------------------------------------------- */

/* As many different ones as are asked for; what is folded into a row is its idea, and not faster. */
/* "trainer" runs one, "wrapper" says none; said, or of neither, it is as ever. */
static void
a_program_is_data_parallel_in_its_own_way (void)
{
  static const struct {
    const char *software, *dp_kind;
    guint n;
  } rows[] = { { "trainer", NULL, 1 }, { "trainer", "megatron,fsdp2", 2 }, { "wrapper", NULL, 2 } };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    LsSweepSpec spec;
    SPEC_INIT (&spec, "model", "tiny", "cluster", "pair", "gpus", "4", "global-batch", "8", "software",
               rows[i].software, "tp", "1", "pp", "1", "recompute", "none");
    if (rows[i].dp_kind)
      LS_CHECK (ls_sweep_spec_set (&spec, "dp-kind", rows[i].dp_kind, NULL));
    g_autoptr (LsSweepRun) x = run (&spec);
    LS_CHECK_INT (ls_space_n (&spec.space, LS_SPACE_DP_KIND), ==, rows[i].n);
    LS_CHECK (ls_sweep_run_report (x)->counts.simulated > 0);
    ls_sweep_spec_clear (&spec);
  }
}

static void
rows_are_different_ideas (void)
{
  LsSweepSpec spec;
  SPEC_INIT (&spec, SMALL, "tp-overlap", "0,1");
  g_autoptr (LsSweepRun) x = run (&spec);
  const GArray *best = ls_sweep_run_report (x)->best;
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  guint n_also = 0;
  LS_CHECK_INT (best->len, ==, 5);
  for (guint i = 0; i < best->len; i++) {
    const LsSweepRow *row = &g_array_index (best, LsSweepRow, i);
    LS_CHECK (g_hash_table_add (seen, ls_idea_text (&row->strategy)));
    for (guint k = 0; row->also && k < row->also->len; k++) {
      const LsSweepVariant *v = &g_array_index (row->also, LsSweepVariant, k);
      LS_CHECK (v->step >= row->step && *v->change != '\0');
      n_also++;
    }
  }
  LS_CHECK_INT (n_also, >, 2);
  ls_sweep_spec_clear (&spec);
}

static void
chunks_and_batches_are_turned_within_an_idea (void)
{
  LsStrategy a, b;
  ls_strategy_init (&a);
  a.pp = 4, a.schedule = g_strdup ("1f1b");
  ls_strategy_copy (&b, &a);
  b.vpp = 5, b.micro_batch = 2;
  g_free (b.schedule);
  b.schedule = g_strdup ("interleaved-1f1b");
  g_autofree char *x = ls_idea_text (&a), *y = ls_idea_text (&b), *difference = ls_idea_difference (&a, &b);
  LS_CHECK_STR (x, y);
  LS_CHECK_STR (difference, "vpp 5, micro-batch 2");
  b.recompute = LS_RECOMPUTE_FULL;
  g_autofree char *z = ls_idea_text (&b);
  LS_CHECK (strcmp (x, z) != 0);
  ls_strategy_clear (&a);
  ls_strategy_clear (&b);
}

LS_TEST_SUITE_WITH (ls_test_golden_data, NULL, LS_TEST (a_program_sets_defaults_and_flags_override),
                    LS_TEST (a_program_after_knobs_is_refused), LS_TEST (headrooms_are_sizes_or_shares),
                    LS_TEST (a_headroom_is_left_to_the_byte),
                    LS_TEST (a_headroom_is_of_the_program_that_runs),
                    LS_TEST (the_winner_is_that_of_a_search_by_hand),
                    LS_TEST (uneven_layers_are_asked_about_when_balanced),
                    LS_TEST (ranges_of_a_program_give_way),
                    LS_TEST (a_program_is_data_parallel_in_its_own_way), LS_TEST (rows_are_different_ideas),
                    LS_TEST (chunks_and_batches_are_turned_within_an_idea))
