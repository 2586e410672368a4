/* sweep/sweep_untried.c — which axes a sweep did not go along, or not to their end, and what to type so that
 * it does. Of the table of axes (data/jobs/read_ranges.h): every knob with words of its own that is the
 * user's choice, of these what would be legal and make a difference in the first, or in the nearest if
 * nothing fits; and context parallelism, which has a range by itself for long sequences only. */
#include <string.h>

#include "schedules/sched.h"
#include "sweep/layouts.h"
#include "sweep/sweep_state.h"

/* The first, or the nearest, that alternatives are held against. */
typedef struct {
  const LsSweepRun *x;
  LsPoint p;
  LsStrategy first; /* resolved */
} Place;

void
ls_sweep_untried_free (gpointer untried)
{
  LsSweepUntried *u = untried;
  g_free (u->tried);
  g_free (u->option);
  g_free (u);
}

/* Asked for, or no choice of whoever runs the job. */
static bool
is_settled (const LsSweepRun *x, LsSpaceAxis axis)
{
  const LsField *f = ls_space_axis_field (axis);
  const LsJobSpec *job = &x->spec->job;
  bool is_said = axis >= LS_N_SPACE_AXES && job->said && g_hash_table_contains (job->said, f->key);
  return axis == LS_SPACE_GPUS || axis == LS_SPACE_GLOBAL_BATCH || x->spec->space.is_given[axis] || is_said
      || (axis >= LS_N_SPACE_AXES && (f->set_only || (f->of_program && !f->usual) || f->of_job));
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
  bool has_cp = axis == LS_SPACE_CP && ls_space_may_cut_sequences (&x->model);
  for (uint32_t d = 1; has_cp && d <= MIN (gpus, most); d *= 2)
    if (gpus % d == 0)
      g_ptr_array_add (words, g_strdup_printf ("%u", d));
  for (uint32_t d = 0; axis == LS_SPACE_ZERO && d <= 3; d++)
    g_ptr_array_add (words, g_strdup_printf ("%u", d));
  for (guint i = 0; f->kind == LS_FIELD_BOOL && axis >= LS_N_SPACE_AXES && i < 2; i++)
    g_ptr_array_add (words, g_strdup (i == 0 ? "false" : "true"));
  for (const LsEnumName *n = f->kind == LS_FIELD_ENUM ? f->names : NULL; n && n->name; n++)
    g_ptr_array_add (words, g_strdup (n->name));
  return words;
}

/* Whether the first may have that word in the place of its own, and is another job then: not what "auto" or
 * another name of a value comes to. */
static bool
is_another (const Place *place, LsSpaceAxis axis, const char *word)
{
  const LsSweepRun *x = place->x;
  const LsField *f = ls_space_axis_field (axis);
  LsStrategy s;
  candidate_start (x, &place->p, &s);
  if (axis == LS_SPACE_SCHEDULE && s.pp == 1)
    g_clear_pointer (&s.schedule, g_free);
  else if (!ls_field_value_set (f, &s, word))
    g_assert_not_reached ();
  /* Its own: words of knobs without an axis are no variants of one another (sweep/layouts.h). */
  g_autoptr (LsLayouts) layouts = ls_layouts_new (&x->model, x->hardware);
  bool ok = candidate_settle (x, &place->p, &s, NULL)
      && ls_layouts_balance (layouts, &s, candidate_cluster (x, &place->p), 0)
      && ls_software_check (x->spec->job.program, &x->model, &s, NULL)
      && ls_hardware_check_formats (&x->hardware->spec, &s, NULL)
      && !ls_strategy_idle (&s, &x->model, f->key);
  g_autofree char *own = ls_field_text (f, &place->first, NULL), *other = ls_field_text (f, &s, NULL);
  ls_strategy_clear (&s);
  return ok && g_strcmp0 (own, other) != 0 && g_strcmp0 (other, word) == 0;
}

/* What was tried of an axis: those listed, or the one value of the job. char *, owned. */
static GPtrArray *
tried_of (const Place *place, const LsSweepRun *x, LsSpaceAxis axis)
{
  GPtrArray *tried = g_ptr_array_new_with_free_func (g_free);
  const LsSpace *space = &x->spec->space;
  for (guint i = 0; i < space->values[axis]->len; i++)
    g_ptr_array_add (tried, ls_space_value_text (space, axis, i));
  if (tried->len == 0 && place)
    g_ptr_array_add (tried, ls_field_text (ls_space_axis_field (axis), &place->first, NULL));
  return tried;
}

/* place: NULL: nothing is legal. */
static void
look_at (LsSweepRun *x, const Place *place, LsSpaceAxis axis)
{
  g_autoptr (GPtrArray) tried = tried_of (place, x, axis), words = words_of (x, axis);
  g_autoptr (GPtrArray) all = g_ptr_array_new (); /* borrowed */
  for (guint i = 0; i < tried->len && tried->pdata[i]; i++)
    g_ptr_array_add (all, tried->pdata[i]);
  guint n_tried = all->len;
  for (guint i = 0; i < words->len; i++)
    if (!g_ptr_array_find_with_equal_func (tried, words->pdata[i], g_str_equal, NULL)
        && (axis == LS_SPACE_CP ? n_tried == 1 : place && is_another (place, axis, words->pdata[i])))
      g_ptr_array_add (all, words->pdata[i]);
  if (all->len == n_tried || n_tried == 0)
    return;
  LsSweepUntried *u = g_new0 (LsSweepUntried, 1);
  const LsField *f = ls_space_axis_field (axis);
  g_autofree char *flag = ls_field_flag (f);
  g_ptr_array_add (all, NULL);
  g_autofree char *list = g_strjoinv (",", (char **) all->pdata);
  all->pdata[n_tried] = NULL;
  u->knob = f->key;
  u->tried = g_strjoinv (",", (char **) all->pdata);
  u->option = g_strdup_printf ("%s %s", flag, list);
  g_ptr_array_add (x->report.untried, u);
}

void
sweep_note_untried (LsSweepRun *x, const uint64_t *index)
{
  Place place = { .x = x };
  g_clear_pointer (&x->report.untried, g_ptr_array_unref);
  x->report.untried = g_ptr_array_new_with_free_func (ls_sweep_untried_free);
  if (index) {
    ls_space_point (&x->spec->space, *index, &place.p);
    candidate_strategy_at (x, *index, &place.first);
  }
  for (guint a = 0; a < ls_space_n_axes (); a++)
    if (!is_settled (x, (LsSpaceAxis) a))
      look_at (x, index ? &place : NULL, (LsSpaceAxis) a);
  if (index)
    ls_strategy_clear (&place.first);
}
