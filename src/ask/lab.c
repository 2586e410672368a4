#include "ask/lab.h"

#include <math.h>
#include <string.h>

#include "base/suggest.h"

const char *
ls_lab_verdict_name (LsLabVerdict verdict)
{
  static const char *const names[]
      = { [LS_LAB_OPEN] = "open", [LS_LAB_RIGHT] = "right", [LS_LAB_WRONG] = "wrong" };
  return names[verdict];
}

/* --- what was measured ------------------------------------------------------------------------------ */

typedef struct {
  const LsLab *lab;
  LsLabRun run;
  gpointer data;
  GHashTable *results; /* by command line; "" is the student's own */
} Lab;

/* Each command runs once. */
static const cJSON *
result_of (Lab *l, const char *line, bool is_own, GError **error)
{
  const char *key = is_own ? "" : line;
  cJSON *result = g_hash_table_lookup (l->results, key);
  if (!result && (result = l->run (line, is_own, l->data, error)))
    g_hash_table_insert (l->results, g_strdup (key), result);
  return result;
}

static gboolean
number_at (const cJSON *result, const char *path, double *ret_value, GError **error)
{
  const cJSON *node = ls_json_at (result, path);
  if (!cJSON_IsNumber (node) && !cJSON_IsBool (node))
    return ls_fail (error, LS_ERROR_INPUT, "the result has no number \"%s\"", path);
  *ret_value = cJSON_IsBool (node) ? cJSON_IsTrue (node) : node->valuedouble;
  return TRUE;
}

static gboolean
look_up (const char *name, double *ret_value, gpointer data, GError **error)
{
  Lab *l = data;
  const char *own = ls_lab_own_key (name), *measure = own ? NULL : ls_lab_measure (l->lab, name),
             *end = measure ? strstr (measure, " => ") : NULL;
  g_autofree char *line = own ? g_strdup (l->lab->task.run) : g_strndup (measure, (gsize) (end - measure));
  const cJSON *result = result_of (l, line, own != NULL, error);
  return result && number_at (result, own ? own : end + strlen (" => "), ret_value, error);
}

static gboolean
value_of (Lab *l, const char *formula, double *ret_value, GError **error)
{
  return ls_lab_formula (formula, look_up, l, ret_value, error);
}

#define NEAR_MISTAKE 0.1 /* of its value: what is farther was calculated otherwise */

static const char other_unit[] = "The number is right in another unit than the one that the question names.";

/* --- one answer ------------------------------------------------------------------------------------- */

/* Whether the answer is nearer than reach in another unit: a share for per cent, GB for GiB, ms for s. */
static bool
is_other_unit (double given, double value, double reach)
{
  static const double factors[] = { 100, 1000, 1e6, 1e9, 1024, 1048576, 8, 60, 3600 };
  static const double binary[] = { 1.073741824, 1.048576 }; /* GiB, MiB for GB, MB */
  for (guint i = 0; i < G_N_ELEMENTS (factors); i++)
    if (fabs (given * factors[i] - value) < reach || fabs (given / factors[i] - value) < reach)
      return true;
  for (guint i = 0; i < G_N_ELEMENTS (binary); i++)
    if (fabs (given * binary[i] - value) < reach)
      return true;
  return false;
}

static gboolean
grade_number (Lab *l, const LsLabQuestion *q, LsLabGrade *g, GError **error)
{
  double value, nearest = INFINITY;
  if (!value_of (l, q->value, &value, error))
    return FALSE;
  double reach = q->within * fabs (value);
  g->hint = q->hint;
  for (guint i = 0; i < q->mistakes->len; i++) {
    const LsLabMistake *m = &g_array_index (q->mistakes, LsLabMistake, i);
    double wrong;
    if (!value_of (l, m->value, &wrong, error))
      return FALSE;
    double half = fabs (wrong - value) / 2, off = fabs (g->given - wrong);
    reach = MIN (reach, half);
    if (off > MIN (half, NEAR_MISTAKE * fabs (wrong)) || off >= nearest)
      continue;
    nearest = off;
    g->hint = m->hint;
  }
  g->verdict = fabs (g->given - value) <= reach ? LS_LAB_RIGHT : LS_LAB_WRONG;
  if (*g->unit && is_other_unit (g->given, value, MIN (reach, nearest)))
    g->hint = other_unit;
  return TRUE;
}

static gboolean
grade_configuration (Lab *l, LsLabGrade *g, GError **error)
{
  const LsLabTask *t = &l->lab->task;
  double holds, is_made = 0;
  if (!value_of (l, t->right, &holds, error))
    return FALSE;
  g->verdict = holds != 0 ? LS_LAB_RIGHT : LS_LAB_WRONG;
  g->hint = t->hint;
  for (guint i = 0; i < t->mistakes->len && holds == 0 && is_made == 0; i++) {
    const LsLabMistake *m = &g_array_index (t->mistakes, LsLabMistake, i);
    if (!value_of (l, m->value, &is_made, error))
      return FALSE;
    if (is_made != 0)
      g->hint = m->hint;
  }
  return TRUE;
}

