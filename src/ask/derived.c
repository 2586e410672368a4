#include "ask/derived.h"

#include <math.h>
#include <string.h>

#include "ask/versus.h"
#include "base/list.h"
#include "data/datadir.h"
#include "data/jobs/job_files.h"
#include "data/text/csv.h"
#include "job/knobs.h"

#define MOST_TURNS 40
#define NEARER     1e-6 /* what comes nearer by less is of rounding */
#define SLACK      5e-3 /* as far as lists of kernels are off that stand for one another */

/* Nobody asks a program for these: they are what it computes, or how it is looked at. */
static const char *const of_users[] = { "dtype", "nccl_env", NULL };

/* A value that a key has for all jobs, over what the profile says. */
typedef struct {
  char *value; /* NULL: as it is based on */
  const LsField *field;
  char **others; /* that it can have; NULL: it is of a size */
} Tried;

typedef struct {
  const GPtrArray *jobs; /* LsDerivedFrom */
  GPtrArray *tried;      /* Tried */
  guint n_threads;
} Search;

/* --- the table ---------------------------------------------------------------------------------------- */

void
ls_derived_from_free (gpointer data)
{
  LsDerivedFrom *j = data;
  ls_job_spec_clear (&j->spec);
  ls_job_result_free (j->captured);
  g_free (j->trace);
  g_free (j);
}

/* From the folder of the table, if it is there; folders need no "/", which ls_data_beside() wants. */
static char *
trace_of (const LsCsv *csv, guint row)
{
  const char *cell = ls_csv_cell (csv, row, (guint) ls_csv_column (csv, "trace"));
  g_autofree char *folder = g_path_get_dirname (ls_csv_name (csv)),
                  *there = g_build_filename (folder, cell, NULL);
  bool is_there = !g_path_is_absolute (cell) && g_file_test (there, G_FILE_TEST_EXISTS);
  return is_there ? g_steal_pointer (&there) : g_strdup (cell);
}

static bool
set_cell (const LsCsv *csv, guint row, guint column, LsDerivedFrom *job, LsDiagList *diags)
{
  static const char *const of_all[] = { "software", "for", "from", "cluster", NULL };
  const char *key = ls_csv_column_name (csv, column), *cell = ls_csv_cell (csv, row, column);
  if (*cell == '\0' || strcmp (key, "trace") == 0)
    return true;
  if (g_strv_contains (of_all, key)) {
    ls_csv_error (csv, row, column, diags, "--%s is said once, for all jobs", key);
    return false;
  }
  g_autofree char *value
      = strcmp (key, "model") == 0 ? ls_data_beside (ls_csv_name (csv), cell) : g_strdup (cell);
  g_autoptr (LsDiagList) wrong = ls_diag_list_new ();
  if (!ls_job_spec_set (&job->spec, key, value, wrong)) {
    ls_csv_error (csv, row, column, diags, "%s", ls_diag_list_at (wrong, 0).message);
    return false;
  }
  return true;
}

/* A job of a row, with its capture replayed. NULL: diagnostics, or an error. */
static LsDerivedFrom *
job_of (const LsCsv *csv, guint row, const LsJobSpec *base, LsDiagList *diags, GError **error)
{
  LsDerivedFrom *job = g_new0 (LsDerivedFrom, 1);
  ls_job_spec_copy (base, &job->spec);
  bool ok = true;
  for (guint c = 0; c < ls_csv_n_columns (csv); c++)
    ok &= set_cell (csv, row, c, job, diags);
  job->trace = trace_of (csv, row);
  if (ok && (job->captured = ls_versus_replay (&job->spec, job->trace, error)))
    return job;
  ls_derived_from_free (job);
  return NULL;
}

static GPtrArray *
read_jobs (const char *table, const LsJobSpec *base, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsCsv) csv = ls_csv_parse (table, NULL, -1, diags);
  g_autoptr (GPtrArray) jobs = g_ptr_array_new_with_free_func (ls_derived_from_free);
  if (csv && ls_csv_column (csv, "trace") < 0)
    ls_csv_header_error (csv, diags, "expected a column \"trace\": the folder of each captured step");
  bool ok = ls_diag_list_n (diags) == 0;
  for (guint row = 0; ok && row < ls_csv_n_rows (csv); row++) {
    GError *problem = NULL;
    LsDerivedFrom *job = job_of (csv, row, base, diags, &problem);
    if (problem) {
      g_propagate_error (error, problem);
      return NULL;
    }
    if (job)
      g_ptr_array_add (jobs, job);
  }
  if (ls_diag_list_n (diags) > 0) {
    ls_diag_list_to_error (diags, error);
    return NULL;
  }
  return jobs->len > 0 ? g_steal_pointer (&jobs)
                       : ls_fail_null (error, LS_ERROR_INPUT, "%s: expected a row at least", table);
}

