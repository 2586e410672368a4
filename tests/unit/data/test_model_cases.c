/* Pins what files of models mean, a config.json of Hugging Face's or one of ours: how many weights they have, what
 * of ours they say, what is told of them and what is refused: the cases of tests/models (support/expected_cases.h). */
#include <math.h>

#include "data/jobs/job_files.h"
#include "expected_cases.h"

typedef struct {
  LsModel model;
  guint n_notes;
  GPtrArray *notes; /* but that on the length of sequences */
} Read;

#define LEFT_OUT "the file leaves out"
#define SILENT   "where the file is silent: "

/* But for the one that files as short as these have nearly always. */
static guint
n_notes (const GPtrArray *notes)
{
  guint n = 0;
  for (guint i = 0; i < notes->len; i++)
    n += !g_str_has_prefix (notes->pdata[i], SILENT);
  return n;
}

/* A file is a config.json unless the case says what it is called; "asked" is what is asked for by a name, or by
 * keys. */
static gpointer
read_model (const LsExpectedCase *c, const char *option, char **said)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  const LsCaseFile *file = &g_array_index (c->files, LsCaseFile, 0);
  g_autofree char *text = ls_case_text (file, option);
  const char *name = strcmp (file->name, c->name) == 0 ? "config.json" : file->name;
  bool is_asked = strcmp (name, "asked") == 0;
  g_autoptr (LsJsonDoc) doc = is_asked ? NULL : ls_json_doc_parse (text, strlen (text), name, diags);
  Read *read = g_new0 (Read, 1);
  read->notes = g_ptr_array_new_with_free_func (g_free);
  bool ok = is_asked ? ls_model_load (g_strstrip (text), &read->model, read->notes, diags)
                     : doc && ls_model_read (doc, &read->model, read->notes, diags);
  *said = ls_diag_list_format (diags);
  read->n_notes = n_notes (read->notes);
  ls_model_notes_drop_length (read->notes);
  if (ok)
    return read;
  g_ptr_array_unref (read->notes);
  g_free (read);
  return NULL;
}

static void
clear (gpointer data)
{
  Read *read = data;
  ls_model_clear (&read->model);
  g_ptr_array_unref (read->notes);
  g_free (read);
}

/* --- numbers: +, -, *, /, parentheses, and "params" for all weights ----------------------------------- */

static double sum (const char **at, double params);

static double
factor (const char **at, double params)
{
  *at += strspn (*at, " ");
  if (**at == '(') {
    ++*at;
    double inner = sum (at, params);
    *at += strspn (*at, " )") > 0;
    return inner;
  }
  if (g_str_has_prefix (*at, "params")) {
    *at += strlen ("params");
    return params;
  }
  char *end;
  double number = g_ascii_strtod (*at, &end);
  bool is_one = end > *at;
  *at = end;
  return is_one ? number : NAN;
}

static double
product (const char **at, double params)
{
  double n = factor (at, params);
  for (*at += strspn (*at, " "); **at == '*' || **at == '/'; *at += strspn (*at, " ")) {
    bool is_times = *(*at)++ == '*';
    double by = factor (at, params);
    n = is_times ? n * by : n / by;
  }
  return n;
}

static double
sum (const char **at, double params)
{
  double n = product (at, params);
  while (**at == '+' || **at == '-') {
    double sign = *(*at)++ == '+' ? 1 : -1;
    n += sign * product (at, params);
  }
  return n;
}

/* "NUMBER", or "NUMBER within 1e-3": of itself. */
static bool
is_number (double is, const char *expected, double params)
{
  const char *at = expected;
  double number = sum (&at, params), within = 0;
  if (g_str_has_prefix (at, "within "))
    within = g_ascii_strtod (at + strlen ("within "), NULL);
  else if (*at)
    return false;
  return fabs (is - number) <= within * number;
}

/* --- what a model is ------------------------------------------------------------------------------ */

