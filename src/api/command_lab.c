/* `lockstep lab`: exercises, and grades of answers to them. */
#include <string.h>

#include "api/answer.h"
#include "api/commands.h"
#include "api/request.h"
#include "show/answers.h"

static void
lab_free (gpointer lab)
{
  ls_data_file_free (&ls_lab_file, lab);
}

static LsLab *
load (const char *name, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_LABS, name, diags);
  LsLab *lab = doc ? ls_data_file_new (&ls_lab_file, doc, diags) : NULL;
  if (!lab)
    ls_diag_list_to_error (diags, error);
  return lab;
}

/* By name; NULL: one of them is wrong. */
static GPtrArray *
load_all (GError **error)
{
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_LABS),
                        labs = g_ptr_array_new_with_free_func (lab_free);
  for (guint i = 0; i < entries->len; i++) {
    LsLab *lab = load (((const LsDataEntry *) entries->pdata[i])->path, error);
    if (!lab)
      return NULL;
    g_ptr_array_add (labs, lab);
  }
  if (labs->len == 0)
    return ls_fail_null (
        error, LS_ERROR_INPUT,
        "no labs were found in strategies/labs: Lockstep's data are not there (LS_DATA_DIR)");
  return g_steal_pointer (&labs);
}

/* --- command lines of a lab ------------------------------------------------------------------------- */

/* Sets "--key value", "--key=value" and "--switch". */
static gboolean
set_words (LsRequest *r, char **words, GError **error)
{
  for (char **word = words; *word; word++) {
    g_auto (GStrv) pair = g_strsplit (*word, "=", 2);
    if (!g_str_has_prefix (*word, "--"))
      return ls_fail (error, LS_ERROR_INPUT, "a lab runs \"%s\", which is no option", *word);
    const LsOption *o = command_option (&ls_request_command (r)->shown, pair[0] + 2);
    const char *value = pair[1] ? pair[1] : o && o->argument && word[1] ? *++word : NULL;
    if (!ls_request_set (r, pair[0] + 2, value, error))
      return FALSE;
  }
  return TRUE;
}

/* Adds the knobs of a student to a job. */
static gboolean
add_knobs (const LsRequest *from, LsRequest *to, GError **error)
{
  const char *value;
  const LsOption *o;
  for (guint i = 0; (o = ls_request_given (from, i, &value)); i++)
    if (o->topic && !ls_request_set (to, o->key, value, error))
      return FALSE;
  return TRUE;
}

static cJSON *
run (const char *line, bool is_own, gpointer student, GError **error)
{
  g_auto (GStrv) words = NULL;
  if (!g_shell_parse_argv (line, NULL, &words, error))
    return NULL;
  g_autoptr (LsRequest) r = ls_request_new (words[0], error);
  if (!r || !set_words (r, words + 1, error) || (is_own && !add_knobs (student, r, error)))
    return NULL;
  g_autoptr (LsAnswer) a = ls_request_run (r, error);
  g_autofree char *json = a ? ls_answer_format (a, LS_FORM_JSON, NULL) : NULL;
  return json ? cJSON_Parse (json) : NULL;
}

/* --- grades ----------------------------------------------------------------------------------------- */

typedef struct {
  LsLab *lab;
  LsLabGrades *grades;
} Checked;

static void
checked_free (gpointer data)
{
  Checked *c = data;
  ls_lab_grades_free (c->grades);
  lab_free (c->lab);
  g_free (c);
}

/* Whether the command line of the task has this option so already. */
static bool
is_of_task (const LsRequest *task, const char *key, const char *value)
{
  const char *other;
  const LsOption *o;
  for (guint i = 0; (o = ls_request_given (task, i, &other)); i++)
    if (strcmp (o->key, key) == 0 && g_strcmp0 (other, value) == 0)
      return true;
  return false;
}

/* "--micro-batch", newly allocated. */
static char *
flag_of (const char *key)
{
  char *flag = g_strconcat ("--", key, NULL);
  return g_strdelimit (flag, "_", '-');
}

/* Whether each knob is the student's to choose, or as the task has it. */
static gboolean
may_choose (const LsRequest *r, const LsLab *lab, GError **error)
{
  const char *value;
  const LsOption *o;
  const GArray *choose = lab->task.choose;
  g_auto (GStrv) words = NULL;
  bool has_task = lab->task.run && g_shell_parse_argv (lab->task.run, NULL, &words, NULL);
  g_autoptr (LsRequest) task = has_task ? ls_request_new (words[0], NULL) : NULL;
  if (task && !set_words (task, words + 1, error))
    return FALSE;
  for (guint i = 0; (o = ls_request_given (r, i, &value)); i++) {
    bool may = !o->topic || (task && is_of_task (task, o->key, value));
    g_autoptr (GString) flags = g_string_new (NULL);
    g_autofree char *own = flag_of (o->key);
    for (guint k = 0; choose && k < choose->len; k++) {
      const char *key = g_array_index (choose, char *, k);
      g_autofree char *flag = flag_of (key);
      may |= strcmp (o->key, key) == 0;
      g_string_append_printf (flags, "%s%s", k > 0 ? ", " : "", flag);
    }
    if (!may)
      return ls_fail (error, LS_ERROR_USAGE, "%s is not yours to choose in %s, but %s", own, lab->name,
                      flags->len > 0 ? flags->str : "no option is");
  }
  return TRUE;
}

LS_ANSWER_FORM (grades_to_text, ls_lab_grades_to_text (((const Checked *) data)->grades))
LS_ANSWER_FORM (grades_to_json, ls_lab_grades_to_json (((const Checked *) data)->grades))

static gboolean
check (const LsRequest *r, LsLab *lab, LsAnswer *a, GError **error)
{
  static const LsAnswerForms forms = { .text = grades_to_text, .json = grades_to_json, .free = checked_free };
  g_autofree const char **answers = ls_request_texts (r, "answer");
  LsLabGrades *grades = may_choose (r, lab, error)
      ? ls_lab_grade (lab, answers, ls_request_has_knobs (r), run, (gpointer) r, error)
      : NULL;
  if (!grades) {
    lab_free (lab);
    return FALSE;
  }
  guint n = grades->n_wrong + grades->n_right;
  if (n == 1 && grades->n_wrong == 1)
    ls_answer_fail_with (a, LS_ERROR_TOLERANCE, "the answer is wrong");
  else if (grades->n_wrong > 0)
    ls_answer_fail_with (a, LS_ERROR_TOLERANCE, "%u of %u answers %s wrong", grades->n_wrong, n,
                         grades->n_wrong == 1 ? "is" : "are");
  Checked *c = g_new (Checked, 1);
  *c = (Checked) { lab, grades };
  ls_answer_take (a, c, &forms);
  return TRUE;
}

static gboolean
list (LsAnswer *a, GError **error)
{
  g_autoptr (GPtrArray) labs = load_all (error);
  if (labs)
    ls_answer_take_text (a, ls_labs_to_text (labs));
  return labs != NULL;
}

gboolean
command_lab (const LsRequest *r, LsAnswer *a, GError **error)
{
  const char *action = ls_request_text (r, "action");
  if (strcmp (action, "list") == 0)
    return list (a, error);
  LsLab *lab = load (ls_request_text (r, "name"), error);
  if (!lab)
    return FALSE;
  if (strcmp (action, "check") == 0)
    return check (r, lab, a, error);
  ls_answer_take_text (a, ls_lab_to_text (lab));
  lab_free (lab);
  return TRUE;
}