/* --- how far values are from the captures ------------------------------------------------------------- */

const char *const ls_far_parts[LS_N_FAR] = { "work", "memory", "order", "host" };

static double
off_of (const LsVersusSide *sides)
{
  return fabs (ls_time_to_s (sides[LS_VERSUS_PLANNED].time - sides[LS_VERSUS_CAPTURED].time));
}

/* Adds what a row says. Kernels count by phase and part of the model, as lists name accesses otherwise, and
 * messages by kind, as the sizes of buckets are no keys that are tried. Memory is what stays between steps,
 * masters among the parameters or not, and all else. bytes, more: of these two, what was captured, and how
 * much more is planned; waits: how much more waits of the host are. */
static void
add_row (const LsVersusRow *row, double bytes[2], double more[2], double *waits, LsFar *far)
{
  bool held;
  const LsVersusSide *c = &row->sides[LS_VERSUS_CAPTURED], *p = &row->sides[LS_VERSUS_PLANNED];
  switch ((LsVersusSection) row->section) {
  case LS_VERSUS_MEMORY:
    if (row->part == LS_MEM_COMM_BUFFERS) /* as many as the host is ahead for */
      break;
    held = row->part == LS_MEM_PARAMETERS || row->part == LS_MEM_OPTIMIZER;
    bytes[held ? 0 : 1] += c->bytes;
    more[held ? 0 : 1] += p->bytes - c->bytes;
    break;
  case LS_VERSUS_HOST:
    if (row->part == LS_HOST_SYNC) /* whether it waits after a pass or before the next is the same */
      *waits += ls_time_to_s (p->time - c->time);
    else if (row->part != LS_HOST_LAUNCH)
      far->part[LS_FAR_HOST] += off_of (row->sides);
    break;
  case LS_VERSUS_PRODUCTS:
  case LS_VERSUS_ATTENTION:
  case LS_VERSUS_COPIES:
    far->part[LS_FAR_WORK] += off_of (row->sides);
    break;
  default:
    break;
  }
}

/* A mean share of the kernels. */
static double
share_of (const LsVersusSide *side, double sum)
{
  return side->bytes > 0 ? sum / side->bytes : 0;
}

static const LsFar out_of_reach = { { INFINITY, INFINITY, INFINITY, INFINITY } };

/* v NULL: the job is refused. */
static LsFar
far_of (const LsVersus *v)
{
  if (!v)
    return out_of_reach;
  double step = ls_job_result_step_time_s (v->jobs[LS_VERSUS_CAPTURED]), bytes[2] = { 0 }, more[2] = { 0 },
         waits = 0, sent = 0;
  LsFar far = { 0 };
  for (guint i = 0; i < v->rows->len; i++)
    add_row (&g_array_index (v->rows, LsVersusRow, i), bytes, more, &waits, &far);
  for (guint i = 0; i < v->sites->len; i++)
    far.part[LS_FAR_WORK] += off_of (g_array_index (v->sites, LsVersusSum, i).sides);
  for (guint i = 0; i < v->messages->len; i++) {
    const LsVersusSide *sides = g_array_index (v->messages, LsVersusSum, i).sides;
    double captured = sides[LS_VERSUS_CAPTURED].bytes;
    far.part[LS_FAR_WORK] += off_of (sides);
    const LsVersusSide *c = &sides[LS_VERSUS_CAPTURED], *p = &sides[LS_VERSUS_PLANNED];
    far.part[LS_FAR_ORDER] += captured
        * (fabs (share_of (p, p->after) - share_of (c, c->after))
           + fabs (share_of (p, p->before) - share_of (c, c->before)));
    sent += captured;
  }
  far.part[LS_FAR_WORK] /= step;
  far.part[LS_FAR_HOST] = (far.part[LS_FAR_HOST] + fabs (waits)) / step;
  far.part[LS_FAR_MEMORY] = (fabs (more[0]) + fabs (more[1])) / MAX (bytes[0] + bytes[1], 1);
  far.part[LS_FAR_ORDER] /= MAX (sent, 1);
  return far;
}

