#include "data/text/override.h"

#include <string.h>

#include "data/text/json_out.h"

/* The '=' behind the key at p; NULL if there is none. */
static const char *
key_end (const char *p)
{
  const char *end = p;
  while (*end && (g_ascii_isalnum (*end) || strchr ("_.-/>*", *end)))
    end++;
  return end > p && *end == '=' ? end : NULL;
}

/* Past the value at p: to the next `stop` outside brackets and quotes. */
static const char *
value_end (const char *p, char stop)
{
  int depth = 0;
  bool is_quoted = false;
  for (; *p; p++) {
    if (is_quoted && *p == '\\' && p[1])
      p++;
    else if (*p == '"')
      is_quoted = !is_quoted;
    else if (!is_quoted && (*p == '[' || *p == '{'))
      depth++;
    else if (!is_quoted && (*p == ']' || *p == '}'))
      depth--;
    else if (!is_quoted && depth == 0 && *p == stop)
      break;
  }
  return p;
}

const char *
ls_override_find (const char *name)
{
  const char *from = ls_json_is_given (name) ? value_end (name, ':') : name;
  for (const char *colon = strchr (from, ':'); colon; colon = strchr (colon + 1, ':'))
    if (key_end (colon + 1))
      return colon + 1;
  return NULL;
}

char *
ls_override_bare (const char *name)
{
  const char *changes = ls_override_find (name);
  return changes ? g_strndup (name, (gsize) (changes - 1 - name)) : g_strdup (name);
}

/* Whether one of these is so, of the file or of another one that `above` ("gpu.") names. */
static bool
has_change (const char *above, const char *changes, const char *prefix, const char *part)
{
  g_autoptr (GPtrArray) list = ls_override_split (changes);
  bool is_so = false;
  for (guint i = 0; i < list->len && !is_so; i++) {
    g_autofree char *change = g_strconcat (above, list->pdata[i], NULL);
    const char *equals = strchr (change, '='), *own = ls_override_find (equals + 1);
    g_autofree char *inner = own ? g_strndup (own, strcspn (own, "\"")) : NULL,
                    *below = g_strdup_printf ("%.*s.", (int) (equals - change), change);
    is_so = (g_str_has_prefix (change, prefix) && strstr (change, part))
        || (inner && has_change (below, inner, prefix, part));
  }
  return is_so;
}

bool
ls_override_changes (const char *name, const char *prefix, const char *part)
{
  const char *text = name ? ls_override_find (name) : NULL;
  return text && has_change ("", text, prefix, part);
}

char *
ls_override_name (char *own, const char *asked)
{
  const char *changes = ls_override_find (asked);
  if (!changes)
    return own;
  char *name = g_strconcat (own, ":", changes, NULL);
  g_free (own);
  return name;
}

/* As JSON text: itself, or a string. */
static char *
value_text (const char *value)
{
  g_autoptr (LsJsonPull) p = ls_json_pull_of_text (value, LS_JSON_STRICT);
  if (ls_json_pull_skip (p, ls_json_pull_next (p)) && ls_json_pull_next (p) == LS_TOKEN_END)
    return g_strdup (value);
  return ls_json_string (value);
}

static const cJSON *
child_of (const cJSON *node, const char *key)
{
  if (!cJSON_IsArray (node))
    return cJSON_GetObjectItemCaseSensitive (node, key);
  char *end;
  guint64 index = g_ascii_strtoull (key, &end, 10);
  return *end || end == key || index > G_MAXINT ? NULL : cJSON_GetArrayItem (node, (int) index);
}

/* {"b": {"c": value}} for the keys b, c. */
static char *
wrapped (char *const *keys, const char *value)
{
  GString *text = g_string_new (NULL);
  guint n = g_strv_length ((char **) keys);
  for (guint i = 0; i < n; i++)
    g_string_append_printf (text, "{\"%s\": ", keys[i]);
  g_string_append (text, value);
  for (guint i = 0; i < n; i++)
    g_string_append_c (text, '}');
  return g_string_free (text, FALSE);
}

/* The name of another file, whose keys may be changed as well: "gpu.reserved". */
static bool
is_reference (const cJSON *node)
{
  static const char *const keys[] = { "gpu", "calibration", "nccl", NULL };
  return cJSON_IsString (node) && node->string && g_strv_contains (keys, node->string);
}

/* "h100" with the change reserved=1GiB: "h100:reserved=1GiB", as JSON text; of what it changes already, this
 * holds. */
static char *
referred (const cJSON *node, const char *path, const char *value)
{
  g_autofree char *change = g_strconcat (path, "=", value, NULL),
                  *changed = ls_override_add (node->valuestring, change);
  return value_text (changed);
}

