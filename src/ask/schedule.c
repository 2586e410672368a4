#include "ask/schedule.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/list.h"
#include "base/suggest.h"
#include "data/jobs/read_schedule.h"
#include "data/text/field.h"
#include "job/assumptions.h"

/* --- its knobs from text ------------------------------------------------------------------------- */

#define MAX_COUNT (1u << 29)
#define MAX_TIME  1e9        /* of a time without a unit */
#define MAX_CELLS (1u << 22) /* stages times micro-batches */
#define MAX_TOTAL 4e18       /* picoseconds, below the largest LsTime */

/* ---- times ---- */

/* "1.5", or "2ms". */
static bool
parse_time (const char *text, void *ret_time)
{
  LsScheduleTime t = { .is_given = true };
  char *end;
  double number = g_ascii_strtod (text, &end);
  if (!g_ascii_isdigit (*text))
    return false;
  if (*end == '\0' && strpbrk (text, "xX") == NULL) {
    if (!(number <= MAX_TIME))
      return false;
    t.value = (LsTime) llround (number * (double) LS_SCHEDULE_ONE);
  } else if (ls_parse_time (text, &t.value, NULL) && t.value < LS_TIME_NEVER) {
    t.has_unit = true;
  } else {
    return false;
  }
  *(LsScheduleTime *) ret_time = t;
  return true;
}

static bool
parse_time_above (const char *text, void *ret_time)
{
  LsScheduleTime t;
  bool ok = parse_time (text, &t) && t.value > 0;
  if (ok)
    *(LsScheduleTime *) ret_time = t;
  return ok;
}

/* ---- flags ---- */

static const LsEnumName rounds[]
    = { { "megatron", LS_ROUNDS_MEGATRON }, { "pytorch", LS_ROUNDS_PYTORCH }, { NULL } };

#define AT(member) offsetof (LsScheduleSpec, member)
#define COUNT(key_, member)                                                                                  \
  {                                                                                                          \
    key_, LS_FIELD_UINT, AT (member), .min = 1, .max = MAX_COUNT                                             \
  }
#define TIME(key_, member, parse_, above)                                                                    \
  {                                                                                                          \
    key_, LS_FIELD_CUSTOM, AT (member), .parse = parse_,                                                     \
                                        .expected = "a number" above " such as 1.5, or a time with a unit "  \
                                                    "such as 2ms"                                            \
  }

static const LsField fields[] = {
  { "schedule", LS_FIELD_STRING, AT (schedule) },
  COUNT ("pp", pp),
  COUNT ("vpp", vpp),
  COUNT ("micro_batches", n_micro_batches),
  COUNT ("group", group),
  COUNT ("waves", waves),
  COUNT ("pipes", pipes),
  { "rounds", LS_FIELD_ENUM, AT (rounds), .names = rounds },
  TIME ("f_time", f, parse_time_above, " above 0"),
  TIME ("b_time", b, parse_time_above, " above 0"),
  TIME ("w_time", w, parse_time, ""),
  TIME ("fb_time", fb, parse_time_above, " above 0"),
  TIME ("comm_time", comm, parse_time, ""),
  { "memory_limit", LS_FIELD_DOUBLE, AT (memory_limit), .above = true, .max = MAX_COUNT },
  { NULL },
};

void
ls_schedule_spec_init (LsScheduleSpec *spec)
{
  *spec = (LsScheduleSpec) { .rounds = -1 };
}

void
ls_schedule_spec_clear (LsScheduleSpec *spec)
{
  ls_fields_clear (fields, spec);
  ls_schedule_spec_init (spec);
}

bool
ls_schedule_spec_set (LsScheduleSpec *spec, const char *key, const char *value, LsDiagList *diags)
{
  return ls_field_set_text (fields, spec, key, value, diags);
}

static bool
schedule_is_path (const char *text)
{
  return strchr (text, '/') || g_str_has_suffix (text, ".csv");
}

bool
ls_schedule_is_list (const char *text)
{
  return !schedule_is_path (text) && strchr (text, ',');
}

/* ---- what follows from them ---- */

/* The times that follow. f = 1 and b = 2 unless given; b is the full backward unless w is
 * given, then the input gradient; without w it splits in halves; fb = f + b unless given.
 * LS_ERROR_USAGE: some times have a unit and others do not. */