/* Whether a is nearer than b in the first part in which they differ, and in none after it much farther, but
 * for the order, which hangs on how many kernels there are. */
static bool
is_nearer (const LsFar *a, const LsFar *b)
{
  guint first = 0;
  while (first < LS_N_FAR && fabs (a->part[first] - b->part[first]) <= NEARER)
    first++;
  if (first == LS_N_FAR || !(a->part[first] < b->part[first]))
    return false;
  for (guint i = first + 1; i < LS_N_FAR; i++)
    if (i != LS_FAR_ORDER && a->part[i] > b->part[i] + SLACK)
      return false;
  return true;
}

/* The part in which a is farthest from b, and so is no nearer value; LS_N_FAR: in none. */
static LsFarPart
farther_by (const LsFar *a, const LsFar *b)
{
  LsFarPart by = LS_N_FAR;
  for (guint i = 0; i < LS_N_FAR; i++)
    if (a->part[i] - b->part[i] > (by < LS_N_FAR ? a->part[by] - b->part[by] : NEARER))
      by = (LsFarPart) i;
  return by;
}

/* Keys that are not derived from it: its user has said them. */
static bool
says (const LsDerivedFrom *job, const char *key)
{
  return job->spec.said && g_hash_table_contains (job->spec.said, key);
}

/* The job with all values that keys have so far, but `but` (NULL: none) with that one. NULL: refused. */
static LsJobResult *
plan_of (const Search *s, const LsDerivedFrom *job, const Tried *but, const char *value)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new_counting ();
  LsJobSpec spec;
  ls_job_spec_copy (&job->spec, &spec);
  spec.no_notes = true;
  bool ok = true;
  for (guint i = 0; ok && i < s->tried->len; i++) {
    const Tried *t = s->tried->pdata[i];
    const char *has = t == but ? value : t->value;
    if (has && !says (job, t->field->key))
      ok = ls_job_spec_set (&spec, t->field->key, ls_field_typed (t->field, has), diags);
  }
  LsJobResult *r = ok ? ls_job_spec_run (&spec, NULL) : NULL;
  ls_job_spec_clear (&spec);
  return r;
}

/* NULL: it is refused. */
static LsVersus *
versus_of (const LsDerivedFrom *job, const LsJobResult *planned)
{
  return planned ? ls_versus_new (job->captured, planned, 0, NULL) : NULL;
}

static LsFar
far_of_job (const Search *s, const LsDerivedFrom *job, const Tried *but, const char *value)
{
  g_autoptr (LsJobResult) planned = plan_of (s, job, but, value);
  g_autoptr (LsVersus) v = versus_of (job, planned);
  return far_of (v);
}

static LsFar
far_of_all (const Search *s, const Tried *but, const char *value)
{
  LsFar sum = { 0 };
  for (guint i = 0; i < s->jobs->len; i++) {
    const LsFar far = far_of_job (s, s->jobs->pdata[i], but, value);
    for (guint part = 0; part < LS_N_FAR; part++)
      sum.part[part] += far.part[part] / s->jobs->len;
  }
  return sum;
}

/* --- keys and their values ---------------------------------------------------------------------------- */

static void
tried_free (gpointer data)
{
  Tried *t = data;
  g_free (t->value);
  g_strfreev (t->others);
  g_free (t);
}

/* Files of a kind, by name. */
static void
add_files (GPtrArray *values, LsDataKind kind)
{
  g_autoptr (GPtrArray) all = ls_data_list (kind);
  for (guint i = 0; i < all->len; i++)
    g_ptr_array_add (values, g_strdup (((const LsDataEntry *) all->pdata[i])->name));
}

