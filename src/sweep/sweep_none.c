/* sweep/sweep_none.c — why no configuration is legal and fits: the rules that forbid most of them, or what
 * refuses those that no rule forbids; the one that lacks the least memory, and what would make that one
 * fit. */
#include <string.h>

#include "analysis/report.h"
#include "ask/memory_view.h"
#include "base/list.h"
#include "base/order.h"
#include "data/jobs/job_files.h"
#include "job/knobs.h"
#include "schedules/sched.h"
#include "strategy/shard.h"
#include "sweep/sweep_state.h"

/* ---- axes that were not tried, and what to type ---- */

/* Which axes a sweep did not go along, or not to their end, and what to type so that
 * it does. Of the table of axes (data/jobs/read_ranges.h): every knob with words of its own that is the
 * user's choice, of these what would be legal and make a difference in the first, or in the nearest if
 * nothing fits; and context parallelism, which has a range by itself for long sequences only. */

/* The first, or the nearest, that alternatives are held against. */
typedef struct {
  const LsSweepRun *x;
  LsPoint p;
  LsStrategy first; /* resolved */
} Place;

/* The one degree without a range of its own: it cuts experts that are there, and makes no other job. */
static bool
is_etp (const LsField *f)
{
  return strcmp (f->key, "etp") == 0;
}

/* How many layers of a stage, or of a unit, run again. */
static bool
is_layers (const LsField *f)
{
  return strcmp (f->key, "recompute_layers") == 0;
}

/* Into whose shards parameters go back after a forward: all, none, or those of a node. */
static bool
is_reshard (const LsField *f)
{
  return strcmp (f->key, "reshard_after_forward") == 0;
}

/* Asked for, or no choice of whoever runs the job. */
static bool
is_settled (const LsSweepRun *x, LsSpaceAxis axis)
{
  const LsField *f = ls_space_axis_field (axis);
  const LsJobSpec *job = &x->spec->job;
  bool is_said = axis >= LS_N_SPACE_AXES && job->said && g_hash_table_contains (job->said, f->key);
  return axis == LS_SPACE_GPUS || axis == LS_SPACE_GLOBAL_BATCH || x->spec->space.is_given[axis] || is_said
      || (axis >= LS_N_SPACE_AXES
          && (f->set_only || (f->of_program && !f->usual) || (f->of_job && !is_etp (f))));
}

/* All words of an axis, or none: char *, owned. */
static GPtrArray *
words_of (const LsSweepRun *x, LsSpaceAxis axis)
{
  GPtrArray *words = g_ptr_array_new_with_free_func (g_free);
  const LsField *f = ls_space_axis_field (axis);
  uint32_t gpus = g_array_index (x->spec->space.values[LS_SPACE_GPUS], uint32_t, 0),
           most = MIN (ls_cluster_taken (&x->hardware->spec), 8);
  for (guint i = 0; axis == LS_SPACE_SCHEDULE && ls_sched_at (i); i++)
    g_ptr_array_add (words, g_strdup (ls_sched_at (i)->name));
  bool is_degree = axis == LS_SPACE_CP ? ls_space_may_cut_sequences (&x->model)
                                       : x->model.moe.n_experts > 0 && is_etp (f);
  for (uint32_t d = 1; is_degree && d <= MIN (gpus, most); d *= 2)
    if (gpus % d == 0)
      g_ptr_array_add (words, g_strdup_printf ("%u", d));
  for (uint32_t d = 0; axis == LS_SPACE_ZERO && d <= 3; d++)
    g_ptr_array_add (words, g_strdup_printf ("%u", d));
  for (uint32_t d = 2; axis == LS_SPACE_ZERO && d <= 3; d++) /* copies of as many ranks as a node has GPUs */
    g_ptr_array_add (words, g_strdup_printf ("%u@%u", d, ls_cluster_taken (&x->hardware->spec)));
  for (uint32_t d = 0; is_reshard (f) && d <= 2; d++)
    g_ptr_array_add (words, g_strdup_printf ("%u", d < 2 ? d : ls_cluster_taken (&x->hardware->spec)));
  for (uint32_t quarter = 1; is_layers (f) && quarter <= 3; quarter++)
    g_ptr_array_add (words, g_strdup_printf ("%u", MAX (x->model.n_layers * quarter / 4, 1)));
  for (guint i = 0; axis == x->spec->space.parts_axis && ls_recompute_part_at (i); i++)
    g_ptr_array_add (words, g_strdup (ls_recompute_part_at (i)));
  for (guint i = 0; f->kind == LS_FIELD_BOOL && axis >= LS_N_SPACE_AXES && i < 2; i++)
    g_ptr_array_add (words, g_strdup (i == 0 ? "false" : "true"));
  for (const LsEnumName *n = f->kind == LS_FIELD_ENUM ? f->names : NULL; n && n->name; n++)
    g_ptr_array_add (words, g_strdup (n->name));
  return words;
}