static gboolean
ls_schedule_spec_times (const LsScheduleSpec *s, LsSchedTimes *ret_times, bool *ret_has_unit, GError **error)
{
  const LsScheduleTime *const all[] = { &s->f, &s->b, &s->w, &s->fb, &s->comm };
  bool has_unit = false, has_plain = false;
  for (guint i = 0; i < G_N_ELEMENTS (all); i++) {
    has_unit |= all[i]->is_given && all[i]->has_unit;
    has_plain |= all[i]->is_given && !all[i]->has_unit && all[i]->value != 0;
  }
  if (has_unit && (has_plain || !s->f.is_given || !s->b.is_given))
    return ls_fail (error, LS_ERROR_USAGE, "%s",
                    has_plain
                        ? "expected a unit with all times or with none; got both"
                        : "expected --f-time and --b-time where times have a unit: their defaults have none");
  LsChunkTimes c = { .f = s->f.is_given ? s->f.value : LS_SCHEDULE_ONE };
  LsTime b = s->b.is_given ? s->b.value : s->w.is_given ? LS_SCHEDULE_ONE : 2 * LS_SCHEDULE_ONE;
  c.w = s->w.is_given ? s->w.value : b / 2;
  c.i = s->w.is_given ? b : b - b / 2;
  c.b = c.i + c.w;
  c.fb = s->fb.is_given ? s->fb.value : c.f + c.b;
  *ret_times = (LsSchedTimes) { .chunk = c, .comm = s->comm.value };
  *ret_has_unit = has_unit;
  return TRUE;
}

static LsSchedShape
ls_schedule_spec_shape (const LsScheduleSpec *s, const LsSchedTimes *times)
{
  return (LsSchedShape) {
    .pp = s->pp,
    .vpp = s->vpp,
    .n_micro_batches = s->n_micro_batches,
    .group = s->group,
    .rounds = s->rounds < 0 ? LS_ROUNDS_MEGATRON : (LsRounds) s->rounds,
    .waves = s->waves,
    .pipes = s->pipes,
    .times = *times,
    .memory_limit = s->memory_limit,
  };
}

/* Whether the schedule has the knobs that were given: LS_ERROR_CONFLICT. */
static gboolean
ls_schedule_spec_fits (const LsScheduleSpec *s, const LsSched *sched, GError **error)
{
  const struct {
    LsSchedKnob knob;
    const char *flag;
    bool is_given;
  } knobs[] = {
    { LS_SCHED_ROUNDS, "--rounds", s->rounds >= 0 && !sched->has_pytorch_rounds },
    { LS_SCHED_GROUP, "--group", s->group > 0 },
    { LS_SCHED_WAVES, "--waves", s->waves > 0 },
    { LS_SCHED_PIPES, "--pipes", s->pipes > 0 },
  };
  if (sched->has_pytorch_rounds && s->rounds == LS_ROUNDS_MEGATRON)
    return ls_fail (error, LS_ERROR_CONFLICT, "%s: its rounds are always PyTorch's", sched->name);
  for (guint i = 0; i < G_N_ELEMENTS (knobs); i++) {
    if (!knobs[i].is_given || (sched->knobs & knobs[i].knob))
      continue;
    g_autoptr (GString) names = g_string_new (NULL); /* "interleaved-1f1b and hanayo" */
    const LsSched *other;
    for (guint k = 0; (other = ls_sched_at (k)); k++)
      if (other->knobs & knobs[i].knob)
        g_string_append_printf (names, "%s%s", names->len > 0 ? " and " : "", other->name);
    return ls_fail (error, LS_ERROR_CONFLICT, "%s: %s applies to %s only", sched->name, knobs[i].flag,
                    names->str);
  }
  return s->memory_limit <= 0 || ls_sched_is_searched (sched)
      || ls_fail (error, LS_ERROR_CONFLICT,
                  "%s: --memory-limit applies to schedules that are searched for: this order is fixed",
                  sched->name);
}

/* LS_ERROR_LIMIT: more than fits in memory, or in a time. */
static gboolean
ls_schedule_check_size (guint64 n_cells, const LsSchedTimes *times, GError **error)
{
  const LsChunkTimes *c = &times->chunk;
  double total
      = (double) n_cells * ((double) c->f + (double) c->b + (double) c->fb + 2 * (double) times->comm);
  if (n_cells > MAX_CELLS)
    return ls_fail (error, LS_ERROR_LIMIT,
                    "%" G_GUINT64_FORMAT " stages times micro-batches are more than %u", n_cells, MAX_CELLS);
  return total <= MAX_TOTAL
      || ls_fail (error, LS_ERROR_LIMIT,
                  "these times add up to more than can be counted: take a larger unit");
}

