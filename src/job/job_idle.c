/* job/job_idle.c — knobs that were set and make no difference, in words. */
#include "job/job_steps.h"

#include <math.h>
#include <string.h>

#include "compute/around.h"
#include "data/jobs/job_files.h"
#include "data/jobs/imported.h"
#include "data/text/field.h"
#include "data/traces/traces.h"
#include "job/softwares.h"
#include "schedules/sched.h"
#include "strategy/strategy.h"

typedef struct {
  const LsJobSpec *spec;
  const LsJobResult *job;
  const LsHardware *hardware;
  LsStrategy blank; /* what knobs are by default */
  char *plan;       /* of the job, as text: made when it is asked for */
} Search;

/* --- the job without a knob --- */

static GHashTable *
said_but (GHashTable *said, const LsField *knob)
{
  GHashTable *rest = g_hash_table_new (g_str_hash, g_str_equal);
  GHashTableIter keys;
  gpointer key;
  if (said)
    for (g_hash_table_iter_init (&keys, said); g_hash_table_iter_next (&keys, &key, NULL);)
      if (strcmp (key, knob->key) != 0)
        g_hash_table_add (rest, key);
  return rest;
}

/* As the spec gives it, but for one knob, which is as the software that it names has it. */
static void
strategy_without (const Search *x, const LsField *knob, LsStrategy *ret_strategy)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  const LsSoftwareSpec *named = x->spec->software;
  const LsStrategy *usual = named ? &named->defaults : &x->blank;
  ls_strategy_init (ret_strategy);
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    g_autofree char *value
        = f->file_only ? NULL : ls_field_text (f, f == knob ? usual : &x->spec->strategy, NULL);
    if (value)
      ls_field_set_text (ls_strategy_fields, ret_strategy, f->key, value, diags);
  }
  ls_strategy_lend_own (ret_strategy, usual);
  g_autoptr (GHashTable) said = said_but (x->spec->said, knob);
  ls_softwares_settle (x->spec->software, x->hardware, said, ret_strategy);
}

static LsMesh
mesh_of (const LsJobResult *r)
{
  return (LsMesh) { r->strategy.tp, r->strategy.cp, r->strategy.dp, r->strategy.pp };
}

/* Whether GEMMs launch a block for each SM, if not of some kinds of nodes then maybe of others. */
static bool
takes_second_waves (const LsHardware *h)
{
  LsGemms gemms = ls_around_gemms (&h->calibration.around, h->spec.gpu.persistent_gemms, false);
  return gemms == LS_GEMMS_PERSISTENT || ls_cluster_spec_n_kinds (&h->spec) > 1;
}

/* What GEMMs are told of SMs that communication will hold makes a difference to those that launch a block for
 * each SM, or where something of it was measured (exec/replay/kernel_run.c). */
static bool
heeds_margins (const LsHardware *h)
{
  const LsAround *a = &h->calibration.around;
  LsGemms gemms = ls_around_gemms (a, h->spec.gpu.persistent_gemms, false);
  double saved = ls_around_lost (a, gemms) - ls_around_told (a, gemms);
  return takes_second_waves (h) || a->priority_wait > 0 || fabs (saved) > 0;
}

/* Of what the GPUs heed, but for who does it. */
static char *
plan_text (const Search *x, const LsJobResult *r)
{
  const LsTraceHead head
      = { .name = "", .source = "", .no_margins = !heeds_margins (x->hardware), .no_ranks = true };
  return ls_trace_format (r->plan, &head, NULL);
}

/* An order that is searched for costs more than the answer is worth; an order from a file, kernels of another
 * implementation, and what an allocator does at the limit are not in the plan. Another batch is always
 * another plan. */
static bool
can_compare (const Search *x, const LsField *f)
{
  static const char *const others[]
      = { "attention_kernel", "cuda_allocator", "dynamic_gemms", "global_batch", NULL };
  const LsSched *sched = ls_sched_find (x->job->strategy.schedule);
  return !x->spec->order && !(sched && ls_sched_is_searched (sched)) && !g_strv_contains (others, f->key);
}

/* NULL: it is none. On another mesh ranks do something else, and it has no plan. */
static LsJobResult *
job_without (const Search *x, const LsField *f)
{
  LsStrategy without;
  strategy_without (x, f, &without);
  g_autoptr (LsJobResult) r = ls_job_settle_beside (x->job, x->hardware, x->spec->n_nodes, &without, NULL);
  ls_strategy_clear (&without);
  if (!r)
    return NULL;
  const LsMesh mesh = mesh_of (r), own = mesh_of (x->job);
  bool is_same_mesh = memcmp (&mesh, &own, sizeof mesh) == 0;
  return !is_same_mesh || ls_job_lower (r, x->hardware, NULL) ? g_steal_pointer (&r) : NULL;
}

