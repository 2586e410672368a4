#include "data/launch/launch_words.h"

#include <math.h>
#include <string.h>

#include "base/list.h"
#include "data/shell/shell.h"
#include "data/text/json_doc.h"

/* --- names ----------------------------------------------------------------------------------------- */

static char
fold (char c)
{
  return c == '_' ? '-' : c;
}

static guint
name_hash (gconstpointer name)
{
  guint h = 5381;
  for (const char *p = name; *p; p++)
    h = h * 33 + (guchar) fold (*p);
  return h;
}

static gboolean
name_equal (gconstpointer a, gconstpointer b)
{
  const char *p = a, *q = b;
  while (*p && fold (*p) == fold (*q)) {
    p++;
    q++;
  }
  return fold (*p) == fold (*q);
}

/* --- the list -------------------------------------------------------------------------------------- */

static void
option_free (gpointer option)
{
  LaunchOption *o = option;
  g_free (o->written);
  g_ptr_array_unref (o->values);
  g_free (o);
}

LaunchWords *
launch_words_new (void)
{
  LaunchWords *w = g_new (LaunchWords, 1);
  w->options = g_ptr_array_new_with_free_func (option_free);
  w->by_name = g_hash_table_new (name_hash, name_equal);
  w->off = g_hash_table_new_full (name_hash, name_equal, g_free, NULL);
  w->others = g_ptr_array_new_with_free_func (g_free);
  return w;
}

void
launch_words_free (LaunchWords *w)
{
  if (!w)
    return;
  g_hash_table_unref (w->by_name);
  g_hash_table_unref (w->off);
  g_ptr_array_unref (w->options);
  g_ptr_array_unref (w->others);
  g_free (w);
}

/* written: taken. name: of that, without dashes in front, or static; NULL: the former. */
static LaunchOption *
add_option (LaunchWords *w, char *written, const char *name)
{
  LaunchOption *o = g_new0 (LaunchOption, 1);
  o->written = written;
  o->name = name ? name : written + strspn (written, "-");
  o->values = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (w->options, o);
  g_hash_table_replace (w->by_name, (gpointer) o->name, o);
  g_hash_table_remove (w->off, o->name);
  return o;
}

void
launch_words_add_renamed (LaunchWords *w, const char *name, const LaunchOption *option)
{
  LaunchOption *o = add_option (w, g_strdup (option->written), name);
  o->is_default = option->is_default;
  for (guint i = 0; i < option->values->len; i++)
    g_ptr_array_add (o->values, g_strdup (option->values->pdata[i]));
}

static void
add_off (LaunchWords *w, const char *name)
{
  g_hash_table_remove (w->by_name, name);
  g_hash_table_add (w->off, g_strdup (name));
}

LaunchOption *
launch_words_find (const LaunchWords *w, const char *name)
{
  return g_hash_table_lookup (w->by_name, name);
}

const char *
launch_words_first (const LaunchWords *w, const char *names)
{
  g_auto (GStrv) all = g_strsplit (names ? names : "", " ", -1);
  const LaunchOption *first = NULL;
  for (char **name = all; *name && !first; name++)
    first = launch_words_find (w, *name);
  return first ? first->written : NULL;
}

bool
launch_words_has_any (const LaunchWords *w, const char *names)
{
  g_auto (GStrv) all = g_strsplit (names ? names : "", " ", -1);
  for (char **name = all; *name; name++)
    if (**name && (launch_words_find (w, *name) || g_hash_table_contains (w->off, *name)))
      return true;
  return false;
}

const char *
launch_words_text (const LaunchWords *w, const char *name)
{
  const LaunchOption *o = launch_words_find (w, name);
  return o && o->values->len > 0 ? o->values->pdata[0] : NULL;
}

const char *
launch_words_alone (const LaunchWords *w, bool (*fits) (const char *word))
{
  for (guint i = 0; i < w->options->len && w->others->len == 0; i++) {
    const LaunchOption *o = w->options->pdata[i];
    if (o->values->len > 1 && (!fits || fits (o->values->pdata[1])))
      return o->values->pdata[1];
  }
  return w->others->len > 0 ? w->others->pdata[0] : NULL;
}

/* --- words ----------------------------------------------------------------------------------------- */

/* Without the quotes around all of it. */
static char *
bare (const char *word)
{
  gsize n = strlen (word);
  bool is_quoted = n >= 2 && (word[0] == '\'' || word[0] == '"') && word[n - 1] == word[0];
  return is_quoted ? g_strndup (word + 1, n - 2) : g_strdup (word);
}

void
launch_words_add (LaunchWords *w, char *const *words, guint n)
{
  LaunchOption *last = NULL;
  for (guint i = 0; i < n; i++) {
    const char *word = words[i], *equals = strchr (word, '='),
               *name = *word == '-' ? word + 1 + (word[1] == '-') : "";
    if (!g_ascii_isalpha (*name)) { /* "--$X": an option whose name is not said, no value of the last one */
      g_ptr_array_add (last && *name != LS_SHELL_HOLE ? last->values : w->others, bare (word));
      continue;
    }
    last = add_option (w, equals ? g_strndup (word, (gsize) (equals - word)) : g_strdup (word), NULL);
    if (equals)
      g_ptr_array_add (last->values, bare (equals + 1));
  }
}

