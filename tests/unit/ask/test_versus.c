/* Pins what a captured step next to a plan promises: nothing of either is left out or counted twice, a plan next
 * to itself differs in nothing, parts of the model are told apart on both sides alike, knobs are named where they
 * say otherwise, and messages wait for what they depend on. The step is that of tests/capture/llama.py. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include <lockstep/error.h>

#include "ask/versus.h"
#include "job/assumptions.h"

#define JOB      "model=tests/golden/data/models/small-llama.json cluster=dgx-h100 gpus=8"
#define PLANNED  JOB " software=torchtitan-2025-03"
#define CAPTURED "trace=tests/golden/data/small-llama cluster=dgx-h100"

static LsJobResult *
run (const char *knobs)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) all = g_strsplit (knobs, " ", -1);
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  for (guint pass = 0; pass < 2; pass++) /* a program before what is over its defaults */
    for (guint i = 0; all[i]; i++) {
      g_auto (GStrv) pair = g_strsplit (all[i], "=", 2);
      bool is_file = strstr (pair[1], "tests/") == pair[1];
      g_autofree char *value
          = is_file ? g_build_filename (g_getenv ("LS_DATA_DIR"), pair[1], NULL) : g_strdup (pair[1]);
      if ((strcmp (pair[0], "software") == 0) == (pass == 0))
        LS_CHECK (ls_job_spec_set (&spec, pair[0], value, diags));
    }
  LsJobResult *r = ls_job_spec_run (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  ls_job_spec_clear (&spec);
  return r;
}

static LsVersus *
versus (const LsJobResult *captured, const LsJobResult *planned)
{
  g_autoptr (GError) error = NULL;
  LsVersus *v = ls_versus_new (captured, planned, 0, &error);
  LS_CHECK_NO_ERROR (error);
  return v;
}

/* Of a side: what its program has, op by op. */
static LsVersusSide
all_of (const LsJobResult *r, LsOpTakes takes)
{
  LsVersusSide all = { 0 };
  LsOpPlace at = LS_OP_BEFORE (ls_plan_role (r->plan, 0));
  while (ls_op_next (r->plan, &at)) {
    const LsOp *op = ls_op_at (r->plan, at);
    if (at.instance < r->plan->programs[at.role].n_lead || !ls_op_takes (op->kind, takes))
      continue;
    const LsKernel *k = op->kernel == UINT32_MAX ? NULL : &r->plan->kernels[op->kernel];
    uint64_t n = MAX (op->repeat, 1);
    all.n += takes == LS_TAKES_GPU ? n * MAX (k->n_launches, 1) : 1;
    all.flops += takes == LS_TAKES_GPU ? (double) n * k->flops : 0;
    all.bytes += takes == LS_TAKES_GPU ? (double) n * k->bytes : (double) op->bytes;
  }
  return all;
}

static void
add (LsVersusSide *sum, const LsVersusSide *more)
{
  sum->n += more->n;
  sum->flops += more->flops;
  sum->bytes += more->bytes;
  sum->time += more->time;
}

static bool
is_same (const LsVersusSide *a, const LsVersusSide *b)
{
  return a->n == b->n && fabs (a->flops - b->flops) <= 1e-12 * a->flops
      && fabs (a->bytes - b->bytes) <= 1e-12 * a->bytes;
}