/* The first; where the axis says which layers, or parts of them, are run again, and that recomputation was
 * tried, the first with that: there it is a choice. */
static LsPoint
point_of (const Place *place, LsSpaceAxis axis)
{
  const LsSpace *space = &place->x->spec->space;
  LsPoint p = place->p;
  bool is_of_full = ls_is_one_of (ls_space_axis_name (axis), "recompute_method recompute_layers"),
       is_of_parts = axis == space->parts_axis;
  uint32_t wanted = is_of_parts ? LS_RECOMPUTE_SELECTIVE : LS_RECOMPUTE_FULL;
  for (guint i = 0; (is_of_full || is_of_parts) && i < ls_space_n (space, LS_SPACE_RECOMPUTE); i++)
    if (g_array_index (space->values[LS_SPACE_RECOMPUTE], uint32_t, i) == wanted)
      p.at[LS_SPACE_RECOMPUTE] = i;
  return p;
}

/* Whether the first may have that word in the place of its own, and is another job then: not what "auto" or
 * another name of a value comes to. */
static bool
is_another (const Place *place, LsSpaceAxis axis, const char *word)
{
  const LsSweepRun *x = place->x;
  const LsField *f = ls_space_axis_field (axis);
  const LsPoint p = point_of (place, axis);
  LsStrategy s;
  candidate_start (x, &p, &s);
  if (axis == LS_SPACE_SCHEDULE && s.pp == 1)
    g_clear_pointer (&s.schedule, g_free);
  else if (!ls_field_value_set (f, &s, word))
    g_assert_not_reached ();
  /* Its own: words of knobs without an axis are no variants of one another (sweep/layouts.h). */
  g_autoptr (LsLayouts) layouts = ls_layouts_new (&x->model, x->hardware, NULL);
  bool ok = candidate_settle (x, &p, &s, NULL)
      && ls_layouts_balance (layouts, &s, candidate_cluster (x, &p), 0)
      && ls_software_check (x->spec->job.program, &x->model, &s, NULL)
      && ls_hardware_check_formats (&x->hardware->spec, &s, NULL)
      && !ls_strategy_idle (&s, &x->model, f->key);
  g_autofree char *own = ls_field_text (f, &place->first, NULL), *other = ls_field_text (f, &s, NULL);
  ls_strategy_clear (&s);
  return ok && g_strcmp0 (own, other) != 0 && g_strcmp0 (other, word) == 0;
}

/* Whether "auto" came to that kind of data parallelism with a stage of ZeRO that was tried. */
static bool
is_of_auto (const Place *place, LsSpaceAxis axis, const char *word)
{
  const LsSpace *space = &place->x->spec->space;
  guint n_kinds = ls_space_n (space, LS_SPACE_DP_KIND), n = n_kinds * ls_space_n (space, LS_SPACE_ZERO);
  bool is_it = false;
  for (guint i = 0; axis == LS_SPACE_DP_KIND && i < n && !is_it; i++) {
    LsPoint p = place->p;
    LsStrategy s;
    p.at[LS_SPACE_ZERO] = i / n_kinds;
    p.at[LS_SPACE_DP_KIND] = i % n_kinds;
    candidate_start (place->x, &p, &s);
    is_it = candidate_settle (place->x, &p, &s, NULL) && g_str_equal (ls_dp_kind_name (s.dp_kind), word);
    ls_strategy_clear (&s);
  }
  return is_it;
}

