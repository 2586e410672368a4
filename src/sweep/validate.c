#include "sweep/validate.h"

#include <math.h>
#include <string.h>

#include "io/read_cases.h"
#include "io/read_strategy.h"
#include "sweep/family.h"
#include "sweep/job.h"
#include "sweep/score.h"

/* A cluster that rows name: loaded once, before the threads start. */
typedef struct {
  LsHardware *hardware; /* NULL: refused, with reason */
  char *reason;
} Hardware;

struct LsValidationRun {
  GPtrArray *cases;     /* LsCase, all of the file               */
  GPtrArray *chosen;    /* borrowed from cases, in file order    */
  GPtrArray *families;  /* char *, of chosen, owned              */
  GHashTable *hardware; /* cluster name (borrowed) -> Hardware   */
  const LsRunOptions *options;
  char **assume;        /* "key=value"                           */
  LsScoreRow *rows;     /* [chosen->len], reasons owned          */
  GArray *by_family;    /* LsFamilyScore                         */
  LsScores scores;
};

static void
hardware_free (gpointer data)
{
  Hardware *h = data;
  ls_hardware_free (h->hardware);
  g_free (h->reason);
  g_free (h);
}

void
ls_validation_run_free (LsValidationRun *v)
{
  if (!v)
    return;
  for (guint i = 0; v->rows && i < v->chosen->len; i++)
    g_free ((char *) v->rows[i].reason);
  g_free (v->rows);
  g_array_unref (v->by_family);
  g_hash_table_unref (v->hardware);
  g_ptr_array_unref (v->families);
  g_ptr_array_unref (v->chosen);
  g_clear_pointer (&v->cases, g_ptr_array_unref);
  g_strfreev (v->assume);
  g_free (v);
}

static LsValidationRun *
validation_new (const LsRunOptions *options)
{
  LsValidationRun *v = g_new0 (LsValidationRun, 1);
  v->chosen = g_ptr_array_new ();
  v->families = g_ptr_array_new_with_free_func (g_free);
  v->hardware = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, hardware_free);
  v->by_family = g_array_new (FALSE, TRUE, sizeof (LsFamilyScore));
  v->options = options;
  return v;
}

/* The first diagnostic of an error in one line, without its "error: ". */
static char *
one_line (const GError *error)
{
  g_autofree char *line = g_strndup (error->message, strcspn (error->message, "\n"));
  const char *mark = strstr (line, "error: ");
  return g_strdup (mark && (mark == line || mark[-1] == ' ') ? mark + strlen ("error: ") : line);
}

static gboolean
read_cases (LsValidationRun *v, const char *path, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  v->cases = ls_read_cases (path, diags);
  return v->cases || ls_diag_list_to_error (diags, error);
}

static GRegex *
compile_regex (const char *pattern, GError **error)
{
  GRegex *regex = g_regex_new (pattern, G_REGEX_OPTIMIZE, 0, NULL);
  if (!regex)
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--only: expected a regular expression; got \"%s\"", pattern);
  return regex;
}

static void
choose (LsValidationRun *v, const char *split, const GRegex *only)
{
  for (guint i = 0; i < v->cases->len; i++) {
    LsCase *c = g_ptr_array_index (v->cases, i);
    if ((split && strcmp (split, c->split) != 0) || (only && !g_regex_match (only, c->id, 0, NULL)))
      continue;
    g_ptr_array_add (v->chosen, c);
    g_ptr_array_add (v->families, ls_family_of_id (c->id));
    c->strategy.tp_async = ls_family_tp_async (g_ptr_array_index (v->families, v->families->len - 1));
    c->strategy.backward_prefetch = ls_family_backward_prefetch (g_ptr_array_index (v->families, v->families->len - 1));
    c->strategy.collective_lists = c->strategy.zero_stage == 3 && ls_family_collective_lists (g_ptr_array_index (v->families, v->families->len - 1));
    c->strategy.grad_norm = ls_family_grad_norm (c->id, c->strategy.schedule);
    c->strategy.attention_kernel = ls_family_attention_kernel (c->id, c->strategy.gpus);
  }
}

/* Rows that were asked for and are not there are a mistake, not a perfect score. */
static gboolean
check_chosen (const LsValidationRun *v, const LsValidateSpec *spec, GError **error)
{
  if (v->chosen->len > 0)
    return TRUE;
  g_autofree char *split = spec->split ? g_strconcat (" --split ", spec->split, NULL) : g_strdup ("");
  g_autofree char *only = spec->only ? g_strconcat (" --only ", spec->only, NULL) : g_strdup ("");
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "no row matches%s%s", split, only);
  return FALSE;
}

/* Sets the knobs that are assumed for every chosen row. */
static gboolean
assume (LsValidationRun *v, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  for (guint k = 0; v->assume && v->assume[k]; k++) {
    g_auto (GStrv) pair = g_strsplit (v->assume[k], "=", 2);
    if (g_strv_length (pair) != 2) {
      g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--assume: expected KNOB=VALUE such as \"recompute=none\"; got \"%s\"", v->assume[k]);
      return FALSE;
    }
    for (guint i = 0; i < v->chosen->len && ls_diag_list_n (diags) == 0; i++)
      ls_field_set_text (ls_strategy_fields, &((LsCase *) g_ptr_array_index (v->chosen, i))->strategy, pair[0], pair[1], diags);
  }
  return ls_diag_list_n (diags) == 0 || ls_diag_list_to_error (diags, error);
}