static void
nothing_is_left_out (void)
{
  g_autoptr (LsJobResult) captured = run (CAPTURED), planned = run (PLANNED);
  g_autoptr (LsVersus) v = versus (captured, planned);
  for (guint side = 0; side < LS_N_VERSUS_SIDES; side++) {
    LsVersusSide rows[LS_N_VERSUS] = { 0 }, sections[LS_N_VERSUS] = { 0 }, sites = { 0 }, kernels = { 0 };
    for (guint i = 0; i < v->rows->len; i++) {
      const LsVersusRow *row = &g_array_index (v->rows, LsVersusRow, i);
      add (&rows[row->section], &row->sides[side]);
    }
    for (guint i = 0; i < v->sections->len; i++) {
      const LsVersusSum *sum = &g_array_index (v->sections, LsVersusSum, i);
      add (&sections[sum->section], &sum->sides[side]);
    }
    for (guint i = 0; i < v->sites->len; i++)
      add (&sites, &g_array_index (v->sites, LsVersusSum, i).sides[side]);
    for (guint s = 0; s < LS_N_VERSUS; s++)
      LS_CHECK (is_same (&rows[s], &sections[s]) && rows[s].time == sections[s].time);
    for (guint s = LS_VERSUS_KERNELS; s <= LS_VERSUS_ATTENTION; s++)
      add (&kernels, &rows[s]);
    LS_CHECK (is_same (&kernels, &sites) && kernels.time == sites.time);
    const LsVersusSide of_plan = all_of (v->jobs[side], LS_TAKES_GPU),
                       sent = all_of (v->jobs[side], LS_TAKES_NETWORK);
    LS_CHECK (of_plan.n > 100 && is_same (&kernels, &of_plan));
    LS_CHECK (sent.n > 5 && is_same (&rows[LS_VERSUS_COLLECTIVES], &sent));
    LS_CHECK_NEAR (rows[LS_VERSUS_MEMORY].bytes, (double) v->jobs[side]->report.peak_bytes, 1e-12);
  }
}

static void
a_plan_is_as_itself (void)
{
  g_autoptr (LsJobResult) planned = run (PLANNED);
  g_autoptr (LsVersus) v = versus (planned, planned);
  guint n_calls = 0;
  for (guint i = 0; i < v->rows->len; i++) {
    const LsVersusRow *row = &g_array_index (v->rows, LsVersusRow, i);
    LS_CHECK (!row->differs && row->because->len == 0);
    n_calls += row->section == LS_VERSUS_COLLECTIVES ? (guint) row->sides[0].n : 0;
  }
  LS_CHECK (n_calls > 0 && v->n_calls_alike == n_calls);
}

static const LsVersusSum *
site (const LsVersus *v, LsTag phase, LsSite of)
{
  for (guint i = 0; i < v->sites->len; i++) {
    const LsVersusSum *sum = &g_array_index (v->sites, LsVersusSum, i);
    if (sum->phase == phase && sum->site == of)
      return sum;
  }
  LS_CHECK (false);
  return NULL;
}

static const LsVersusRow *
row (const LsVersus *v, LsVersusSection section, LsTag phase, const char *what)
{
  for (guint i = 0; i < v->rows->len; i++) {
    const LsVersusRow *r = &g_array_index (v->rows, LsVersusRow, i);
    if (r->section == section && r->phase == phase && strcmp (r->what, what) == 0)
      return r;
  }
  printf ("# %s\n", what);
  LS_CHECK (false);
  return NULL;
}

/* Launches of the program's own parts, as one counts them in its source: a norm is one kernel, a layer has seven
 * products and an attention, the MLP adds two kernels forward; the loss casts,
 * has two kernels, and a gradient of one. */
static void
parts_are_told_apart (void)
{
  static const struct {
    LsTag phase;
    LsSite site;
    guint n;
  } counts[] = {
    { LS_TAG_F, LS_SITE_NORM, 5 },         { LS_TAG_F, LS_SITE_MLP, 2 * 5 },
    { LS_TAG_F, LS_SITE_RESIDUAL, 2 * 2 }, { LS_TAG_F, LS_SITE_EMBEDDING, 1 },
    { LS_TAG_F, LS_SITE_HEAD, 1 },         { LS_TAG_F, LS_SITE_LOSS, 4 },
    { LS_TAG_B, LS_SITE_HEAD, 2 },
  };
  g_autoptr (LsJobResult) captured = run (CAPTURED), planned = run (PLANNED);
  g_autoptr (LsVersus) v = versus (captured, planned);
  for (guint i = 0; i < G_N_ELEMENTS (counts); i++) {
    const LsVersusSum *sum = site (v, counts[i].phase, counts[i].site);
    if (sum && !LS_CHECK (sum->sides[LS_VERSUS_CAPTURED].n == counts[i].n))
      printf ("# %s: %u, not %u\n", ls_site_names[counts[i].site].name, (guint) sum->sides[0].n, counts[i].n);
  }
  const LsVersusSum *mlp = site (v, LS_TAG_F, LS_SITE_MLP), *head = site (v, LS_TAG_B, LS_SITE_HEAD);
  LS_CHECK (mlp && mlp->sides[0].n == mlp->sides[1].n && mlp->sides[0].time == mlp->sides[1].time);
  LS_CHECK (head && head->sides[0].n == head->sides[1].n && head->sides[0].flops == head->sides[1].flops);
}