/* --- a view of one ---------------------------------------------------------------------------------- */

double
ls_schedule_bubble (LsTime ideal, LsTime total)
{
  return total > 0 ? 1 - (double) ideal / (double) total : 0;
}

LsTime
ls_schedule_shortest (const LsScheduleView *v)
{
  LsTime shortest = LS_TIME_NEVER;
  for (uint32_t rank = 0; rank < v->eval->n_ranks; rank++)
    for (guint i = 0; i < v->orders->ranks[rank]->len; i++) {
      const LsActionTime *t = &v->eval->times[rank][i];
      if (t->end > t->start)
        shortest = MIN (shortest, t->end - t->start);
    }
  return shortest;
}

double
ls_schedule_number (LsTime t, bool has_unit)
{
  return has_unit ? ls_time_to_s (t) : (double) t / (double) LS_SCHEDULE_ONE;
}

char *
ls_schedule_time_text (LsTime t, bool has_unit)
{
  char buffer[G_ASCII_DTOSTR_BUF_SIZE];
  if (has_unit)
    return ls_format_time (t);
  return g_strdup (g_ascii_formatd (buffer, sizeof buffer, "%.10g", ls_schedule_number (t, false)));
}

double
ls_schedule_peak (const LsSchedEval *e, uint32_t rank, LsPeakCount count)
{
  return count == LS_PEAK_TO_W ? e->ranks[rank].held_peak * e->per_chunk
                               : e->ranks[rank].split_peak * e->per_chunk / 2;
}

LsPeakCount
ls_schedule_count (bool is_searched)
{
  return is_searched ? LS_PEAK_BY_HALVES : LS_PEAK_TO_W;
}

/* --- by name or from a file ------------------------------------------------------------------------- */

void
ls_schedule_view_free (LsScheduleView *v)
{
  if (!v)
    return;
  g_free ((char *) v->title);
  ls_orders_free ((LsOrders *) v->orders);
  ls_sched_eval_free ((LsSchedEval *) v->eval);
  g_clear_pointer (&v->assumptions, g_array_unref);
  g_free (v);
}

#include "ask/schedule_title_text.h"

/* Takes orders and eval. */
static LsScheduleView *
view_of (const char *name, bool is_searched, const LsSchedTimes *times, bool has_unit, LsOrders *orders,
         LsSchedEval *eval)
{
  LsScheduleView *v = g_new (LsScheduleView, 1);
  *v = (LsScheduleView) {
    .title = schedule_title (name, &orders->layout),
    .orders = orders,
    .eval = eval,
    .times = times->chunk,
    .comm = times->comm,
    .has_unit = has_unit,
    .is_searched = is_searched,
  };
  return v;
}

/* ---- by name ---- */

/* NULL: LS_ERROR_USAGE that lists them. */
static const LsSched *
ls_schedule_named (const char *name, GError **error)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  const LsSched *sched = ls_sched_find (name), *other;
  for (guint i = 0; (other = ls_sched_at (i)); i++)
    g_ptr_array_add (names, (gpointer) other->name);
  g_ptr_array_add (names, NULL);
  if (!sched)
    ls_fail_word (error, "--schedule", name, (const char *const *) names->pdata);
  return sched;
}

static gboolean
require (const LsScheduleSpec *s, GError **error)
{
  return (s->pp > 0 && s->n_micro_batches > 0)
      || ls_fail (error, LS_ERROR_USAGE, "expected %s", s->pp == 0 ? "--pp" : "--micro-batches");
}

static LsOrders *
orders_by_name (const LsScheduleSpec *s, const LsSchedTimes *times, GError **error)
{
  const LsSched *sched = ls_schedule_named (s->schedule, error);
  if (!sched || !require (s, error) || !ls_schedule_spec_fits (s, sched, error))
    return NULL;
  LsSchedShape shape = ls_schedule_spec_shape (s, times);
  const char *rule = ls_sched_refusal (sched, &shape);
  if (rule)
    return ls_fail_null (error, LS_ERROR_CONFLICT, "%s: %s", sched->name, rule);
  guint64 n_cells = (guint64) s->pp * ls_sched_n_chunks (sched, &shape) * s->n_micro_batches;
  return ls_schedule_check_size (n_cells, times, error) ? ls_sched_orders (sched, &shape) : NULL;
}