/* NULL: a size, or a text, of which there is no list. */
static char **
values_of (const LsField *f)
{
  static const struct {
    const char *key;
    LsDataKind kind;
  } files[] = { { "kernels", LS_DATA_KERNELS }, { "optimizer", LS_DATA_OPTIMIZERS } };
  GPtrArray *values = g_ptr_array_new ();
  if (f->kind == LS_FIELD_BOOL)
    for (guint i = 0; i < 2; i++)
      g_ptr_array_add (values, g_strdup (i == 0 ? "false" : "true"));
  for (const LsEnumName *n = f->kind == LS_FIELD_ENUM ? f->names : NULL; n && n->name; n++)
    if (ls_enum_name (f->names, n->value) == n->name && strcmp (n->name, "auto") != 0)
      g_ptr_array_add (values, g_strdup (n->name));
  for (const char *const *own = f->load ? f->load->own : NULL; own && *own; own++)
    g_ptr_array_add (values, g_strdup (*own));
  for (guint i = 0; i < G_N_ELEMENTS (files); i++)
    if (strcmp (files[i].key, f->key) == 0)
      add_files (values, files[i].kind);
  if (strcmp (f->key, "reshard_after_forward") == 0)
    for (guint i = 0; i < 2; i++)
      g_ptr_array_add (values, g_strdup_printf ("%u", i));
  g_ptr_array_add (values, NULL);
  char **texts = (char **) g_ptr_array_free (values, FALSE);
  if (!texts[0])
    g_clear_pointer (&texts, g_strfreev);
  return texts;
}

static bool
all_say (const Search *s, const char *key)
{
  for (guint i = 0; i < s->jobs->len; i++)
    if (!says (s->jobs->pdata[i], key))
      return false;
  return true;
}

static bool
any_has (const Search *s, const char *degree)
{
  const LsField *f = ls_field_find (ls_strategy_fields, degree);
  for (guint j = 0; j < s->jobs->len; j++) {
    const LsStrategy *strategy = &((const LsDerivedFrom *) s->jobs->pdata[j])->spec.strategy;
    if (G_STRUCT_MEMBER (uint32_t, strategy, f->offset) > 1)
      return true;
  }
  return false;
}

/* Ways to be parallel: keys of a topic say something where a job has more than one of these. */
static const struct {
  const char *degree, *topic;
} ways[] = { { "tp", "tensor" }, { "pp", "pipeline" }, { "cp", "context" }, { "ep", "experts" } };

static bool
is_of_other_way (const Search *s, const LsField *f)
{
  for (guint i = 0; i < G_N_ELEMENTS (ways); i++)
    if (g_strcmp0 (f->topic, ways[i].topic) == 0)
      return !any_has (s, ways[i].degree);
  return false;
}

static void
find_keys (Search *s)
{
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    if (f->file_only || f->of_job || g_strv_contains (of_users, f->key) || all_say (s, f->key)
        || is_of_other_way (s, f))
      continue;
    Tried *t = g_new0 (Tried, 1);
    *t = (Tried) { .field = f, .others = values_of (f) };
    g_ptr_array_add (s->tried, t);
  }
}

/* What each key is in the first job that does not say it; char *, NULL: there is none, or it is refused. */
static GPtrArray *
values_now (const Search *s)
{
  g_autoptr (GPtrArray) plans = g_ptr_array_new_with_free_func ((GDestroyNotify) ls_job_result_free);
  GPtrArray *values = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < s->jobs->len; i++)
    g_ptr_array_add (plans, plan_of (s, s->jobs->pdata[i], NULL, NULL));
  for (guint k = 0; k < s->tried->len; k++) {
    const LsField *f = ((const Tried *) s->tried->pdata[k])->field;
    guint i = 0;
    while (i < plans->len && says (s->jobs->pdata[i], f->key))
      i++;
    const LsJobResult *plan = i < plans->len ? plans->pdata[i] : NULL;
    g_ptr_array_add (values, plan ? ls_field_text (f, &plan->strategy, NULL) : NULL);
  }
  return values;
}

/* --- the search --------------------------------------------------------------------------------------- */

typedef struct {
  const Search *s;
  const Tried *t;
  LsFar *far;
} Turn;

static void
try_value (guint i, gpointer data)
{
  const Turn *turn = data;
  turn->far[i] = far_of_all (turn->s, turn->t, turn->t->others[i]);
}

/* The change that brings most nearer so far. */
typedef struct {
  Tried *t; /* NULL: there is none */
  const char *value;
  LsFar far;
  double gain; /* of all parts together */
} Best;

/* Tries all values of the key, and says of the nearest of the others by what and how much it is farther:
 * ret_key->next NULL if none is. is_now: its value. */
