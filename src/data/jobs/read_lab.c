#include "data/jobs/read_lab.h"

#include <math.h>
#include <string.h>

static const LsField mistake_fields[] = {
  { "value", LS_FIELD_STRING, offsetof (LsLabMistake, value), .required = true },
  { "hint", LS_FIELD_STRING, offsetof (LsLabMistake, hint), .required = true },
  { .table = "lab.mistakes" },
};

#define MISTAKES(type)                                                                                       \
  {                                                                                                          \
    "mistakes", LS_FIELD_ARRAY, offsetof (type, mistakes), .required = true, .fields = mistake_fields,       \
                                                           .element_size = sizeof (LsLabMistake)             \
  }

static const LsField question_fields[] = {
  { "name", LS_FIELD_STRING, offsetof (LsLabQuestion, name), .required = true },
  { "ask", LS_FIELD_STRING, offsetof (LsLabQuestion, ask), .required = true },
  { "unit", LS_FIELD_STRING, offsetof (LsLabQuestion, unit) },
  { "value", LS_FIELD_STRING, offsetof (LsLabQuestion, value), .required = true },
  { "within", LS_FIELD_DOUBLE, offsetof (LsLabQuestion, within), .required = true, .above = true,
    .max = 0.5 },
  { "hint", LS_FIELD_STRING, offsetof (LsLabQuestion, hint), .required = true },
  MISTAKES (LsLabQuestion),
  { .table = "lab.questions" },
};

static const LsField task_fields[] = {
  { "ask", LS_FIELD_STRING, offsetof (LsLabTask, ask), .required = true },
  { "run", LS_FIELD_STRING, offsetof (LsLabTask, run), .required = true },
  { "choose", LS_FIELD_ARRAY, offsetof (LsLabTask, choose), .required = true, LS_FIELD_TEXTS },
  { "right", LS_FIELD_STRING, offsetof (LsLabTask, right), .required = true },
  { "hint", LS_FIELD_STRING, offsetof (LsLabTask, hint), .required = true },
  MISTAKES (LsLabTask),
  { .table = "lab.task" },
};

const LsField ls_lab_fields[] = {
  LS_FIELDS_HEADER (LsLab),
  { "title", LS_FIELD_STRING, offsetof (LsLab, title), .required = true },
  { "minutes", LS_FIELD_UINT, offsetof (LsLab, minutes), .required = true, .min = 1, .max = 600 },
  { "aims", LS_FIELD_ARRAY, offsetof (LsLab, aims), .required = true, LS_FIELD_TEXTS },
  { "read", LS_FIELD_ARRAY, offsetof (LsLab, read), .required = true, LS_FIELD_TEXTS },
  { "commands", LS_FIELD_ARRAY, offsetof (LsLab, commands), .required = true, LS_FIELD_TEXTS },
  { "explain", LS_FIELD_ARRAY, offsetof (LsLab, explain), .required = true, LS_FIELD_TEXTS },
  { "explained", LS_FIELD_ARRAY, offsetof (LsLab, explained), LS_FIELD_TEXTS },
  { "measures", LS_FIELD_SETTINGS, offsetof (LsLab, measures) },
  { "questions", LS_FIELD_ARRAY, offsetof (LsLab, questions), .required = true, .fields = question_fields,
    .element_size = sizeof (LsLabQuestion) },
  { "task", LS_FIELD_OBJECT, offsetof (LsLab, task), .fields = task_fields },
  { .table = "lab" },
};

const char *
ls_lab_own_key (const char *name)
{
  return g_str_has_prefix (name, "own.") ? name + strlen ("own.") : NULL;
}

const char *
ls_lab_measure (const LsLab *lab, const char *name)
{
  const size_t n = strlen (name);
  for (char **m = lab->measures; m && *m; m++)
    if (strncmp (*m, name, n) == 0 && (*m)[n] == '=')
      return *m + n + 1;
  return NULL;
}

/* --- formulas --------------------------------------------------------------------------------------- */

typedef struct {
  const char *text, *at;
  LsLabLookup lookup;
  gpointer data;
  GError *error; /* the first */
  guint depth;   /* of what is open */
} Reader;

#define MAX_DEPTH 64

static double formula (Reader *r);

static double
expected (Reader *r, const char *what)
{
  if (!r->error)
    r->error
        = g_error_new (LS_ERROR, LS_ERROR_INPUT, "\"%s\": expected %s before \"%s\"", r->text, what, r->at);
  return NAN;
}

/* Passes over blanks and the text, where that comes next. */
static bool
takes (Reader *r, const char *text)
{
  while (*r->at == ' ')
    r->at++;
  if (r->error || !g_str_has_prefix (r->at, text))
    return false;
  r->at += strlen (text);
  return true;
}

static double
name (Reader *r)
{
  const char *letters = G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_.";
  g_autofree char *word = g_strndup (r->at, strspn (r->at, letters));
  double value = NAN;
  r->at += strlen (word);
  r->lookup (word, &value, r->data, &r->error);
  return value;
}