void
launch_words_add_value (LaunchWords *w, const char *name, const char *value)
{
  static const char *const absent[] = { "None", "False", "[]", "false", "null", "{}", "", NULL };
  if (value && g_strv_contains (absent, value)) {
    add_off (w, name);
    return;
  }
  LaunchOption *o = add_option (w, g_strdup (name), NULL);
  bool is_flag = !value || strcmp (value, "True") == 0 || strcmp (value, "true") == 0;
  if (!is_flag)
    g_ptr_array_add (o->values, bare (value));
}

void
launch_words_add_by (LaunchWords *w, bool is_said, const char *name, const char *value)
{
  launch_words_add_value (w, name, value);
  LaunchOption *o = launch_words_find (w, name);
  if (is_said)
    return;
  if (o)
    o->is_default = true;
  else
    g_hash_table_insert (w->off, g_strdup (name), NULL);
}

void
launch_words_add_words (LaunchWords *w, const LaunchWords *others)
{
  for (guint i = 0; i < others->options->len; i++) {
    const LaunchOption *o = others->options->pdata[i];
    bool is_renamed = o->name != o->written + strspn (o->written, "-");
    launch_words_add_renamed (w, is_renamed ? o->name : NULL, o);
  }
  GHashTableIter iter;
  gpointer name;
  g_hash_table_iter_init (&iter, others->off);
  while (g_hash_table_iter_next (&iter, &name, NULL))
    if (!launch_words_find (w, name))
      add_off (w, name);
}

char *
launch_scalar_text (const cJSON *node)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  if (cJSON_IsString (node) || cJSON_IsRaw (node))
    return g_strdup (node->valuestring);
  if (!cJSON_IsNumber (node))
    return g_strdup (cJSON_IsTrue (node)        ? "true"
                         : cJSON_IsFalse (node) ? "false"
                         : cJSON_IsNull (node)  ? "null"
                                                : NULL);
  double x = node->valuedouble;
  if (fabs (x) < 9007199254740992.0 && x == floor (x))
    return g_strdup_printf ("%.0f", x);
  g_ascii_formatd (text, sizeof text, "%.15g", x);
  return g_strdup (g_ascii_strtod (text, NULL) == x ? text : g_ascii_dtostr (text, sizeof text, x));
}

/* --- trees ----------------------------------------------------------------------------------------- */

static bool
is_tree (const cJSON *item)
{
  return cJSON_IsObject (item) || cJSON_IsArray (item);
}

/* prefix: with its dot; it is as at the start when this returns. */
static void
add_tree (LaunchWords *w, GString *prefix, const cJSON *tree)
{
  gsize n = prefix->len;
  guint at = 0;
  const cJSON *item;
  cJSON_ArrayForEach (item, tree) {
    if (cJSON_IsArray (tree))
      g_string_append_printf (prefix, "%u", at++);
    else
      g_string_append (prefix, item->string);
    bool has_names = cJSON_IsObject (item) && item->child;
    for (const cJSON *one = cJSON_IsArray (item) ? item->child : NULL; one; one = one->next)
      has_names = has_names || is_tree (one);
    g_autofree char *text = is_tree (item) ? NULL : launch_scalar_text (item);
    LaunchOption *o
        = is_tree (item) && item->child && !has_names ? add_option (w, g_strdup (prefix->str), NULL) : NULL;
    for (const cJSON *one = item->child; o && one; one = one->next)
      g_ptr_array_add (o->values, launch_scalar_text (one));
    if (!is_tree (item))
      launch_words_add_value (w, prefix->str, text);
    else if (!item->child)
      add_off (w, prefix->str);
    else if (has_names)
      add_tree (w, g_string_append_c (prefix, '.'), item);
    g_string_truncate (prefix, n);
  }
}

void
launch_words_add_tree (LaunchWords *w, const cJSON *tree)
{
  GString *prefix = g_string_new (NULL);
  add_tree (w, prefix, tree);
  g_string_free (prefix, TRUE);
}

bool
launch_words_add_json (LaunchWords *w, const char *text, gsize n, const char *path, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse_as (text, n, path, LS_JSON_BY_HAND, diags);
  if (!doc)
    return false;
  launch_words_add_tree (w, ls_json_doc_root (doc));
  for (guint i = 0; i < w->options->len; i++) {
    const LaunchOption *o = w->options->pdata[i];
    for (guint k = 0; k < o->values->len; k++) {
      g_autofree char *value = o->values->pdata[k];
      bool is_open = strcmp (value, "auto") == 0 || *value == '$';
      o->values->pdata[k] = is_open ? g_strdup_printf ("%c%s%c", LS_SHELL_HOLE, value, LS_SHELL_HOLE_END)
                                    : g_steal_pointer (&value);
    }
  }
  return true;
}