/* Plans of other sizes have other texts, which are long. */
static bool
has_same_sizes (const LsPlan *a, const LsPlan *b)
{
  bool is_same = a->n_ranks == b->n_ranks && a->n_segments == b->n_segments && a->n_roles == b->n_roles
      && a->n_kernels == b->n_kernels && a->n_comms == b->n_comms;
  for (uint32_t s = 0; is_same && s < a->n_segments; s++)
    is_same = a->segments[s].n_ops == b->segments[s].n_ops;
  for (uint32_t p = 0; is_same && p < a->n_roles; p++)
    is_same = a->programs[p].n_instances == b->programs[p].n_instances;
  return is_same;
}

static bool
has_same_plan (Search *x, const LsJobResult *without)
{
  if (!without->plan || !has_same_sizes (without->plan, x->job->plan)
      || !ls_plan_has_same_ranks (without->plan, x->job->plan))
    return false;
  g_autofree char *text = plan_text (x, without);
  if (!x->plan)
    x->plan = plan_text (x, x->job);
  return text && g_strcmp0 (text, x->plan) == 0;
}

/* Why the value makes no difference; NULL: it makes one, or is what the knob would be anyway. */
static const char *
find_reason (Search *x, const LsField *f, const char *value)
{
  const char *why = strcmp (f->key, "dynamic_gemms") == 0 && !takes_second_waves (x->hardware)
      ? "GEMMs of this accelerator take no second wave"
      : ls_strategy_idle (&x->job->strategy, &x->job->model, f->key);
  g_autoptr (LsJobResult) without = can_compare (x, f) ? job_without (x, f) : NULL;
  if (!without)
    return why;
  g_autofree char *anyway = ls_field_text (f, &without->strategy, NULL);
  if (anyway && g_ascii_strcasecmp (anyway, value) == 0) /* "1F1B" is 1f1b */
    return NULL;
  bool is_other_program
      = g_strcmp0 (without->strategy.program.software, x->job->strategy.program.software) != 0;
  if (is_other_program
      && !has_same_plan (x, without)) /* the way to be data parallel says whose kernels run */
    return NULL;
  return why ? why : has_same_plan (x, without) ? "every rank does the same without it" : NULL;
}

/* --- what the host pays --- */

static bool
has_op_of (const LsPlan *plan, LsHostCost cost)
{
  for (uint32_t s = 0; s < plan->n_segments; s++)
    for (uint32_t o = 0; o < plan->segments[s].n_ops; o++)
      if (plan->segments[s].ops[o].host == (int) cost)
        return true;
  return false;
}

/* NULL also where the host is merely fast enough to hide what it pays. */
static const char *
find_host_reason (const LsJobResult *job, const LsField *f)
{
  if (job->strategy.launch.is_compiled)
    return "a step is one executable, whose ops the host does not issue";
  if (f->kind != LS_FIELD_TIME)
    return NULL;
  LsHostCost cost = (LsHostCost) ((f->offset - offsetof (LsStrategy, launch.host)) / sizeof (LsTime));
  if (has_op_of (job->plan, cost))
    return NULL;
  return cost == LS_HOST_BATCH ? "it needs --set batch_sync=1" : "the host makes no such call here";
}

/* --- notes --- */

/* What a launch file says is said in words of its program, or is what its program does by itself. */
static bool
is_of_launch_file (const LsJobSpec *spec, const LsField *f, const char *value)
{
  const LsImport *from = spec->from;
  if (!from || !g_hash_table_contains (from->strategy_said, f->key))
    return false;
  g_autofree char *there = ls_field_text (f, &from->strategy, NULL);
  return g_strcmp0 (there, value) == 0;
}

static void
note_if_idle (Search *x, const LsField *f, GPtrArray *notes)
{
  g_autofree char *value = ls_field_text (f, &x->spec->strategy, NULL),
                  *usual = ls_field_text (f, &x->blank, NULL);
  bool is_said = x->spec->said && g_hash_table_contains (x->spec->said, f->key);
  if (!is_said || !value || g_strcmp0 (value, usual) == 0)
    return;
  bool is_theirs = is_of_launch_file (x->spec, f, value);
  g_autofree char *theirs = is_theirs ? ls_launch_option_of (x->spec->from, f->key) : NULL;
  if (is_theirs && !theirs)
    return;
  bool is_host = strcmp (f->topic, "host") == 0;
  const char *why = is_host ? find_host_reason (x->job, f) : find_reason (x, f, value);
  if (!why)
    return;
  bool is_time = f->kind == LS_FIELD_TIME; /* whose text is in picoseconds */
  g_autofree char *option = is_time ? ls_field_flag (f) : ls_field_option (f, value);
  g_ptr_array_add (notes, g_strdup_printf ("%s has no effect here: %s", theirs ? theirs : option, why));
}

void
ls_idle_notes (const LsJobSpec *spec, const LsJobResult *prepared, const LsHardware *hardware,
               GPtrArray *notes)
{
  Search x = { spec, prepared, hardware, .plan = NULL };
  ls_strategy_init (&x.blank);
  for (const LsField *f = ls_strategy_fields; f->key; f++)
    if (!f->file_only)
      note_if_idle (&x, f, notes);
  ls_strategy_clear (&x.blank);
  g_free (x.plan);
}