static double
factor (Reader *r)
{
  if (r->depth >= MAX_DEPTH)
    return expected (r, "less nesting");
  double value = NAN;
  r->depth++;
  if (takes (r, "-"))
    value = -factor (r);
  else if (takes (r, "(")) {
    value = formula (r);
    if (!takes (r, ")"))
      expected (r, "\")\"");
  } else if (r->error)
    value = NAN;
  else if (g_ascii_isdigit (*r->at)) {
    char *end;
    value = g_ascii_strtod (r->at, &end);
    r->at = end;
  } else
    value = g_ascii_isalpha (*r->at) ? name (r) : expected (r, "a number or a name");
  r->depth--;
  return value;
}

static double
power (Reader *r)
{
  double value = factor (r);
  return takes (r, "^") ? pow (value, factor (r)) : value;
}

static double
product (Reader *r)
{
  double value = power (r);
  for (;;)
    if (takes (r, "*"))
      value *= power (r);
    else if (takes (r, "/"))
      value /= power (r);
    else
      return value;
}

static double
sum (Reader *r)
{
  double value = product (r);
  for (;;)
    if (takes (r, "+"))
      value += product (r);
    else if (takes (r, "-"))
      value -= product (r);
    else
      return value;
}

static double
comparison (Reader *r)
{
  double value = sum (r);
  return takes (r, "<=") ? value <= sum (r)
      : takes (r, ">=")  ? value >= sum (r)
      : takes (r, "==")  ? value == sum (r)
      : takes (r, "<")   ? value < sum (r)
      : takes (r, ">")   ? value > sum (r)
                         : value;
}

static double
formula (Reader *r)
{
  double value = comparison (r);
  while (takes (r, "and ")) {
    bool holds = comparison (r) != 0;
    value = value != 0 && holds;
  }
  return value;
}

gboolean
ls_lab_formula (const char *text, LsLabLookup lookup, gpointer data, double *ret_value, GError **error)
{
  Reader r = { text, text, lookup, data, NULL, 0 };
  double value = formula (&r);
  if (!r.error && (takes (&r, "") && *r.at))
    expected (&r, "an end");
  if (r.error) {
    g_propagate_error (error, r.error);
    return FALSE;
  }
  *ret_value = value;
  return TRUE;
}

/* --- what must hold of a lab ------------------------------------------------------------------------ */

typedef struct {
  const LsLab *lab;
  bool is_task; /* of which formulas know what the student's own configuration gives */
} Names;

static gboolean
is_known (const char *name, double *ret_value, gpointer data, GError **error)
{
  const Names *names = data;
  *ret_value = 1;
  return ls_lab_measure (names->lab, name) || (names->is_task && ls_lab_own_key (name))
      || ls_fail (error, LS_ERROR_INPUT, "no measure is named \"%s\"", name);
}

static bool
check_formula (const LsJsonDoc *doc, const cJSON *object, const char *key, Names names, LsDiagList *diags)
{
  const cJSON *node = ls_json_at (object, key);
  g_autoptr (GError) error = NULL;
  double value;
  return ls_lab_formula (node->valuestring, is_known, &names, &value, &error)
      || ls_json_doc_wrong (doc, node, diags, "%s", error->message);
}

/* Of a question or of the task, with its mistakes. */
static bool
check_formulas (const LsJsonDoc *doc, const cJSON *object, const char *key, Names names, LsDiagList *diags)
{
  const cJSON *mistakes = ls_json_at (object, "mistakes");
  bool ok = check_formula (doc, object, key, names, diags);
  if (!mistakes->child)
    ok = ls_json_doc_wrong (doc, mistakes, diags, "expected one mistake at least");
  for (const cJSON *m = mistakes->child; m; m = m->next)
    ok = check_formula (doc, m, "value", names, diags) && ok;
  return ok;
}

static bool
check_measures (const LsJsonDoc *doc, const cJSON *root, LsDiagList *diags)
{
  bool ok = true;
  const cJSON *measures = ls_json_at (root, "measures");
  for (const cJSON *m = measures ? measures->child : NULL; m; m = m->next)
    if (!cJSON_IsString (m) || !strstr (m->valuestring, " => "))
      ok = ls_json_doc_wrong (doc, m, diags, "expected COMMAND => KEY");
  return ok;
}

static bool
check_explained (const LsJsonDoc *doc, const cJSON *root, LsDiagList *diags)
{
  const cJSON *explained = ls_json_at (root, "explained");
  int n = cJSON_GetArraySize (ls_json_at (root, "explain"));
  return !explained || cJSON_GetArraySize (explained) == n
      || ls_json_doc_wrong (doc, explained, diags, "expected %d, one for each of explain", n);
}

static bool
finish (const LsJsonDoc *doc, const cJSON *root, void *object, LsDiagList *diags)
{
  const cJSON *task = ls_json_at (root, "task"), *questions = ls_json_at (root, "questions");
  bool ok = check_explained (doc, root, diags);
  ok = check_measures (doc, root, diags) && ok;
  if (!questions->child)
    ok = ls_json_doc_wrong (doc, questions, diags, "expected one question at least");
  for (const cJSON *q = questions->child; q; q = q->next)
    ok = check_formulas (doc, q, "value", (Names) { object, false }, diags) && ok;
  return (!task || check_formulas (doc, task, "right", (Names) { object, true }, diags)) && ok;
}

const LsDataFile ls_lab_file = { "lab", LS_DATA_LABS, ls_lab_fields, sizeof (LsLab), .finish = finish };