static void
turn_key (const Search *s, Tried *t, const char *is_now, const LsFar *far, Best *best, LsDerivedKey *ret_key)
{
  guint n = g_strv_length (t->others);
  g_autofree LsFar *each = g_new (LsFar, n + 1);
  Turn turn = { s, t, each };
  ls_parallel (n, s->n_threads, try_value, &turn, NULL);
  *ret_key = (LsDerivedKey) { .value = g_strdup (is_now), .key = t->field->key, .farther = INFINITY };
  for (guint i = 0; i < n; i++) {
    double gain = 0;
    LsFarPart by = farther_by (&each[i], far);
    for (guint part = 0; part < LS_N_FAR; part++)
      gain += far->part[part] - each[i].part[part];
    if (is_nearer (&each[i], far) && gain > best->gain)
      *best = (Best) { t, t->others[i], each[i], gain };
    double farther = by < LS_N_FAR ? each[i].part[by] - far->part[by] : 0;
    if (g_strcmp0 (t->others[i], is_now) == 0 || farther <= 0 || farther >= ret_key->farther)
      continue;
    g_free (ret_key->next);
    ret_key->next = g_strdup (t->others[i]);
    ret_key->by = by;
    ret_key->farther = farther;
  }
}

/* What the host does that a size says, which the plan has in proportion to it. */
static const struct {
  const char *key, *unit;
  int digits;
  bool is_of_all; /* the host's calls in all; else of Python, in the optimizer's step */
} slopes[] = { { "step_calls", "", 0, false }, { "host_launch", "us", 3, true } };

/* Seconds that the host of a side is busy with it, of all jobs. */
static double
host_s (const Search *s, LsVersusWhose side, guint slope, const Tried *t, const char *value)
{
  double sum = 0;
  for (guint i = 0; i < s->jobs->len; i++) {
    const LsDerivedFrom *job = s->jobs->pdata[i];
    g_autoptr (LsJobResult) planned = plan_of (s, job, t, value);
    g_autoptr (LsVersus) v = versus_of (job, planned);
    for (guint k = 0; v && k < v->rows->len; k++) {
      const LsVersusRow *row = &g_array_index (v->rows, LsVersusRow, k);
      if (row->section == LS_VERSUS_HOST
          && (slopes[slope].is_of_all || (row->part == LS_HOST_PYTHON && row->phase == LS_TAG_OPTIMIZER)))
        sum += ls_time_to_s (row->sides[side].time);
    }
  }
  return sum;
}

static Tried *
tried_of (const Search *s, const char *key)
{
  for (guint i = 0; i < s->tried->len; i++)
    if (strcmp (((Tried *) s->tried->pdata[i])->field->key, key) == 0)
      return s->tried->pdata[i];
  return NULL;
}

/* A line over the size, which meets what was captured at its value. NULL: it stays. */
static Tried *
find_size (Search *s, guint slope)
{
  Tried *t = tried_of (s, slopes[slope].key);
  if (!t)
    return NULL;
  g_autofree char *zero = g_strconcat ("0", slopes[slope].unit, NULL),
                  *unit = g_strconcat ("1", slopes[slope].unit, NULL);
  double captured = host_s (s, LS_VERSUS_CAPTURED, slope, t, NULL);
  double none = host_s (s, LS_VERSUS_PLANNED, slope, t, zero),
         one = host_s (s, LS_VERSUS_PLANNED, slope, t, unit);
  double value = one > none ? (captured - none) / (one - none) : 0;
  if (value <= 0)
    return NULL;
  g_free (t->value);
  t->value = g_strdup_printf ("%.*f%s", slopes[slope].digits, value, slopes[slope].unit);
  return t;
}

/* One turn; whether a key has another value than before. */
static bool
turn_all (Search *s, const GPtrArray *was, LsFar *far, LsDerived *d)
{
  Best best = { 0 };
  g_autoptr (GPtrArray) now = values_now (s);
  g_array_set_size (d->keys, 0);
  g_ptr_array_set_size (d->unseen, 0);
  g_ptr_array_set_size (d->sizes, 0);
  for (guint i = 0; i < s->tried->len; i++) {
    Tried *t = s->tried->pdata[i];
    LsDerivedKey key;
    if (!t->others) {
      g_ptr_array_add (d->sizes, (gpointer) t->field->key);
      continue;
    }
    turn_key (s, t, now->pdata[i], far, &best, &key);
    key.was = g_strdup (was->pdata[i]);
    if (key.next)
      ls_list_add (d->keys, &key);
    else {
      g_ptr_array_add (d->unseen, (gpointer) t->field->key);
      ls_clear_3_texts (&key);
    }
  }
  if (!best.t)
    return false;
  g_free (best.t->value);
  best.t->value = g_strdup (best.value);
  *far = best.far;
  return true;
}