/* What was tried of an axis: those listed, or the one value of the job, if it has one. char *, owned. */
static GPtrArray *
tried_of (const Place *place, const LsSweepRun *x, LsSpaceAxis axis)
{
  GPtrArray *tried = g_ptr_array_new_with_free_func (g_free);
  const LsSpace *space = &x->spec->space;
  for (guint i = 0; i < space->values[axis]->len; i++)
    g_ptr_array_add (tried, ls_space_value_text (space, axis, i));
  char *own
      = tried->len == 0 && place ? ls_field_text (ls_space_axis_field (axis), &place->first, NULL) : NULL;
  if (own)
    g_ptr_array_add (tried, own);
  return tried;
}

/* place: NULL: nothing is legal. */
static void
look_along (LsSweepRun *x, const Place *place, LsSpaceAxis axis)
{
  g_autoptr (GPtrArray) tried = tried_of (place, x, axis), words = words_of (x, axis);
  g_autoptr (GPtrArray) all = g_ptr_array_new (); /* borrowed */
  for (guint i = 0; i < tried->len; i++)
    g_ptr_array_add (all, tried->pdata[i]);
  guint n_tried = all->len;
  for (guint i = 0; i < words->len; i++)
    if (!g_ptr_array_find_with_equal_func (tried, words->pdata[i], g_str_equal, NULL)
        && (axis == LS_SPACE_CP ? n_tried == 1
                                : place && is_another (place, axis, words->pdata[i])
                    && !is_of_auto (place, axis, words->pdata[i])))
      g_ptr_array_add (all, words->pdata[i]);
  if (all->len == n_tried || n_tried == 0)
    return;
  const LsField *f = ls_space_axis_field (axis);
  g_autofree char *flag = ls_field_flag (f);
  g_ptr_array_add (all, NULL);
  const char *separator = ls_space_separator (axis);
  g_autofree char *list = g_strjoinv (separator, (char **) all->pdata);
  all->pdata[n_tried] = NULL;
  LsSweepUntried u
      = { g_strjoinv (separator, (char **) all->pdata), g_strdup_printf ("%s %s", flag, list), f->key };
  g_array_append_val (x->report.untried, u);
}

void
sweep_note_untried (LsSweepRun *x, const uint64_t *index)
{
  Place place = { .x = x };
  g_clear_pointer (&x->report.untried, g_array_unref);
  x->report.untried = ls_list_new (sizeof (LsSweepUntried), ls_clear_2_texts);
  if (index) {
    ls_space_point (&x->spec->space, *index, &place.p);
    candidate_strategy_at (x, *index, &place.first);
  }
  for (guint a = 0; a < ls_space_n_axes (); a++)
    if (!is_settled (x, (LsSpaceAxis) a))
      look_along (x, index ? &place : NULL, (LsSpaceAxis) a);
  if (index)
    ls_strategy_clear (&place.first);
}

#define MAX_LOOKED_AT 200000 /* takes a second */
#define MAX_RULES     6
#define MAX_GLANCES   4000000
#define MAX_ALLOWED   500
#define STRIDE        UINT64_C (2654435761) /* prime: all places of a space are reached alike */
#define MAX_REFUSED   4 /* of those that are legal by all rules: each is tried once more */

/* --- the nearest -------------------------------------------------------------------------------- */

static const LsSortKey nearest_first[]
    = { { LS_RISING (Near, short_bytes) }, { LS_RISING (Near, index) }, { 0 } };

/* Which of them makes room for one more: the last with about as many stages where there are enough of
 * these. */
static guint
place_to_give (const Nearest *nearest, uint32_t pp)
{
  guint n = 0, last = MIN (nearest->n, N_NEAR - 1);
  for (guint i = 0; i < nearest->n; i++)
    if (g_bit_storage (nearest->at[i].pp) == g_bit_storage (pp) && ++n == N_NEAR_OF_PP)
      last = i;
  return last;
}