/* Gate and up together in the plan of other kernels: six products a layer for seven, with the same FLOPs. */
static void
what_says_otherwise_is_named (void)
{
  g_autoptr (LsJobResult) captured = run (CAPTURED), planned = run (JOB " dp-kind=fsdp2"),
                          like = run (PLANNED);
  g_autoptr (LsVersus) v = versus (captured, planned), same = versus (captured, like);
  const LsVersusRow *apart = row (v, LS_VERSUS_PRODUCTS, LS_TAG_F, "2816 x 2048 x 1024 bf16"),
                    *joint = row (v, LS_VERSUS_PRODUCTS, LS_TAG_F, "5632 x 2048 x 1024 bf16"),
                    *there = row (same, LS_VERSUS_PRODUCTS, LS_TAG_F, "2816 x 2048 x 1024 bf16");
  if (!apart || !joint || !there)
    return;
  LS_CHECK (apart->sides[0].n == 4 && apart->sides[1].n == 0 && apart->differs);
  LS_CHECK (joint->sides[0].n == 0 && joint->sides[1].n == 2 && joint->differs);
  LS_CHECK_NEAR (apart->sides[0].flops, joint->sides[1].flops, 1e-12);
  LS_CHECK (!there->differs && there->because->len == 0);
  LS_CHECK (apart->because->len > 0
            && strcmp (((const LsAssumption *) apart->because->pdata[0])->key, "kernels") == 0);
}

/* The first layer's parameters may be gathered at once, those of the last only once a layer before was read. */
static void
messages_say_after_what_they_begin (void)
{
  g_autoptr (LsJobResult) captured = run (CAPTURED), planned = run (PLANNED);
  g_autoptr (LsVersus) v = versus (captured, planned);
  const LsVersusRow *scatter = row (v, LS_VERSUS_COLLECTIVES, LS_TAG_B, "reduce-scatter of 43.01 MiB over 8");
  if (scatter) {
    LS_CHECK_STR (scatter->sides[LS_VERSUS_CAPTURED].of, "backward data parallelism 2");
    LS_CHECK_STR (scatter->sides[LS_VERSUS_PLANNED].of, "backward data parallelism 2");
  }
  LS_CHECK (v->n_calls_alike == 8); /* all but that of the norm: 84 bytes captured, 4 planned */
}

static void
another_job_is_refused (void)
{
  g_autoptr (LsJobResult) captured = run (CAPTURED),
                          planned
      = run ("model=tests/golden/data/models/small-llama.json cluster=dgx-h100 gpus=4");
  g_autoptr (GError) ranks = NULL, rank = NULL;
  LS_CHECK (!ls_versus_new (captured, planned, 0, &ranks)
            && g_error_matches (ranks, LS_ERROR, LS_ERROR_CONFLICT));
  LS_CHECK (!ls_versus_new (captured, captured, 8, &rank)
            && g_error_matches (rank, LS_ERROR, LS_ERROR_CONFLICT));
}

LS_TEST_SUITE (LS_TEST (nothing_is_left_out), LS_TEST (a_plan_is_as_itself), LS_TEST (parts_are_told_apart),
               LS_TEST (what_says_otherwise_is_named), LS_TEST (messages_say_after_what_they_begin),
               LS_TEST (another_job_is_refused))
