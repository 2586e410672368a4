/* data/python/python_texts.c — methods of texts of Python, of what is known; of letters that are not ASCII
 * only where no method asks which they are. */
#include <math.h>
#include <string.h>

#include "data/python/python_parts.h"

#define BLANKS " \t\n\r\f\v"

/* What a method is called of, with its arguments. */
typedef struct {
  const char *text;
  const cJSON *call, *first, *second;
  guint n; /* arguments */
} TextCall;

static const char *
text_of (const cJSON *item)
{
  return python_is_text (item) ? item->valuestring : NULL;
}

static cJSON *
new_text (const char *text, gsize n)
{
  g_autofree char *part = g_strndup (text, n);
  return cJSON_CreateString (part);
}

/* --- letters ------------------------------------------------------------------------------------------ */

/* title: each letter behind none is large, and the others are small. */
static cJSON *
changed_letters (const TextCall *c, const char *name)
{
  g_autofree char *text
      = strcmp (name, "upper") == 0 ? g_ascii_strup (c->text, -1) : g_ascii_strdown (c->text, -1);
  bool is_title = strcmp (name, "title") == 0;
  for (gsize i = 0; text[i] && (is_title || (i == 0 && strcmp (name, "capitalize") == 0)); i++)
    if (i == 0 || !g_ascii_isalpha (text[i - 1]))
      text[i] = g_ascii_toupper (text[i]);
  return c->n == 0 && g_str_is_ascii (c->text) ? cJSON_CreateString (text) : NULL;
}

static cJSON *
is_of_letters (const TextCall *c, const char *name)
{
  bool is_alpha = strcmp (name, "isalpha") == 0, is_digit = strcmp (name, "isdigit") == 0, ok = *c->text;
  for (const char *at = c->text; *at && ok; at++)
    ok = is_alpha ? g_ascii_isalpha (*at) : is_digit ? g_ascii_isdigit (*at) : g_ascii_isalnum (*at);
  return c->n == 0 && g_str_is_ascii (c->text) ? cJSON_CreateBool (ok) : NULL;
}

/* strip, lstrip, rstrip: of blanks, or of each of some letters. */
static cJSON *
stripped (const TextCall *c, const char *name)
{
  const char *letters = c->n > 0 && !cJSON_IsNull (c->first) ? text_of (c->first) : BLANKS, *from = c->text;
  if (c->n > 1 || !letters || !g_str_is_ascii (letters))
    return NULL;
  from += *name != 'r' ? strspn (from, letters) : 0;
  gsize n = strlen (from);
  while (*name != 'l' && n > 0 && strchr (letters, from[n - 1]))
    n--;
  return new_text (from, n);
}

static cJSON *
without_end (const TextCall *c, const char *name)
{
  const char *end = text_of (c->first);
  if (c->n != 1 || !end)
    return NULL;
  const gsize n = strlen (c->text), n_end = strlen (end);
  bool is_start = strcmp (name, "removeprefix") == 0;
  if (!(is_start ? g_str_has_prefix (c->text, end) : g_str_has_suffix (c->text, end)))
    return new_text (c->text, n);
  return new_text (c->text + (is_start ? n_end : 0), n - n_end);
}

/* zfill, behind a sign. */
static cJSON *
filled (const TextCall *c, const char *name)
{
  (void) name;
  if (c->n != 1 || !cJSON_IsNumber (c->first) || c->first->valuedouble > 999 || !g_str_is_ascii (c->text))
    return NULL;
  GString *text = g_string_new (c->text);
  for (bool has_sign = *c->text == '-' || *c->text == '+'; text->len < c->first->valuedouble;)
    g_string_insert_c (text, has_sign, '0');
  cJSON *made = cJSON_CreateString (text->str);
  g_string_free (text, TRUE);
  return made;
}

/* --- parts -------------------------------------------------------------------------------------------- */

static PythonTruth
has_end (const char *text, const cJSON *end, bool is_start)
{
  const char *one = text_of (end);
  if (one)
    return is_start ? g_str_has_prefix (text, one) : g_str_has_suffix (text, one);
  PythonTruth truth = python_is_kind (end, PYTHON_TUPLE) ? PYTHON_FALSE : PYTHON_OPEN;
  for (const cJSON *item = end ? end->child : NULL; item && truth == PYTHON_FALSE; item = item->next)
    truth = text_of (item) ? has_end (text, item, is_start) : PYTHON_OPEN;
  return truth;
}