void
sweep_note_near (Nearest *nearest, const Near *near)
{
  guint at = nearest->n, given = place_to_give (nearest, near->pp);
  while (at > 0 && ls_compare_by (&nearest->at[at - 1], near, (gpointer) nearest_first) > 0)
    at--;
  if (at > given || at == N_NEAR)
    return;
  memmove (&nearest->at[at + 1], &nearest->at[at], (given - at) * sizeof *near);
  nearest->at[at] = *near;
  nearest->n = MAX (nearest->n, given + 1);
}

/* needed: its bytes. */
static Near
near_of (const LsSweepRun *x, uint64_t index, uint64_t needed)
{
  LsStrategy s;
  candidate_strategy_at (x, index, &s);
  Near near = { index, needed - MIN (needed, candidate_limit (x, &s)), s.pp };
  ls_strategy_clear (&s);
  return near;
}

/* The nearest so far, with recorded times. */
typedef struct {
  uint64_t index, needed, short_bytes; /* short_bytes: UINT64_MAX: there is none yet */
} Best;

/* True: it lacks less. */
static bool
try_near (const LsSweepRun *x, uint64_t index, Best *best)
{
  Work w = { .index = index, .kind = WORK_CONFIRM };
  work_do (x, &w);
  uint64_t needed = w.confirmed.status == TRY_ILLEGAL ? 0 : w.confirmed.memory_bytes;
  if (w.is_cut || needed == 0)
    return false;
  Near near = near_of (x, index, needed);
  if (near.short_bytes >= best->short_bytes)
    return false;
  *best = (Best) { index, needed, near.short_bytes };
  return true;
}

/* Whether it is another than those before it. */
static bool
is_distinct (const LsSweepRun *x, uint64_t index, LsPoint *ret_point)
{
  ls_space_point (&x->spec->space, index, ret_point);
  return ls_space_is_distinct (&x->spec->space, &x->model, &x->spec->job.strategy, ret_point);
}

static bool
is_legal (const LsSweepRun *x, uint64_t index)
{
  LsPoint p;
  LsStrategy s;
  if (!is_distinct (x, index, &p))
    return false;
  bool ok = candidate_strategy (x, &p, &s, NULL);
  ls_strategy_clear (&s);
  return ok;
}

/* One axis after the other, for as long as that helps: bounds say little of who is before whom. */
static void
climb (const LsSweepRun *x, Best *best)
{
  const LsSpace *space = &x->spec->space;
  bool is_better = best->short_bytes < UINT64_MAX;
  while (is_better) {
    uint64_t stride = 1;
    is_better = false;
    for (guint a = ls_space_n_axes (); a-- > 0; stride *= ls_space_n (space, (LsSpaceAxis) a)) {
      uint64_t n = ls_space_n (space, (LsSpaceAxis) a), at = best->index / stride % n,
               first = best->index - at * stride;
      for (uint64_t i = 0; i < n && !is_stopped (x); i++)
        if (i != at && is_legal (x, first + i * stride))
          is_better = try_near (x, first + i * stride, best) || is_better;
    }
  }
}

/* Of those that lack least by what is known so far, that which does, or one near it. */
static bool
find_nearest (LsSweepRun *x, uint64_t *ret_index, uint64_t *ret_needed)
{
  Best best = { .short_bytes = UINT64_MAX };
  for (guint i = 0; i < x->candidates->len; i++) {
    const Candidate *c = candidate_at (x, i);
    if (c->status != TRY_INFEASIBLE)
      continue;
    Near near = near_of (x, c->index, c->memory_bytes);
    sweep_note_near (&x->nearest, &near);
  }
  for (guint i = 0; i < x->nearest.n && x->nearest.at[i].short_bytes < best.short_bytes; i++)
    try_near (x, x->nearest.at[i].index, &best);
  climb (x, &best);
  *ret_index = best.index;
  *ret_needed = best.needed;
  return best.short_bytes < UINT64_MAX;
}