static LsJsonDoc *
apply_one (LsJsonDoc *doc, const char *path, const char *value, LsDiagList *diags)
{
  g_auto (GStrv) keys = g_strsplit (path, ".", -1);
  const cJSON *node = ls_json_doc_root (doc), *child = NULL;
  guint depth = 0;
  while (keys[depth] && (child = child_of (node, keys[depth]))) {
    node = child;
    depth++;
  }
  if (keys[depth] && is_reference (node)) {
    g_autofree char *rest = g_strjoinv (".", keys + depth), *changed = referred (node, rest, value);
    return ls_json_doc_replace (doc, node, changed, diags);
  }
  g_autofree char *text = value_text (value);
  if (strcmp (text, "null") == 0)
    return keys[depth] ? doc : ls_json_doc_remove (doc, node, diags);
  if (!keys[depth])
    return ls_json_doc_replace (doc, node, text, diags);
  if (cJSON_IsObject (node)) {
    g_autofree char *added = wrapped (keys + depth + 1, text);
    g_autofree char *member = g_strdup_printf ("\"%s\": %s", keys[depth], added);
    return ls_json_doc_insert (doc, node, member, diags);
  }
  g_autofree char *got = ls_json_describe (node);
  ls_json_doc_wrong (doc, node, diags, "%s=%s: \"%s\" is not in %s", path, value, keys[depth], got);
  ls_json_doc_free (doc);
  return NULL;
}

GPtrArray *
ls_override_split (const char *changes)
{
  GPtrArray *list = g_ptr_array_new_with_free_func (g_free);
  const char *equals;
  for (const char *p = changes; *p && (equals = key_end (p));) {
    const char *end = value_end (equals + 1, ',');
    g_ptr_array_add (list, g_strndup (p, (gsize) (end - p)));
    p = *end ? end + 1 : end;
  }
  return list;
}

/* Whether a later change leaves nothing of an earlier one: "a=1" and "a=2", "a.b=1" and "a={}". */
static bool
undoes (const char *later, const char *earlier)
{
  gsize n = strcspn (later, "=");
  return strncmp (later, earlier, n) == 0 && (earlier[n] == '=' || earlier[n] == '.');
}

bool
ls_override_meets (const char *changes, const char *change)
{
  g_autoptr (GPtrArray) list = ls_override_split (changes ? changes : "");
  bool is_met = false;
  for (guint i = 0; i < list->len; i++)
    is_met = is_met || undoes (list->pdata[i], change) || undoes (change, list->pdata[i]);
  return is_met;
}

/* The change in a list before the i-th that it undoes; NULL: none. */
static const char *
undone_by (const GPtrArray *list, guint i)
{
  for (guint k = 0; k < i; k++)
    if (undoes (list->pdata[i], list->pdata[k]))
      return list->pdata[k];
  return NULL;
}

bool
ls_override_check (const char *name, const char *changes, LsDiagList *diags)
{
  g_autoptr (GPtrArray) list = ls_override_split (changes);
  for (guint i = 1; i < list->len; i++) {
    const char *earlier = undone_by (list, i);
    if (!earlier)
      continue;
    return ls_file_diag (diags, LS_ERROR_INPUT, name, NULL, "expected each key once; got %s and %s", earlier,
                         (char *) list->pdata[i]);
  }
  return true;
}

char *
ls_override_add (const char *name, const char *changes)
{
  const char *own = ls_override_find (name);
  if (!own)
    return g_strconcat (name, ":", changes, NULL);
  g_autoptr (GPtrArray) list = ls_override_split (own), added = ls_override_split (changes);
  GString *all = g_string_new_len (name, own - name);
  for (guint i = 0; i < list->len; i++) {
    bool is_kept = true;
    for (guint k = 0; k < added->len; k++)
      is_kept = is_kept && !undoes (added->pdata[k], list->pdata[i]);
    if (is_kept)
      g_string_append_printf (all, "%s,", (char *) list->pdata[i]);
  }
  g_string_append (all, changes);
  return g_string_free (all, FALSE);
}

LsJsonDoc *
ls_override_apply (LsJsonDoc *doc, const char *changes, LsDiagList *diags)
{
  bool ok = ls_override_check (ls_json_doc_name (doc), changes, diags);
  g_autoptr (GPtrArray) list = ls_override_split (changes);
  const char *rest = changes;
  for (guint i = 0; i < list->len; i++)
    rest += strlen (list->pdata[i]) + (rest[strlen (list->pdata[i])] != '\0');
  if (ok && *rest)
    ls_file_diag (diags, LS_ERROR_INPUT, ls_json_doc_name (doc), NULL,
                  "expected changes as KEY=VALUE,KEY=VALUE; got \"%s\"", rest);
  if (!ok || *rest)
    g_clear_pointer (&doc, ls_json_doc_free);
  for (guint i = 0; doc && i < list->len; i++) {
    g_auto (GStrv) pair = g_strsplit (list->pdata[i], "=", 2);
    doc = apply_one (doc, pair[0], pair[1], diags);
  }
  return doc;
}