static cJSON *
has_part (const TextCall *c, const char *name)
{
  PythonTruth truth = c->n == 1 ? has_end (c->text, c->first, strcmp (name, "startswith") == 0) : PYTHON_OPEN;
  return truth == PYTHON_OPEN ? NULL : cJSON_CreateBool (truth == PYTHON_TRUE);
}

/* find and count, in letters. */
static cJSON *
searched (const TextCall *c, const char *name)
{
  const char *part = text_of (c->first), *at = c->n == 1 && part ? strstr (c->text, part) : NULL;
  if (c->n != 1 || !part || !g_str_is_ascii (c->text))
    return NULL;
  if (strcmp (name, "find") == 0)
    return cJSON_CreateNumber (at ? (double) (at - c->text) : -1);
  double n = *part ? 0 : (double) strlen (c->text) + 1;
  for (; at && *part; at = strstr (at + strlen (part), part))
    n++;
  return cJSON_CreateNumber (n);
}

static cJSON *
replaced (const TextCall *c, const char *name)
{
  (void) name;
  const char *part = text_of (c->first), *by = text_of (c->second);
  const cJSON *most = cJSON_GetObjectItemCaseSensitive (c->call, "2");
  if (!part || !by || !*part || (c->n != 2 && !(c->n == 3 && cJSON_IsNumber (most))))
    return NULL;
  GString *text = g_string_new (c->text);
  double n = c->n == 3 ? most->valuedouble : -1;
  if (n != 0)
    g_string_replace (text, part, by, n < 0 ? 0 : (guint) MIN (n, G_MAXINT));
  cJSON *made = cJSON_CreateString (text->str);
  g_string_free (text, TRUE);
  return made;
}

/* The number of parts at most, as the second argument or by name; false: it is not known. */
static bool
most_parts (const TextCall *c, double *ret_most)
{
  const cJSON *by_name = cJSON_GetObjectItemCaseSensitive (c->call, "maxsplit"),
              *most = c->second ? c->second : by_name;
  *ret_most = cJSON_IsNumber (most) && most->valuedouble >= 0 ? most->valuedouble : HUGE_VAL;
  return (!most || cJSON_IsNumber (most)) && c->n == (guint) (c->first != NULL) + (most != NULL);
}

/* At blanks, of which several are one. */
static cJSON *
words_of (const char *text, double most)
{
  cJSON *all = cJSON_CreateArray ();
  for (text += strspn (text, BLANKS); *text && most > 0; most--) {
    gsize n = strcspn (text, BLANKS);
    cJSON_AddItemToArray (all, new_text (text, n));
    text += n + strspn (text + n, BLANKS);
  }
  if (*text)
    cJSON_AddItemToArray (all, cJSON_CreateString (text));
  return all;
}

/* From the end, so that what is left over is in front. */
static cJSON *
split_from_end (const char *text, const char *mark, double most)
{
  cJSON *all = cJSON_CreateArray ();
  gsize n = strlen (text);
  for (gsize at = n; most > 0 && at > 0;) {
    at--;
    if (at + strlen (mark) <= n && g_str_has_prefix (text + at, mark)) {
      cJSON_InsertItemInArray (all, 0, new_text (text + at + strlen (mark), n - at - strlen (mark)));
      n = at;
      most--;
    }
  }
  cJSON_InsertItemInArray (all, 0, new_text (text, n));
  return all;
}

static cJSON *
split (const TextCall *c, const char *name)
{
  const char *mark = text_of (c->first), *text = c->text;
  double most;
  bool is_words = !c->first || cJSON_IsNull (c->first), is_from_end = *name == 'r';
  if (!most_parts (c, &most) || (!is_words && (!mark || !*mark)))
    return NULL;
  if (is_words)
    return !is_from_end || !isfinite (most) ? words_of (text, most) : NULL;
  if (is_from_end)
    return split_from_end (text, mark, most);
  cJSON *all = cJSON_CreateArray ();
  for (const char *at; most > 0 && (at = strstr (text, mark)); text = at + strlen (mark), most--)
    cJSON_AddItemToArray (all, new_text (text, (gsize) (at - text)));
  cJSON_AddItemToArray (all, cJSON_CreateString (text));
  return all;
}

static cJSON *
partition (const TextCall *c, const char *name)
{
  const char *mark = text_of (c->first),
             *at = mark && *mark ? (*name == 'r' ? g_strrstr (c->text, mark) : strstr (c->text, mark)) : NULL;
  if (c->n != 1 || !mark || !*mark)
    return NULL;
  cJSON *all = cJSON_CreateArray (), *whole = cJSON_CreateString (c->text);
  cJSON_AddItemToArray (all,
                        at ? new_text (c->text, (gsize) (at - c->text))
                           : cJSON_CreateString (*name == 'r' ? "" : c->text));
  cJSON_AddItemToArray (all, cJSON_CreateString (at ? mark : ""));
  cJSON_AddItemToArray (all, cJSON_CreateString (at ? at + strlen (mark) : *name == 'r' ? c->text : ""));
  cJSON_Delete (whole);
  all->type |= PYTHON_TUPLE;
  return all;
}

