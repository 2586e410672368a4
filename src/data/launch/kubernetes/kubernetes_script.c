/* Lines of the script that stands for containers. How Kubernetes puts values in: kubernetes.io/docs, "Define
 * Environment Variables for a Container", "Define a Command and Arguments for a Container". */
#include "data/launch/kubernetes/kubernetes.h"

#include <string.h>

#include "data/shell/shell.h"

#define NAME_CHARACTERS G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_"

char *
kubernetes_text (const cJSON *value)
{
  if (cJSON_IsString (value))
    return g_strdup (value->valuestring);
  if (cJSON_IsBool (value))
    return g_strdup (cJSON_IsTrue (value) ? "true" : "false");
  if (!cJSON_IsNumber (value))
    return NULL;
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  return g_strdup (g_ascii_formatd (text, sizeof text, "%.15g", value->valuedouble));
}

const char *
kubernetes_string (const cJSON *object, const char *key)
{
  const char *text = cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (object, key));
  return text ? text : "";
}

/* --- values that are put in --- */

/* "$(NAME)": how long it is, with the name from 2; 0: it is another thing, such as $(date). */
static gsize
reference_length (const char *p, GHashTable *own)
{
  if (p[0] != '$' || p[1] != '(')
    return 0;
  gsize n = strspn (p + 2, NAME_CHARACTERS);
  g_autofree char *name = g_strndup (p + 2, n);
  bool is_own = own ? g_hash_table_contains (own, name) : !g_ascii_isdigit (*name);
  return n > 0 && p[2 + n] == ')' && is_own ? n + 3 : 0;
}

/* "{{ .Values.workload.gpus }}": how long it is; *ret_name: "gpus", newly allocated. 0: it is none. */
static gsize
template_length (const char *p, char **ret_name)
{
  const char *end = g_str_has_prefix (p, "{{") ? strstr (p, "}}") : NULL;
  if (!end)
    return 0;
  const char *last = end;
  while (last > p && strchr (" \t-", last[-1]))
    last--;
  const char *first = last;
  while (first > p && strchr (NAME_CHARACTERS "-", first[-1]))
    first--;
  *ret_name = first < last ? g_strndup (first, (gsize) (last - first)) : g_strdup ("template");
  g_strdelimit (*ret_name, "-", '_');
  return (gsize) (end + 2 - p);
}

/* At a value that is put in: appends it as "${NAME}". How long it is; 0: there is none. */
static gsize
add_put_in (GString *script, const char *p, GHashTable *own)
{
  g_autofree char *name = NULL;
  gsize n = template_length (p, &name);
  if (n == 0 && (n = reference_length (p, own)) > 0)
    name = g_strndup (p + 2, n - 3);
  if (n > 0)
    g_string_append_printf (script, "${%s}", name);
  return n;
}

void
kubernetes_add_word (GString *script, const char *text)
{
  g_string_append_c (script, '"');
  while (*text) {
    gsize n = add_put_in (script, text, NULL);
    text += n;
    if (n > 0)
      continue;
    bool is_variable = text[0] == '$'
        && (g_ascii_isalpha (text[1]) || text[1] == '_' || text[1] == '{' || g_str_has_prefix (text, "$(("));
    if (strchr ("\"\\`$", *text) && !is_variable)
      g_string_append_c (script, '\\');
    g_string_append_c (script, *text++);
  }
  g_string_append_c (script, '"');
}

/* A text of a shell within another one: in single quotes. */
static void
add_script (GString *script, const char *text, GHashTable *own)
{
  g_string_append_c (script, '\'');
  while (*text) {
    gsize n = add_put_in (script, text, own);
    text += n;
    if (n > 0)
      continue;
    g_string_append (script, *text == '\'' ? "'\\''" : (char[]) { *text, '\0' });
    text++;
  }
  g_string_append_c (script, '\'');
}

/* --- variables --- */

void
kubernetes_add_export (GString *script, const char *name, const char *text)
{
  if (*name == '\0' || g_ascii_isdigit (*name) || name[strspn (name, NAME_CHARACTERS)])
    return;
  g_string_append_printf (script, "export %s=", name);
  kubernetes_add_word (script, text);
  g_string_append_c (script, '\n');
}

/* Of "value", or of a ConfigMap that is here; NULL: only the cluster knows it. Newly allocated. */
static char *
value_of (const cJSON *variable, GHashTable *maps)
{
  const cJSON *from = cJSON_GetObjectItemCaseSensitive (variable, "valueFrom"),
              *key = cJSON_GetObjectItemCaseSensitive (from, "configMapKeyRef"),
              *data = key ? g_hash_table_lookup (maps, kubernetes_string (key, "name")) : NULL;
  return kubernetes_text (from ? cJSON_GetObjectItemCaseSensitive (data, kubernetes_string (key, "key"))
                               : cJSON_GetObjectItemCaseSensitive (variable, "value"));
}

static void
add_map (GString *script, const cJSON *data, GHashTable *own)
{
  const cJSON *item;
  cJSON_ArrayForEach (item, data)
  {
    g_autofree char *text = kubernetes_text (item);
    g_hash_table_add (own, g_strdup (item->string));
    if (text)
      kubernetes_add_export (script, item->string, text);
  }
}

/* The names of all; env goes before envFrom. */
static GHashTable *
add_variables (GString *script, const cJSON *container, GHashTable *maps)
{
  GHashTable *own = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  const cJSON *item;
  cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive (container, "envFrom"))
  {
    const cJSON *map = cJSON_GetObjectItemCaseSensitive (item, "configMapRef");
    if (map)
      add_map (script, g_hash_table_lookup (maps, kubernetes_string (map, "name")), own);
  }
  cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive (container, "env"))
  {
    const char *name = kubernetes_string (item, "name");
    g_autofree char *text = value_of (item, maps);
    g_hash_table_add (own, g_strdup (name));
    if (text)
      kubernetes_add_export (script, name, text);
  }
  return own;
}

/* --- commands --- */

/* The words of "command" and of "args" behind it; char *. */
static GPtrArray *
words_of (const cJSON *container)
{
  static const char *const keys[] = { "command", "args" };
  GPtrArray *words = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive (container, keys[i]), *item;
    if (cJSON_IsString (list))
      g_ptr_array_add (words, g_strdup (list->valuestring));
    cJSON_ArrayForEach (item, list)
    {
      char *text = kubernetes_text (item);
      if (text)
        g_ptr_array_add (words, text);
    }
  }
  return words;
}

bool
kubernetes_add_container (GString *script, const cJSON *container, GHashTable *maps)
{
  g_autoptr (GPtrArray) words = words_of (container);
  if (words->len == 0)
    return false;
  g_autoptr (GHashTable) own = add_variables (script, container, maps);
  guint at = ls_shell_text_of ((char *const *) words->pdata, words->len);
  for (guint i = 0; i < words->len; i++) {
    if (i > 0)
      g_string_append_c (script, ' ');
    if (at > 0 && i == at)
      add_script (script, words->pdata[i], own);
    else
      kubernetes_add_word (script, words->pdata[i]);
  }
  g_string_append_c (script, '\n');
  return true;
}

void
kubernetes_add_files (GString *script, const cJSON *data)
{
  const cJSON *item;
  cJSON_ArrayForEach (item, data)
  {
    if (!cJSON_IsString (item) || !strchr (item->string, '.')
        || strpbrk (item->string, " \t\n'\"$`\\;&|<>()"))
      continue;
    g_string_append_printf (script, "cat > ./%s <<'END_OF_%s'\n%s\nEND_OF_%s\n", item->string, item->string,
                            item->valuestring, item->string);
  }
}