/* ---- from a file ---- */

/* A file says all that there is to say about its order. */
static gboolean
check_file_knobs (const LsScheduleSpec *s, const LsLayout *l, GError **error)
{
  guint64 n_mb = (guint64) l->n_micro_batches * l->n_pipes;
  if (s->vpp > 0 || s->group > 0 || s->waves > 0 || s->pipes > 0 || s->rounds >= 0 || s->memory_limit > 0)
    return ls_fail (error, LS_ERROR_CONFLICT,
                    "--vpp, --group, --rounds, --waves, --pipes and --memory-limit do not go with a file");
  if (s->pp > 0 && s->pp != l->n_ranks)
    return ls_fail (error, LS_ERROR_CONFLICT, "--pp %u: %s has %u ranks", s->pp, s->schedule, l->n_ranks);
  if (s->n_micro_batches > 0 && s->n_micro_batches != n_mb)
    return ls_fail (error, LS_ERROR_CONFLICT, "--micro-batches %u: %s has %" G_GUINT64_FORMAT,
                    s->n_micro_batches, s->schedule, n_mb);
  return TRUE;
}

static LsOrders *
orders_from_file (const LsScheduleSpec *s, const LsSchedTimes *times, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsOrders) orders = ls_read_schedule (s->schedule, diags);
  if (!orders) {
    ls_diag_list_to_error (diags, error);
    return NULL;
  }
  const LsLayout *l = &orders->layout;
  guint64 n_cells = (guint64) l->n_pipes * l->n_stages * l->n_micro_batches;
  if (!check_file_knobs (s, l, error) || !ls_schedule_check_size (n_cells, times, error))
    return NULL;
  return g_steal_pointer (&orders);
}

bool
ls_schedule_has (const LsOrders *orders, LsActionType type, bool is_paired)
{
  for (uint32_t rank = 0; rank < orders->layout.n_ranks; rank++)
    for (guint i = 0; i < orders->ranks[rank]->len; i++) {
      const LsAction *a = &g_array_index (orders->ranks[rank], LsAction, i);
      if (a->type == type && (!is_paired || a->is_paired))
        return true;
    }
  return false;
}

/* A pair begins with a forward or a backward. */
static bool
has_pairs (const LsOrders *orders)
{
  return ls_schedule_has (orders, LS_ACTION_F, true) || ls_schedule_has (orders, LS_ACTION_B, true);
}

/* The times that these orders use, as they are typed; NULL: those of any. */
static GArray *
assume (const LsScheduleSpec *s, const LsSchedTimes *times, bool has_unit, const LsOrders *orders)
{
  const LsChunkTimes *c = &times->chunk;
  bool is_split = !orders || ls_schedule_has (orders, LS_ACTION_W, false),
       is_paired = !orders || has_pairs (orders);
  const char *b_words = s->w.is_given ? "I %s" : is_split ? "B %s, half of it W" : "B %s";
  const struct {
    bool is_used;
    const char *key, *words, *instead;
    const LsScheduleTime *given;
    LsTime time;
  } rows[] = {
    { true, "f_time", "F %s", "--f-time TIME", &s->f, c->f },
    { true, "b_time", b_words, is_split ? "--b-time TIME, of I alone with --w-time TIME" : "--b-time TIME",
      &s->b, s->w.is_given ? c->i : c->b },
    { s->w.is_given || is_split, "w_time", s->w.is_given ? "W %s" : NULL,
      s->w.is_given ? "--w-time TIME" : "--w-time TIME, with --b-time TIME of I alone", &s->w, c->w },
    { is_paired, "fb_time", "F with B %s", "--fb-time TIME", &s->fb, c->fb },
    { true, "comm_time", "between ranks %s", "--comm-time TIME", &s->comm, times->comm },
  };
  GArray *all = NULL;
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    if (rows[i].is_used)
      ls_assumptions_add (&all, rows[i].key, ls_schedule_time_text (rows[i].time, has_unit), rows[i].words,
                          rows[i].given->is_given ? NULL : "by default", rows[i].instead);
  return all;
}