/* One of its configurations, as `lockstep run` and `memory` take it. Clear it. */
static void
job_of (const LsSweepRun *x, const LsStrategy *s, LsJobSpec *ret_spec)
{
  ls_job_spec_copy (&x->spec->job, ret_spec);
  ls_strategy_clear (&ret_spec->strategy);
  ls_strategy_copy (&ret_spec->strategy, s);
  ret_spec->headroom = (LsHeadroomAsk) { .is_set = true, .bytes = x->headroom[s->dp_kind].bytes };
}

/* Within the time of the sweep, or not at all. */
static void
advise (const LsSweepRun *x, const LsStrategy *s, LsSweepNone *none)
{
  LsJobSpec spec;
  job_of (x, s, &spec);
  ls_stop_begin (x->stop, 0);
  g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, NULL);
  if (r) {
    g_array_unref (r->assumptions); /* those of the sweep have the prices instead */
    r->assumptions = g_array_ref (x->report.assumptions);
  }
  LsWhatIf *advice = r && !ls_stopped () ? ls_memory_advise (&spec, r, NULL) : NULL;
  none->advice_is_cut = ls_stopped ();
  ls_stop_begin (NULL, 0);
  if (none->advice_is_cut)
    ls_what_if_free (advice);
  else
    none->advice = advice;
  ls_job_spec_clear (&spec);
}

static void
describe_nearest (LsSweepRun *x, LsSweepNone *none)
{
  uint64_t index;
  LsStrategy s;
  if (!find_nearest (x, &index, &none->needed_bytes)) {
    none->advice_is_cut = is_stopped (x);
    return;
  }
  sweep_note_untried (x, &index);
  candidate_strategy_at (x, index, &s);
  none->nearest = ls_job_knobs (&x->spec->job, &x->model, false, &s);
  none->gpus = s.gpus;
  none->capacity_bytes = x->capacity_bytes;
  none->headroom_bytes = x->headroom[s.dp_kind].bytes;
  none->headroom = ls_headroom_text (&x->headroom[s.dp_kind]);
  advise (x, &s, none);
  ls_strategy_clear (&s);
}

/* --- rules --------------------------------------------------------------------------------------- */

static void
rule_free (gpointer rule)
{
  g_free (((LsSweepRule *) rule)->text);
  g_free (rule);
}

/* "/tp: expected a divisor of 64 heads" and of 32 are one rule. */
static LsSweepRule *
rule_of (GHashTable *rules, const char *text)
{
  g_autofree char *key = ls_link_pattern (text);
  LsSweepRule *known = g_hash_table_lookup (rules, key);
  if (known)
    return known;
  known = g_new0 (LsSweepRule, 1);
  known->text = g_strdup (text);
  g_hash_table_insert (rules, g_steal_pointer (&key), known);
  return known;
}

static void
count_rules (GHashTable *rules, const LsDiagList *why)
{
  g_autofree char *text = ls_diag_list_format (why);
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  g_autoptr (GPtrArray) broken = g_ptr_array_new ();
  for (char **line = lines; *line; line++) {
    const char *rule = g_str_has_prefix (*line, "error: ") ? *line + strlen ("error: ") : *line;
    if (*rule != '\0' && !g_str_has_prefix (rule, "note: "))
      g_ptr_array_add (broken, rule_of (rules, rule));
  }
  for (guint i = 0; i < broken->len; i++) {
    LsSweepRule *rule = broken->pdata[i];
    rule->n++;
    rule->n_alone += broken->len == 1;
  }
}

static void
look_at (const LsSweepRun *x, const LsPoint *p, GHashTable *rules, uint64_t *n_looked_at)
{
  LsStrategy s;
  g_autoptr (LsDiagList) why = ls_diag_list_new ();
  candidate_strategy (x, p, &s, why);
  ls_strategy_clear (&s);
  count_rules (rules, why);
  ++*n_looked_at;
}

/* What as many break as were looked at comes first, also in `to`. */
static void
mark_rules_of_all (GHashTable *rules, uint64_t n_looked_at, GHashTable *to)
{
  GHashTableIter iter;
  gpointer value;
  for (g_hash_table_iter_init (&iter, rules); g_hash_table_iter_next (&iter, NULL, &value);) {
    const LsSweepRule *rule = value;
    if (rule->n == n_looked_at)
      rule_of (to, rule->text)->is_of_all = true;
  }
}