static cJSON *
joined (const TextCall *c, const char *name)
{
  (void) name;
  cJSON *list = c->n == 1 && !text_of (c->first) ? python_list_of (c->first) : NULL;
  GString *text = g_string_new (NULL);
  bool is_known = list;
  for (const cJSON *item = list ? list->child : NULL; item && is_known; item = item->next) {
    is_known = text_of (item);
    if (is_known)
      g_string_append_printf (text, "%s%s", item == list->child ? "" : c->text, item->valuestring);
  }
  cJSON *made = is_known ? cJSON_CreateString (text->str) : NULL;
  cJSON_Delete (list);
  g_string_free (text, TRUE);
  return made;
}

/* --- "{}-{a:02d}".format (1, a=2) ----------------------------------------------------------------------- */

/* What stands for a name in braces; *next: which argument an empty one is. */
static const cJSON *
named_argument (const cJSON *call, const char *name, gsize n, guint *next)
{
  g_autofree char *key = n > 0 ? g_strndup (name, n) : g_strdup_printf ("%u", (*next)++);
  bool is_plain = strcspn (key, ".[!") == strlen (key) && strcmp (key, "()") != 0;
  return is_plain ? cJSON_GetObjectItemCaseSensitive (call, key) : NULL;
}

/* "{a:b}" behind "{", up to behind "}". False: it is not known. */
static bool
append_braces (GString *out, const cJSON *call, const char **at, guint *next)
{
  const gsize n_name = strcspn (*at, ":{}"), n = strcspn (*at, "{}");
  const cJSON *item = named_argument (call, *at, n_name, next);
  g_autofree char *form = (*at)[n_name] == ':' ? g_strndup (*at + n_name + 1, n - n_name - 1) : g_strdup (""),
                  *text = item && (*at)[n] == '}' ? python_formatted (item, form) : NULL;
  if (text)
    g_string_append (out, text);
  *at += n + 1;
  return text;
}

static cJSON *
formatted (const TextCall *c, const char *name)
{
  (void) name;
  GString *out = g_string_new (NULL);
  bool is_known = true;
  guint next = 0;
  for (const char *at = c->text; *at && is_known;) {
    gsize n = strcspn (at, "{}");
    g_string_append_len (out, at, (gssize) n);
    at += n;
    bool is_brace = *at && at[1] == *at;
    if (is_brace)
      g_string_append_c (out, *at);
    else if (*at)
      is_known = *at == '{';
    at += *at ? 1 + is_brace : 0;
    if (n < strlen (c->text) && is_known && !is_brace && at > c->text && at[-1] == '{')
      is_known = append_braces (out, c->call, &at, &next);
  }
  cJSON *made = is_known ? cJSON_CreateString (out->str) : NULL;
  g_string_free (out, TRUE);
  return made;
}

/* --- which one ---------------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  cJSON *(*make) (const TextCall *c, const char *name); /* NULL: that is not known */
} methods[] = { { "lower", changed_letters },
                { "upper", changed_letters },
                { "title", changed_letters },
                { "capitalize", changed_letters },
                { "casefold", changed_letters },
                { "isdigit", is_of_letters },
                { "isalpha", is_of_letters },
                { "isalnum", is_of_letters },
                { "strip", stripped },
                { "lstrip", stripped },
                { "rstrip", stripped },
                { "removeprefix", without_end },
                { "removesuffix", without_end },
                { "zfill", filled },
                { "startswith", has_part },
                { "endswith", has_part },
                { "find", searched },
                { "count", searched },
                { "replace", replaced },
                { "split", split },
                { "rsplit", split },
                { "partition", partition },
                { "rpartition", partition },
                { "join", joined },
                { "format", formatted } };

cJSON *
python_text_method (const char *text, const char *name, const cJSON *call)
{
  TextCall c = { text, call, cJSON_GetObjectItemCaseSensitive (call, "0"),
                 cJSON_GetObjectItemCaseSensitive (call, "1"), (guint) cJSON_GetArraySize (call) };
  for (guint i = 0; i < G_N_ELEMENTS (methods); i++)
    if (strcmp (name, methods[i].name) == 0)
      return methods[i].make (&c, name);
  return NULL;
}