/* What else decides the orders of a schedule; is_searched: and the memory that they may take. */
static void
assume_shape (GArray **all, const LsScheduleSpec *s, const LsSched *sched, bool is_searched)
{
  bool has_waves = sched->knobs & LS_SCHED_WAVES, has_rounds = sched->knobs & LS_SCHED_ROUNDS;
  g_autofree char *groups = g_strconcat ("groups of %s for ", sched->name, NULL), /* each has its own */
      *group = g_strdup_printf ("--schedule %s --group N", sched->name);
  const struct {
    bool is_used;
    const char *key, *words, *instead;
    double given, usual; /* 0: not given */
  } rows[] = {
    { sched->knobs & LS_SCHED_GROUP, "group", groups, group, s->group,
      has_waves ? s->n_micro_batches : s->pp },
    { has_waves, "waves", "waves %s", "--waves W", s->waves, 1 },
    { sched->knobs & LS_SCHED_PIPES, "pipes", "pipes %s", "--pipes K", s->pipes, 2 },
    { is_searched, "memory_limit", "--memory-limit %s", "--memory-limit X", s->memory_limit,
      s->n_micro_batches },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    if (rows[i].is_used)
      ls_assumptions_add (all, rows[i].key,
                          g_strdup_printf ("%.10g", rows[i].given > 0 ? rows[i].given : rows[i].usual),
                          rows[i].words, rows[i].given > 0 ? NULL : "by default", rows[i].instead);
  if (has_rounds)
    ls_assumptions_add (all, "rounds", g_strdup (rounds[MAX (s->rounds, 0)].name), "rounds of %s",
                        s->rounds < 0 ? "by default" : NULL, "--rounds KIND");
}

LsScheduleView *
ls_schedule_view_new (const LsScheduleSpec *s, GError **error)
{
  LsSchedTimes times;
  bool has_unit;
  if (!s->schedule)
    return ls_fail_null (error, LS_ERROR_USAGE, "expected --schedule or --all");
  if (!ls_schedule_spec_times (s, &times, &has_unit, error))
    return NULL;
  LsOrders *orders = schedule_is_path (s->schedule) ? orders_from_file (s, &times, error)
                                                    : orders_by_name (s, &times, error);
  if (!orders)
    return NULL;
  if (s->fb.is_given && !has_pairs (orders)) {
    ls_orders_free (orders);
    return ls_fail_null (
        error, LS_ERROR_CONFLICT,
        "%s: --fb-time applies to orders that execute a forward and a backward together, such as "
        "dualpipe's: here are none",
        s->schedule);
  }
  bool is_searched = !schedule_is_path (s->schedule) && ls_sched_is_searched (ls_sched_find (s->schedule));
  LsScheduleView *v
      = view_of (s->schedule, is_searched, &times, has_unit, orders, ls_orders_eval (orders, &times));
  v->assumptions = assume (s, &times, has_unit, orders);
  if (!schedule_is_path (s->schedule))
    assume_shape (&v->assumptions, s, ls_sched_find (s->schedule), is_searched);
  return v;
}

/* ---- all schedules for the same job ---- */

#define DEFAULT_CHUNKS 2 /* where a schedule leaves the choice */

/* A schedule made to the measure of a job. */
typedef struct {
  const LsSched *sched;
  LsSchedShape shape;
  const char *rule; /* that it breaks, or NULL */
} Fit;

/* Only what a schedule can use: --waves of 4 is no reason to refuse 1f1b. */
static void
drop_foreign_knobs (const LsSched *sched, LsSchedShape *shape)
{
  if (!(sched->knobs & LS_SCHED_GROUP))
    shape->group = 0;
  if (!(sched->knobs & LS_SCHED_ROUNDS))
    shape->rounds = LS_ROUNDS_MEGATRON;
  if (!(sched->knobs & LS_SCHED_WAVES))
    shape->waves = 0;
  if (!(sched->knobs & LS_SCHED_PIPES))
    shape->pipes = 0;
}

/* With the chunks that were asked for, or else with those that it needs: of the two rules
 * that may be broken then, the one that is not about chunks says more. */
static Fit
fit_schedule (const LsSched *sched, const LsSchedShape *job)
{
  Fit fit = { .sched = sched, .shape = *job };
  drop_foreign_knobs (sched, &fit.shape);
  fit.shape.vpp = fit.shape.waves > 0 ? 0 : job->vpp > 0 ? job->vpp : DEFAULT_CHUNKS;
  fit.rule = ls_sched_refusal (sched, &fit.shape);
  if (!fit.rule)
    return fit;
  LsSchedShape own = fit.shape;
  own.vpp = 0;
  const char *rule = ls_sched_refusal (sched, &own);
  if (!rule)
    return (Fit) { sched, own, NULL };
  if (g_str_has_prefix (fit.rule, "vpp "))
    fit.rule = rule;
  return fit;
}

static guint64
n_cells_of (const Fit *fit)
{
  return (guint64) fit->shape.pp * ls_sched_n_chunks (fit->sched, &fit->shape) * fit->shape.n_micro_batches;
}

static LsSchedEval *
evaluate (Fit *fit, LsOrders **ret_orders)
{
  bool has_pipes = fit->sched->placement == LS_PLACE_PIPES;
  uint32_t n_chunks = has_pipes ? 1 : ls_sched_n_chunks (fit->sched, &fit->shape);
  LsChunkTimes *c = &fit->shape.times.chunk; /* of what a rank would hold without chunks */
  LsTime *const all[] = { &c->f, &c->i, &c->w, &c->fb };
  for (guint i = 0; i < G_N_ELEMENTS (all); i++)
    *all[i] = (LsTime) ((__int128) *all[i] * fit->shape.pp / (fit->shape.pp * n_chunks));
  c->b = c->i + c->w;
  *ret_orders = ls_sched_orders (fit->sched, &fit->shape);
  return ls_orders_eval (*ret_orders, &fit->shape.times);
}

/* ---- the table ---- */

/* Boundaries that micro-batches cross from rank to rank, over those of a line. */
static double
communication_of (const LsLayout *l)
{
  guint64 n = 0;
  for (uint32_t pipe = 0; pipe < l->n_pipes; pipe++)
    for (uint32_t stage = 0; stage + 1 < l->n_stages; stage++)
      n += ls_layout_home (l, pipe, stage).rank != ls_layout_home (l, pipe, stage + 1).rank;
  if (l->n_ranks == 1)
    return NAN;
  return (double) n / l->n_pipes / (l->n_ranks - 1);
}

static LsScheduleRow
row_of (const Fit *fit, const LsOrders *orders, const LsSchedEval *eval)
{
  LsScheduleRow row = { .schedule = fit->sched->name,
                        .refusal = fit->rule,
                        .is_searched = ls_sched_is_searched (fit->sched) };
  if (fit->rule)
    return row;
  for (uint32_t rank = 0; rank < eval->n_ranks; rank++) {
    double n_versions = ls_sched_n_versions (fit->sched, &fit->shape, rank);
    row.copies = fmax (row.copies, fmax (n_versions, 1) * orders->layout.n_pipes);
    row.to_w = fmax (row.to_w, ls_schedule_peak (eval, rank, LS_PEAK_TO_W));
    row.by_halves = fmax (row.by_halves, ls_schedule_peak (eval, rank, LS_PEAK_BY_HALVES));
  }
  row.vpp = orders->layout.n_stages / fit->shape.pp;
  row.makespan = eval->makespan;
  row.span = eval->span;
  row.ideal = eval->ideal;
  row.communication = communication_of (&orders->layout);
  return row;
}

/* What there must be, and the job as a shape. */
static gboolean
read_job (const LsScheduleSpec *s, LsSchedShape *ret_job, bool *ret_has_unit, GError **error)
{
  LsSchedTimes times;
  if (!require (s, error) || !ls_schedule_spec_times (s, &times, ret_has_unit, error))
    return FALSE;
  *ret_job = ls_schedule_spec_shape (s, &times);
  return TRUE;
}

/* --- those that are named --- */

/* Whether one of them has each knob that was given. */
static gboolean
heed_knobs (const LsScheduleSpec *s, const GPtrArray *scheds, GError **error)
{
  const LsScheduleSpec knobs[] = { { .group = s->group, .rounds = -1 },
                                   { .waves = s->waves, .rounds = -1 },
                                   { .pipes = s->pipes, .rounds = -1 },
                                   { .rounds = s->rounds } };
  for (guint i = 0; i < G_N_ELEMENTS (knobs); i++) {
    g_autoptr (GError) refusal = NULL;
    bool is_heeded = false;
    for (guint k = 0; k < scheds->len && !is_heeded; k++) {
      g_clear_error (&refusal);
      is_heeded = ls_schedule_spec_fits (&knobs[i], scheds->pdata[k], &refusal);
    }
    if (!is_heeded) {
      g_propagate_error (error, g_steal_pointer (&refusal));
      return FALSE;
    }
  }
  return TRUE;
}

/* LsSched, in their order; NULL: one is not known, or is named twice. */
static GPtrArray *
named (const char *names, GError **error)
{
  g_autoptr (GPtrArray) scheds = g_ptr_array_new ();
  g_auto (GStrv) words = g_strsplit (names, ",", -1);
  for (char **word = words; *word; word++) {
    const LsSched *sched = ls_schedule_named (*word, error);
    if (!sched)
      return NULL;
    if (g_ptr_array_find (scheds, sched, NULL))
      return ls_fail_null (error, LS_ERROR_USAGE, "--schedule: \"%s\" is named twice", *word);
    g_ptr_array_add (scheds, (gpointer) sched);
  }
  return g_steal_pointer (&scheds);
}

/* NULL: the spec is not of several. */
static GPtrArray *
chosen (const LsScheduleSpec *s, GError **error)
{
  if (s->schedule && !ls_schedule_is_list (s->schedule))
    return ls_fail_null (error, LS_ERROR_USAGE, "expected --schedule or --all; got both");
  g_autoptr (GPtrArray) scheds = s->schedule ? named (s->schedule, error) : g_ptr_array_new ();
  const LsSched *sched;
  for (guint i = 0; !s->schedule && (sched = ls_sched_at (i)); i++)
    g_ptr_array_add (scheds, (gpointer) sched);
  return scheds && heed_knobs (s, scheds, error) ? g_steal_pointer (&scheds) : NULL;
}

static gboolean
add_row (LsScheduleTable *table, Fit *fit, GError **error)
{
  if (fit->rule && table->views)
    return ls_fail (error, LS_ERROR_CONFLICT, "%s: %s", fit->sched->name, fit->rule);
  if (!fit->rule && !ls_schedule_check_size (n_cells_of (fit), &fit->shape.times, error))
    return FALSE;
  LsOrders *orders = NULL;
  LsSchedEval *eval = fit->rule ? NULL : evaluate (fit, &orders);
  LsScheduleRow row = row_of (fit, orders, eval);
  g_array_append_val (table->rows, row);
  if (table->views) {
    g_ptr_array_add (table->views,
                     view_of (fit->sched->name, ls_sched_is_searched (fit->sched), &fit->shape.times,
                              table->has_unit, orders, eval));
    return TRUE;
  }
  ls_orders_free (orders);
  ls_sched_eval_free (eval);
  return TRUE;
}

LsScheduleTable *
ls_schedule_all (const LsScheduleSpec *s, GError **error)
{
  LsSchedShape job;
  bool has_unit, has_vpp = s->vpp == 0 || !s->schedule, has_choice = false;
  guint n_searched = 0;
  g_autoptr (GPtrArray) scheds = chosen (s, error);
  if (!scheds || !read_job (s, &job, &has_unit, error))
    return NULL;
  g_autoptr (LsScheduleTable) table = g_new0 (LsScheduleTable, 1);
  table->title = title_of (s, &job.times, has_unit);
  table->assumptions = assume (s, &job.times, has_unit, NULL);
  table->has_unit = has_unit;
  table->memory_limit = s->memory_limit;
  table->rows = g_array_new (FALSE, FALSE, sizeof (LsScheduleRow));
  table->views = s->schedule ? g_ptr_array_new_with_free_func ((GDestroyNotify) ls_schedule_view_free) : NULL;
  for (guint i = 0; i < scheds->len; i++) {
    Fit fit = fit_schedule (scheds->pdata[i], &job);
    has_vpp = has_vpp || fit.shape.vpp == s->vpp;
    has_choice = has_choice || (s->vpp == 0 && fit.shape.vpp > 0 && !fit.rule);
    assume_shape (&table->assumptions, s, fit.sched, ls_sched_is_searched (fit.sched) && n_searched++ == 0);
    if (!add_row (table, &fit, error))
      return NULL;
  }
  if (has_choice || s->vpp > 0)
    ls_assumptions_add (
        &table->assumptions, "vpp", g_strdup_printf ("%u", s->vpp > 0 ? s->vpp : DEFAULT_CHUNKS),
        "%s chunks of a rank where a schedule leaves a choice", s->vpp > 0 ? NULL : "by default", "--vpp V");
  if (has_vpp)
    return g_steal_pointer (&table);
  return ls_fail_null (error, LS_ERROR_CONFLICT, "--vpp %u: none of these schedules can have so many chunks",
                       s->vpp);
}

void
ls_schedule_table_free (LsScheduleTable *table)
{
  if (!table)
    return;
  g_free (table->title);
  g_clear_pointer (&table->rows, g_array_unref);
  g_clear_pointer (&table->assumptions, g_array_unref);
  g_clear_pointer (&table->views, g_ptr_array_unref);
  g_free (table);
}

/* ---- the chart ---- */

#define MAX_POINT_CELLS (1 << 14) /* stages times micro-batches of a point: the chart is quick */

static void
curve_clear (gpointer data)
{
  g_array_unref (((LsBubbleCurve *) data)->points);
}

static void
add_point (GArray *points, const LsSched *sched, const LsSchedShape *job, uint32_t x)
{
  Fit fit = fit_schedule (sched, job);
  if (fit.rule || n_cells_of (&fit) > MAX_POINT_CELLS)
    return;
  g_autoptr (LsOrders) orders = NULL;
  g_autoptr (LsSchedEval) eval = evaluate (&fit, &orders);
  ls_list_add (points, &(LsBubblePoint) { x, ls_schedule_bubble (eval->ideal, eval->span) });
}

/* Micro-batches as multiples of the ranks; ranks as powers of 2. */
static GArray *
points_of (const LsSched *sched, const LsSchedShape *job, guint panel)
{
  static const uint32_t multiples[] = { 1, 2, 3, 4, 6, 8, 12, 16 };
  static const uint32_t stages[] = { 2, 4, 8, 16, 32, 64 };
  GArray *points = g_array_new (FALSE, FALSE, sizeof (LsBubblePoint));
  LsSchedShape at = *job;
  for (guint i = 0; panel == 0 && i < G_N_ELEMENTS (multiples); i++) {
    at.n_micro_batches = multiples[i] * job->pp;
    add_point (points, sched, &at, at.n_micro_batches);
  }
  for (guint i = 0; panel == 1 && i < G_N_ELEMENTS (stages); i++) {
    at.pp = stages[i];
    add_point (points, sched, &at, at.pp);
  }
  return points;
}

static GArray *
curves_of (const LsSchedShape *job, guint panel)
{
  GArray *curves = ls_list_new (sizeof (LsBubbleCurve), curve_clear);
  const LsSched *sched;
  for (guint i = 0; (sched = ls_sched_at (i)); i++) {
    if (ls_sched_is_searched (sched))
      continue;
    LsBubbleCurve curve = { sched->name, i, points_of (sched, job, panel) };
    if (curve.points->len > 0)
      g_array_append_val (curves, curve);
    else
      g_array_unref (curve.points);
  }
  return curves;
}

LsBubbles *
ls_schedule_bubbles (const LsScheduleSpec *s, GError **error)
{
  LsSchedShape job;
  bool has_unit;
  if (!read_job (s, &job, &has_unit, error) || !ls_schedule_check_size (MAX_POINT_CELLS, &job.times, error))
    return NULL;
  LsBubbles *b = g_new0 (LsBubbles, 1);
  b->title = title_of (s, &job.times, has_unit);
  b->notes[0] = g_strdup_printf ("%u ranks", job.pp);
  b->notes[1] = g_strdup_printf ("%u micro-batches", job.n_micro_batches);
  for (guint panel = 0; panel < 2; panel++)
    b->panels[panel] = curves_of (&job, panel);
  return b;
}

void
ls_schedule_bubbles_free (LsBubbles *b)
{
  if (!b)
    return;
  g_free (b->title);
  for (guint panel = 0; panel < 2; panel++) {
    g_free (b->notes[panel]);
    g_array_unref (b->panels[panel]);
  }
  g_free (b);
}

bool
ls_schedule_row_fits (const LsScheduleTable *t, const LsScheduleRow *row)
{
  return t->memory_limit == 0 || row->by_halves <= t->memory_limit;
}