/* --- all answers ------------------------------------------------------------------------------------ */

static gboolean
refuse_name (const LsLab *lab, const char *name, GError **error)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  for (guint i = 0; i < lab->questions->len; i++)
    g_ptr_array_add (names, g_array_index (lab->questions, LsLabQuestion, i).name);
  g_ptr_array_add (names, NULL);
  g_autofree char *hint = ls_did_you_mean (name, (const char *const *) names->pdata),
                  *all = g_strjoinv (", ", (char **) (gpointer) names->pdata);
  return ls_fail (error, LS_ERROR_USAGE, "%s asks for %s, not for \"%s\"%s", lab->name, all, name, hint);
}

/* Puts "NAME=NUMBER" to its question. */
static gboolean
take_answer (LsLabGrades *all, const char *answer, GError **error)
{
  const char *sign = strchr (answer, '=');
  if (!sign)
    return ls_fail (error, LS_ERROR_USAGE, "expected NAME=NUMBER; got \"%s\"", answer);
  g_autofree char *name = g_strndup (answer, (gsize) (sign - answer));
  for (guint i = 0; i < all->lab->questions->len; i++) {
    LsLabGrade *g = &g_array_index (all->grades, LsLabGrade, i);
    if (strcmp (g->name, name) != 0)
      continue;
    char *end;
    if (g->verdict != LS_LAB_OPEN)
      return ls_fail (error, LS_ERROR_USAGE, "%s is answered twice", name);
    g->given = g_ascii_strtod (sign + 1, &end);
    bool is_number = end > sign + 1 && *end == '\0' && isfinite (g->given);
    g->verdict = LS_LAB_WRONG; /* until it is graded */
    return is_number
        || ls_fail (error, LS_ERROR_USAGE, "%s: expected a number%s%s; got \"%s\"", name,
                    *g->unit ? " in " : "", g->unit, sign + 1);
  }
  return refuse_name (all->lab, name, error);
}

static LsLabGrades *
open_grades (const LsLab *lab)
{
  LsLabGrades *all = g_new0 (LsLabGrades, 1);
  *all = (LsLabGrades) { lab, g_array_new (FALSE, TRUE, sizeof (LsLabGrade)), 0, 0 };
  for (guint i = 0; i < lab->questions->len; i++) {
    const LsLabQuestion *q = &g_array_index (lab->questions, LsLabQuestion, i);
    g_array_append_vals (all->grades,
                         &(LsLabGrade) { q->name, LS_LAB_OPEN, NAN, q->unit ? q->unit : "", NULL }, 1);
  }
  if (lab->task.run)
    g_array_append_vals (all->grades, &(LsLabGrade) { "configuration", LS_LAB_OPEN, NAN, "", NULL }, 1);
  return all;
}

static gboolean
grade_all (Lab *l, LsLabGrades *all, bool has_own, GError **error)
{
  for (guint i = 0; i < all->grades->len; i++) {
    LsLabGrade *g = &g_array_index (all->grades, LsLabGrade, i);
    bool is_task = i == l->lab->questions->len;
    if (is_task ? !has_own : g->verdict == LS_LAB_OPEN)
      continue;
    if (!(is_task ? grade_configuration (l, g, error)
                  : grade_number (l, &g_array_index (l->lab->questions, LsLabQuestion, i), g, error)))
      return FALSE;
    all->n_right += g->verdict == LS_LAB_RIGHT;
    all->n_wrong += g->verdict == LS_LAB_WRONG;
    if (g->verdict == LS_LAB_RIGHT)
      g->hint = NULL;
  }
  return TRUE;
}

LsLabGrades *
ls_lab_grade (const LsLab *lab, const char *const *answers, bool has_own, LsLabRun run, gpointer data,
              GError **error)
{
  g_return_val_if_fail (lab && run, NULL);
  LsLabGrades *all = open_grades (lab);
  Lab l = { lab, run, data,
            g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify) cJSON_Delete) };
  gboolean ok = TRUE;
  for (guint i = 0; answers && answers[i] && ok; i++)
    ok = take_answer (all, answers[i], error);
  ok = ok && grade_all (&l, all, has_own, error);
  g_hash_table_unref (l.results);
  if (!ok)
    g_clear_pointer (&all, ls_lab_grades_free);
  return all;
}

void
ls_lab_grades_free (LsLabGrades *grades)
{
  if (!grades)
    return;
  g_array_unref (grades->grades);
  g_free (grades);
}