/* What a program cannot do is looked at last, of configurations that all else allows, which may be few. */
static void
look_at_allowed (const LsSweepRun *x, GHashTable *rules)
{
  const LsSpace *space = &x->spec->space;
  g_autoptr (GHashTable) of_these = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, rule_free);
  uint64_t n_resolved = 0, n_allowed = 0, index = 0, n = MIN (space->size, MAX_GLANCES);
  for (uint64_t i = 0; i < n && n_resolved < MAX_LOOKED_AT && n_allowed < MAX_ALLOWED; i++) {
    LsPoint p;
    LsStrategy s;
    index = (index + STRIDE) % space->size;
    if (!is_distinct (x, index, &p) || ls_space_is_refused (space, &x->model, &x->spec->job.strategy, &p))
      continue;
    n_resolved++;
    if (candidate_is_allowed (x, &p, &s)
        && !ls_chunks_want_balance (&s, &x->model)) /* else it is legal yet */
      look_at (x, &p, of_these, &n_allowed);
    ls_strategy_clear (&s);
  }
  mark_rules_of_all (of_these, n_allowed, rules);
}

/* What no rule forbids, but its plan or its nodes. */
static bool
look_at_refused (const LsSweepRun *x, uint64_t index, GHashTable *rules)
{
  LsStrategy s;
  LsJobSpec spec;
  g_autoptr (GError) error = NULL;
  candidate_strategy_at (x, index, &s);
  job_of (x, &s, &spec);
  ls_job_result_free (ls_job_spec_run (&spec, &error));
  ls_job_spec_clear (&spec);
  ls_strategy_clear (&s);
  if (!error)
    return false;
  LsSweepRule *rule = rule_of (rules, error->message);
  rule->n++;
  rule->n_alone++;
  return true;
}

static void
look_at_all_refused (const LsSweepRun *x, GHashTable *rules, LsSweepNone *none)
{
  guint n = 0;
  for (guint i = 0; i < x->candidates->len && n < MAX_REFUSED; i++)
    if (candidate_at (x, i)->status == TRY_ILLEGAL)
      n += look_at_refused (x, candidate_at (x, i)->index, rules);
  if (n > 0)
    none->n_looked_at = n;
}

static const LsSortKey most_broken_first[] = { { LS_FALLING (LsSweepRule, is_of_all) },
                                               { LS_FALLING (LsSweepRule, n_alone) },
                                               { LS_FALLING (LsSweepRule, n) },
                                               { LS_RISING (LsSweepRule, text) },
                                               { 0 } };

static void
describe_rules (LsSweepRun *x, LsSweepNone *none)
{
  g_autoptr (GHashTable) rules = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, rule_free);
  uint64_t every = 1 + x->spec->space.size / MAX_LOOKED_AT;
  LsPoint p;
  for (uint64_t index = 0; index < x->spec->space.size; index += every)
    if (is_distinct (x, index, &p))
      look_at (x, &p, rules, &none->n_looked_at);
  if (x->candidates->len == 0 && x->report.counts.infeasible == 0) {
    mark_rules_of_all (rules, none->n_looked_at, rules);
    look_at_allowed (x, rules);
  }
  if (g_hash_table_size (rules) == 0)
    look_at_all_refused (x, rules, none);
  GHashTableIter iter;
  gpointer rule;
  for (g_hash_table_iter_init (&iter, rules); g_hash_table_iter_next (&iter, NULL, &rule);) {
    LsSweepRule copy = *(const LsSweepRule *) rule;
    copy.text = g_strdup (copy.text);
    g_array_append_val (none->rules, copy);
  }
  ls_sort_by (none->rules, most_broken_first);
  g_array_set_size (none->rules, MIN (none->rules->len, MAX_RULES));
}

void
sweep_explain_none (LsSweepRun *x)
{
  LsSweepNone *none = x->report.none = g_new0 (LsSweepNone, 1);
  none->rules = ls_list_new (sizeof (LsSweepRule), ls_clear_text);
  describe_rules (x, none);
  describe_nearest (x, none);
}