static void
load_hardware (LsValidationRun *v)
{
  for (guint i = 0; i < v->chosen->len; i++) {
    const LsCase *c = g_ptr_array_index (v->chosen, i);
    if (g_hash_table_contains (v->hardware, c->cluster))
      continue;
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    Hardware *h = g_new0 (Hardware, 1);
    h->hardware = ls_hardware_load (c->cluster, diags);
    g_autoptr (GError) error = NULL;
    if (!h->hardware && !ls_diag_list_to_error (diags, &error))
      h->reason = one_line (error);
    g_hash_table_insert (v->hardware, c->cluster, h);
  }
}

/* Runs one row and fills its slot; called from several threads, each on a slot of
 * its own. */
static void
run_case (gpointer index_plus_one, gpointer data)
{
  LsValidationRun *v = data;
  guint i = GPOINTER_TO_UINT (index_plus_one) - 1;
  const LsCase *c = g_ptr_array_index (v->chosen, i);
  LsScoreRow *row = &v->rows[i];
  *row = (LsScoreRow){ .id = c->id, .measured_s = c->measured_s, .predicted_s = NAN };

  const Hardware *h = g_hash_table_lookup (v->hardware, c->cluster);
  if (!h->hardware) {
    row->reason = g_strdup (h->reason);
    return;
  }
  LsModel model;
  ls_model_copy (&model, &c->model);
  ls_family_complete_model (g_ptr_array_index (v->families, i), &model);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) result
    = ls_job_simulate (&model, h->hardware, 0, &c->strategy, v->options, &error);
  if (result)
    row->predicted_s = ls_job_result_step_time_s (result);
  else
    row->reason = one_line (error);
  ls_model_clear (&model);
}

static gboolean
run_all (LsValidationRun *v, guint n_threads, GError **error)
{
  v->rows = g_new0 (LsScoreRow, MAX (v->chosen->len, 1));
  GThreadPool *pool = g_thread_pool_new (run_case, v, (gint) n_threads, FALSE, error);
  if (!pool)
    return FALSE;
  for (guint i = 0; i < v->chosen->len; i++)
    g_thread_pool_push (pool, GUINT_TO_POINTER (i + 1), NULL);
  g_thread_pool_free (pool, FALSE, TRUE);
  return TRUE;
}

static gboolean
is_scored (const LsValidationRun *v, const char *family)
{
  for (guint i = 0; i < v->by_family->len; i++)
    if (strcmp (g_array_index (v->by_family, LsFamilyScore, i).family, family) == 0)
      return TRUE;
  return FALSE;
}

static void
score_family (LsValidationRun *v, const char *family)
{
  g_autofree LsScoreRow *rows = g_new (LsScoreRow, v->chosen->len);
  guint n = 0;
  for (guint i = 0; i < v->chosen->len; i++)
    if (strcmp (g_ptr_array_index (v->families, i), family) == 0)
      rows[n++] = v->rows[i];
  LsFamilyScore line = { .family = family };
  ls_score (rows, n, &line.score);
  g_array_append_val (v->by_family, line);
}

static void
score (LsValidationRun *v)
{
  for (guint i = 0; i < v->families->len; i++)
    if (!is_scored (v, g_ptr_array_index (v->families, i)))
      score_family (v, g_ptr_array_index (v->families, i));

  v->scores = (LsScores){
    .n_families = v->by_family->len,
    .families = (const LsFamilyScore *) (gpointer) v->by_family->data,
    .n_rows = v->chosen->len,
    .rows = v->rows,
    .assumed = (const char *const *) v->assume,
  };
  ls_score (v->rows, v->chosen->len, &v->scores.total);
  v->scores.total.kendall_tau = ls_score_mean_tau (v->scores.families, v->scores.n_families);
}

LsValidationRun *
ls_validate (const LsValidateSpec *spec, GError **error)
{
  LsRunOptions options = *spec->options;
  options.no_spans = true;
  g_autoptr (LsValidationRun) v = validation_new (&options);
  g_autoptr (GRegex) only = spec->only ? compile_regex (spec->only, error) : NULL;
  if ((spec->only && !only) || !read_cases (v, spec->cases_path, error))
    return NULL;
  choose (v, spec->split, only);
  if (!check_chosen (v, spec, error))
    return NULL;
  v->assume = g_strdupv ((char **) spec->assume);
  if (!assume (v, error))
    return NULL;
  load_hardware (v);
  if (!run_all (v, spec->n_threads > 0 ? spec->n_threads : g_get_num_processors (), error))
    return NULL;
  score (v);
  v->options = NULL;
  return g_steal_pointer (&v);
}

const LsScores *
ls_validation_run_scores (const LsValidationRun *v)
{
  return &v->scores;
}