/* A letter a layer: w has a window, f sees all; of those without rope W and F. */
static char *
letters_of (const LsModel *m)
{
  GString *letters = g_string_new (NULL);
  for (uint32_t i = 0; i < m->n_layers; i++) {
    uint32_t kind = ls_model_layer_kind (m, i);
    char letter = kind & LS_LAYER_WINDOWED ? 'w' : 'f';
    g_string_append_c (letters, kind & LS_LAYER_UNROTATED ? g_ascii_toupper (letter) : letter);
  }
  return g_string_free (letters, FALSE);
}

/* The windows of those that have one, with blanks between those that differ. */
static char *
windows_of (const LsModel *m)
{
  GString *windows = g_string_new (NULL);
  uint32_t last = 0;
  for (uint32_t i = 0; i < m->n_layers; i++) {
    LsModel layer = ls_model_of_kind (m, ls_model_layer_kind (m, i));
    if (!(ls_model_layer_kind (m, i) & LS_LAYER_WINDOWED) || layer.attn.window == last)
      continue;
    g_string_append_printf (windows, "%s%u", last > 0 ? " " : "", layer.attn.window);
    last = layer.attn.window;
  }
  return g_string_free (windows, FALSE);
}

/* The first that begins so, with '/' for its ';', or that begins like neither; NULL: there is none. */
static char *
note_of (const GPtrArray *notes, const char *begin)
{
  for (guint i = 0; i < notes->len; i++) {
    const char *note = notes->pdata[i];
    bool is_other = !g_str_has_prefix (note, LEFT_OUT) && !g_str_has_prefix (note, SILENT);
    g_auto (GStrv) parts = g_strsplit (note, "; ", -1);
    if (begin ? g_str_has_prefix (note, begin) : is_other)
      return g_strjoinv (" / ", parts);
  }
  return NULL;
}

/* NULL: the model has none of it. */
static char *
found (const Read *read, const char *key)
{
  const LsModel *m = &read->model;
  if (strcmp (key, "layers_are") == 0)
    return letters_of (m);
  if (strcmp (key, "windows") == 0)
    return windows_of (m);
  if (strcmp (key, "note") == 0 || strcmp (key, "defaults") == 0 || strcmp (key, "silent") == 0)
    return note_of (read->notes, *key == 'd' ? LEFT_OUT : *key == 's' ? SILENT : NULL);
  if (strcmp (key, "notes") == 0 || strcmp (key, "moe_layers") == 0)
    return g_strdup_printf ("%u", *key == 'n' ? read->n_notes : ls_model_n_moe_layers (m));
  for (const LsField *f = ls_model_fields; f->key; f++)
    if (strcmp (f->key, key) == 0)
      return ls_field_text (f, m, NULL);
  return g_strdup ("there is no such key");
}

static char *
contradiction (gconstpointer result, const char *what)
{
  const Read *read = result;
  bool is_not = g_str_has_prefix (what, "not ");
  g_auto (GStrv) words = g_strsplit (what + (is_not ? strlen ("not ") : 0), " ", 2);
  if (!words[0] || !words[1] != is_not)
    return g_strdup ("expected KEY VALUE, or \"not\" before a key");
  double params = (double) ls_model_params (&read->model, read->model.vocab),
         active = (double) ls_model_active_params (&read->model, read->model.vocab);
  if (words[1] && (strcmp (words[0], "params") == 0 || strcmp (words[0], "active") == 0)) {
    double is = *words[0] == 'p' ? params : active;
    return is_number (is, words[1], params) ? NULL : g_strdup_printf ("%.0f", is);
  }
  g_autofree char *is = found (read, words[0]);
  return g_strcmp0 (is, words[1]) == 0 ? NULL : g_strdup (is ? is : "it has none");
}

static void
files_of_models_mean_what_is_said (void)
{
  static const LsCaseKind kind = { read_model, contradiction, clear };
  ls_cases_run ("models", &kind, 370);
}

LS_TEST_SUITE (LS_TEST (files_of_models_mean_what_is_said))