static void
search (Search *s, LsDerived *d, const LsProgress *progress)
{
  LsFar far = far_of_all (s, NULL, NULL);
  g_autoptr (GPtrArray) was = values_now (s);
  for (guint turn = 0; turn < MOST_TURNS && turn_all (s, was, &far, d); turn++)
    ls_progress_tell (progress, turn + 1, 0);
  for (guint i = 0; i < G_N_ELEMENTS (slopes); i++) {
    Tried *t = find_size (s, i);
    if (!t)
      continue;
    g_ptr_array_remove (d->sizes, (gpointer) t->field->key);
    const LsDerivedKey key = { .value = g_strdup (t->value), .key = t->field->key };
    ls_list_add (d->keys, &key);
  }
}

/* --- the profile to begin with ------------------------------------------------------------------------ */

/* The job as of that program; the caller clears it if that is so. */
static bool
as_of (const LsDerivedFrom *job, const char *software, LsJobSpec *ret_spec)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new_counting ();
  g_autoptr (LsChange) change = ls_change_new ("another program", NULL, false);
  ls_change_set (change, "software", "%s", software);
  if (ls_change_make (change, &job->spec, ret_spec, diags))
    return true;
  ls_job_spec_clear (ret_spec);
  return false;
}

typedef struct {
  const Search *s;
  const GPtrArray *all; /* LsDataEntry */
  double *far;          /* of each: work and memory together */
} Start;

static void
try_start (guint i, gpointer data)
{
  const Start *start = data;
  double sum = 0;
  for (guint k = 0; k < start->s->jobs->len; k++) {
    LsDerivedFrom job = *(const LsDerivedFrom *) start->s->jobs->pdata[k];
    const char *name = ((const LsDataEntry *) start->all->pdata[i])->name;
    LsFar far = out_of_reach;
    if (as_of (start->s->jobs->pdata[k], name, &job.spec)) {
      far = far_of_job (start->s, &job, NULL, NULL);
      ls_job_spec_clear (&job.spec);
    }
    sum += far.part[LS_FAR_WORK] + far.part[LS_FAR_MEMORY];
  }
  start->far[i] = sum;
}

/* Has all jobs planned as of the nearest profile that is shipped; its name, newly allocated, or NULL: none
 * can run them, and they are as of the textbook. */
static char *
find_start (const Search *s)
{
  g_autoptr (GPtrArray) all = ls_data_list (LS_DATA_SOFTWARE);
  g_autofree double *far = g_new (double, all->len + 1);
  Start start = { s, all, far };
  ls_parallel (all->len, s->n_threads, try_start, &start, NULL);
  guint nearest = 0;
  for (guint i = 1; i < all->len; i++)
    nearest = far[i] < far[nearest] ? i : nearest;
  if (all->len == 0 || !isfinite (far[nearest]))
    return NULL;
  const char *name = ((const LsDataEntry *) all->pdata[nearest])->name;
  for (guint k = 0; k < s->jobs->len; k++) {
    LsDerivedFrom *job = s->jobs->pdata[k];
    LsJobSpec spec;
    if (!as_of (job, name, &spec))
      continue;
    ls_job_spec_clear (&job->spec);
    job->spec = spec;
  }
  return g_strdup (name);
}

/* --- the whole ---------------------------------------------------------------------------------------- */

/* FLOPs of products and attention, planned over captured; NAN: none were. */
static double
flops_of (const LsVersus *v)
{
  double flops[LS_N_VERSUS_SIDES] = { 0 };
  for (guint i = 0; i < v->sections->len; i++)
    for (guint side = 0; side < LS_N_VERSUS_SIDES; side++) {
      const LsVersusSum *sum = &g_array_index (v->sections, LsVersusSum, i);
      bool counts = sum->section == LS_VERSUS_PRODUCTS || sum->section == LS_VERSUS_ATTENTION;
      flops[side] += counts ? sum->sides[side].flops : 0;
    }
  return flops[LS_VERSUS_CAPTURED] > 0 ? flops[LS_VERSUS_PLANNED] / flops[LS_VERSUS_CAPTURED] : NAN;
}

static void
add_job (LsDerived *d, const Search *s, const Search *based, const LsDerivedFrom *job)
{
  g_autoptr (LsJobResult) as_based = plan_of (based, job, NULL, NULL), derived = plan_of (s, job, NULL, NULL);
  g_autoptr (LsVersus) of_based = versus_of (job, as_based), of_derived = versus_of (job, derived);
  LsDerivedJob row
      = { .trace = g_path_get_basename (job->trace),
          .model = g_strdup (derived ? derived->model.name : ""),
          .job = derived ? ls_knobs_summary (&derived->strategy, &derived->model) : g_strdup (""),
          .n_ranks = job->captured->plan->n_ranks,
          .captured_s = ls_job_result_step_time_s (job->captured),
          .based_s = as_based ? ls_job_result_step_time_s (as_based) : NAN,
          .derived_s = derived ? ls_job_result_step_time_s (derived) : NAN,
          .based = far_of (of_based),
          .derived = far_of (of_derived),
          .flops = of_derived ? flops_of (of_derived) : NAN };
  ls_list_add (d->jobs, &row);
}

static void
clear_job_row (gpointer data)
{
  LsDerivedJob *j = data;
  g_free (j->trace);
  g_free (j->model);
  g_free (j->job);
}

void
ls_derived_free (LsDerived *d)
{
  if (!d)
    return;
  g_free (d->based_on);
  g_free (d->made_with);
  g_array_unref (d->jobs);
  g_array_unref (d->keys);
  g_ptr_array_unref (d->unseen);
  g_ptr_array_unref (d->sizes);
  g_ptr_array_unref (d->ways);
  g_free (d);
}

/* Each can be planned, is of its capture, and says of what its kernels are. */
static gboolean
check_job (const LsDerivedFrom *job, GError **error)
{
  g_autoptr (LsJobResult) planned = ls_job_spec_run (&job->spec, error);
  g_autoptr (LsVersus) v = planned ? ls_versus_new (job->captured, planned, 0, error) : NULL;
  bool has_parts = false;
  for (guint i = 0; v && i < v->sites->len; i++) {
    const LsVersusSum *sum = &g_array_index (v->sites, LsVersusSum, i);
    has_parts |= sum->site != LS_SITE_OTHER && sum->sides[LS_VERSUS_CAPTURED].n > 0;
  }
  return v
      && (has_parts
          || ls_fail (error, LS_ERROR_UNSUPPORTED,
                      "%s: expected a step of lockstep capture -o, which says of what part of the model its "
                      "kernels are",
                      job->trace));
}

LsDerived *
ls_derived_of (const GPtrArray *jobs, const char *software, guint n_threads, const LsProgress *progress,
               GError **error)
{
  g_autoptr (GPtrArray) tried = g_ptr_array_new_with_free_func (tried_free), none = g_ptr_array_new ();
  Search s = { jobs, tried, n_threads };
  const Search based = { jobs, none, n_threads };
  for (guint i = 0; i < jobs->len; i++)
    if (!check_job (jobs->pdata[i], error))
      return NULL;
  char *based_on = software ? g_strdup (software) : find_start (&based);
  find_keys (&s);
  LsDerived *d = g_new0 (LsDerived, 1);
  *d = (LsDerived) { .based_on = based_on,
                     .is_nearest = !software,
                     .jobs = ls_list_new (sizeof (LsDerivedJob), clear_job_row),
                     .keys = ls_list_new (sizeof (LsDerivedKey), ls_clear_3_texts),
                     .unseen = g_ptr_array_new (),
                     .sizes = g_ptr_array_new (),
                     .ways = g_ptr_array_new () };
  search (&s, d, progress);
  for (guint i = 0; i < G_N_ELEMENTS (ways); i++)
    if (!any_has (&s, ways[i].degree))
      g_ptr_array_add (d->ways, (gpointer) ways[i].degree);
  GString *made_with = g_string_new (NULL);
  for (guint i = 0; i < jobs->len; i++) {
    const LsDerivedFrom *job = jobs->pdata[i];
    const char *source = job->captured->trace_source ? job->captured->trace_source : "a plan";
    add_job (d, &s, &based, job);
    if (!strstr (made_with->str, source))
      g_string_append_printf (made_with, "%s%s", made_with->len > 0 ? "; " : "", source);
  }
  d->made_with = g_string_free (made_with, FALSE);
  return d;
}

LsDerived *
ls_derived_new (const LsJobSpec *base, const char *table, guint n_threads, const LsProgress *progress,
                GError **error)
{
  g_autoptr (GPtrArray) jobs = read_jobs (table, base, error);
  return jobs ? ls_derived_of (jobs, base->software ? base->software_name : NULL, n_threads, progress, error)
              : NULL;
}
