/* data/python/python_builtins.c — what functions and methods of Python give, of values that are known. */
#include <math.h>
#include <string.h>

#include "data/python/python_parts.h"
#include "data/shell/shell.h"

static const cJSON *
argument (const cJSON *call, const char *place)
{
  return cJSON_GetObjectItemCaseSensitive (call, place);
}

/* --- functions --------------------------------------------------------------------------------------- */

/* Of a number, or of a text that is one and nothing else but blanks. */
static cJSON *
number_of (const cJSON *of, bool is_whole)
{
  if (cJSON_IsBool (of))
    return python_number (cJSON_IsTrue (of), !is_whole);
  if (cJSON_IsNumber (of))
    return is_whole && fabs (of->valuedouble) > 9e15
        ? NULL
        : python_number (is_whole ? trunc (of->valuedouble) + 0.0 : of->valuedouble, !is_whole);
  if (!python_is_text (of))
    return NULL;
  char *end, *text = g_strstrip (g_strdup (of->valuestring));
  double value = g_ascii_strtod (text, &end);
  bool is_number = end > text && *end == '\0' && strspn (text, "+-0123456789.eE") == strlen (text)
      && !(is_whole && strpbrk (text, ".eE")) && value > -9e15 && value < 9e15;
  g_free (text);
  return is_number ? python_number (value, !is_whole) : NULL;
}

static cJSON *
text_of (const cJSON *of)
{
  g_autofree char *text = python_written (of);
  return text ? cJSON_CreateString (text) : NULL;
}

/* A text is a str, and of no class of a program's own; abstract classes are open.
 * What a call makes is no str. */
static cJSON *
is_instance (const cJSON *of, const char *class)
{
  static const char *const abstract[] = { "Sequence", "Collection", "Container", "Iterable", "Reversible",
                                          "Sized",    "Hashable",   "Any",       "object",   NULL };
  const char *dot = strrchr (class, '.'), *name = dot ? dot + 1 : class;
  if (cJSON_IsString (of) && !python_is_text (of))
    return NULL;
  if (strcmp (class, "str") == 0)
    return cJSON_CreateBool (cJSON_IsString (of));
  bool is_other = cJSON_IsString (of) && g_ascii_isupper (*name) && !g_strv_contains (abstract, name);
  return is_other ? cJSON_CreateFalse () : NULL;
}

/* An attribute that nothing sets here may still be there. */
static cJSON *
attribute (const char *name, const cJSON *call)
{
  const cJSON *of = argument (call, "0"), *what = argument (call, "1"), *member = NULL;
  if (python_is_open (of) || !cJSON_IsString (what))
    return NULL;
  if (strcmp (name, "isinstance") == 0)
    return is_instance (of, what->valuestring);
  member = cJSON_IsObject (of) ? cJSON_GetObjectItemCaseSensitive (of, what->valuestring) : NULL;
  return !member ? NULL : *name == 'h' ? cJSON_CreateTrue () : cJSON_Duplicate (member, true);
}

static cJSON *
whole_number_of (const cJSON *of)
{
  return number_of (of, true);
}

static cJSON *
any_number_of (const cJSON *of)
{
  return number_of (of, false);
}

static cJSON *
truth_of (const cJSON *of)
{
  PythonTruth truth = python_truth_of (of);
  return truth == PYTHON_OPEN ? NULL : cJSON_CreateBool (truth == PYTHON_TRUE);
}

static cJSON *
length_of (const cJSON *of)
{
  bool is_text = python_is_text (of);
  cJSON *keys = python_is_dictionary (of) ? python_parts_of (of, PYTHON_KEYS) : NULL;
  int n = is_text ? (int) g_utf8_strlen (of->valuestring, -1) : cJSON_GetArraySize (keys ? keys : of);
  cJSON_Delete (keys);
  return is_text || keys || cJSON_IsArray (of) ? cJSON_CreateNumber (n) : NULL;
}

/* pathlib's: a text here. */
static cJSON *
path_of (const cJSON *of)
{
  return python_is_text (of) ? cJSON_CreateString (of->valuestring) : NULL;
}

/* Functions of one argument, which is what they make something of. */
static const struct {
  const char *name;
  cJSON *(*make) (const cJSON *of); /* NULL: that is not known */
} conversions[] = { { "int", whole_number_of }, { "float", any_number_of }, { "str", text_of },
                    { "bool", truth_of },       { "len", length_of },       { "Path", path_of } };

/* Which one it is; as many as there are: none. */
static gsize
find_conversion (const char *name)
{
  gsize i = 0;
  while (i < G_N_ELEMENTS (conversions) && strcmp (name, conversions[i].name) != 0)
    i++;
  return i;
}

static bool
is_conversion (const char *name)
{
  return find_conversion (name) < G_N_ELEMENTS (conversions);
}

/* Of a call, what stands in a place where it is a whole number; NAN: it is none. */
static double
whole_argument (const cJSON *call, const char *place)
{
  const cJSON *item = argument (call, place);
  bool is_whole = cJSON_IsNumber (item) && item->valuedouble == floor (item->valuedouble);
  return is_whole ? item->valuedouble : NAN;
}

/* NULL: it is not known, or has more than loops go over. */
static cJSON *
range_of (const cJSON *call)
{
  bool has_first = argument (call, "1") != NULL, has_step = argument (call, "2") != NULL;
  double first = has_first ? whole_argument (call, "0") : 0,
         end = whole_argument (call, has_first ? "1" : "0"), step = has_step ? whole_argument (call, "2") : 1,
         n = ceil ((end - first) / step);
  if (!isfinite (n) || n > PYTHON_MAX_ROUNDS)
    return NULL;
  cJSON *all = cJSON_CreateArray ();
  for (double i = 0; i < n; i++)
    cJSON_AddItemToArray (all, cJSON_CreateNumber (first + i * step));
  return all;
}

static cJSON *
quotient_of (const cJSON *call)
{
  double a = whole_argument (call, "0"), b = whole_argument (call, "1"), quotient = floor (a / b);
  if (!isfinite (quotient))
    return NULL;
  cJSON *both = cJSON_CreateArray ();
  cJSON_AddItemToArray (both, cJSON_CreateNumber (quotient));
  cJSON_AddItemToArray (both, cJSON_CreateNumber (a - b * quotient));
  return both;
}

/* Functions of several numbers. */
static const struct {
  const char *name;
  cJSON *(*make) (const cJSON *call); /* NULL: that is not known */
} of_numbers[] = { { "range", range_of }, { "divmod", quotient_of } };

/* Which one it is; as many as there are: none. */
static gsize
find_of_numbers (const char *name)
{
  gsize i = 0;
  while (i < G_N_ELEMENTS (of_numbers) && strcmp (name, of_numbers[i].name) != 0)
    i++;
  return i;
}

static bool
is_of_numbers (const char *name)
{
  return find_of_numbers (name) < G_N_ELEMENTS (of_numbers);
}

static bool
is_choice (const char *name)
{
  static const char *const names[] = { "max", "min", NULL };
  return g_strv_contains (names, name);
}

/* The largest or least of several numbers, or of one array of them; nothing by a name: "key", "default". */
static cJSON *
chosen (const char *name, const cJSON *call)
{
  const cJSON *first = argument (call, "0"), *best = NULL;
  bool is_array = cJSON_IsArray (first) && !argument (call, "1"), is_most = strcmp (name, "max") == 0;
  for (const cJSON *item = call->child; item; item = item->next)
    if (strcmp (item->string, "()") != 0 && !g_ascii_isdigit (*item->string))
      return NULL;
  for (const cJSON *item = is_array ? first->child : first; item; item = item->next) {
    if (!cJSON_IsNumber (item))
      return NULL;
    bool is_better
        = best && (is_most ? item->valuedouble > best->valuedouble : item->valuedouble < best->valuedouble);
    best = !best || is_better ? item : best;
  }
  return best ? python_number (best->valuedouble, python_is_kind (best, PYTHON_FLOAT)) : NULL;
}

bool
python_is_builtin (const LsPython *p, const char *name)
{
  static const char *const names[] = { "getattr", "hasattr", "isinstance", NULL };
  return g_strv_contains (names, name) || python_sequence_function (name) || is_conversion (name)
      || is_choice (name) || is_of_numbers (name) || python_asks_environment (p, name);
}

cJSON *
python_answer (const LsPython *p, const char *name, const cJSON *call, guint n_names)
{
  const cJSON *of = argument (call, "0");
  PythonMake *make = python_sequence_function (name);
  if (make)
    return make (call);
  if (n_names > 1) /* one is a class */
    return NULL;
  bool is_of_class = !python_asks_environment (p, name) && !is_conversion (name) && !is_choice (name)
      && !is_of_numbers (name);
  if (n_names > 0 && !is_of_class)
    return NULL;
  if (python_asks_environment (p, name))
    return python_variable_or (p, call);
  if (is_choice (name))
    return chosen (name, call);
  if (is_of_numbers (name))
    return of_numbers[find_of_numbers (name)].make (call);
  if (!is_conversion (name))
    return attribute (name, call);
  return of && !argument (call, "1") ? conversions[find_conversion (name)].make (of) : NULL;
}

/* --- methods and parts ------------------------------------------------------------------------------- */

/* Path (...).with_name ("b"): the file of that name in the folder of this one. */
static cJSON *
path_with_name (const char *path, const cJSON *call)
{
  const cJSON *name = argument (call, "0");
  if (!python_is_text (name))
    return NULL;
  g_autofree char *folder = g_path_get_dirname (path),
                  *whole = g_build_filename (folder, name->valuestring, NULL);
  return cJSON_CreateString (whole);
}

/* What a method without arguments gives. */
static cJSON *
whole_of (const cJSON *dictionary, const char *name)
{
  static const char *const names[]
      = { [PYTHON_KEYS] = "keys", [PYTHON_VALUES] = "values", [PYTHON_PAIRS] = "items" };
  for (PythonDictionaryPart part = PYTHON_KEYS; part <= PYTHON_PAIRS; part++)
    if (strcmp (name, names[part]) == 0)
      return python_parts_of (dictionary, part);
  return NULL;
}

static cJSON *
copy_of (const cJSON *dictionary)
{
  cJSON *copy = cJSON_Duplicate (dictionary, true);
  copy->valueint = 0; /* it is another one */
  return copy;
}

cJSON *
python_method (const cJSON *of, const char *name, const cJSON *call)
{
  if (python_is_dictionary (of) && !call->child && strcmp (name, "copy") == 0)
    return copy_of (of);
  if (python_is_dictionary (of) && !call->child)
    return whole_of (of, name);
  const cJSON *which = argument (call, "0"), *usual = argument (call, "1");
  if (python_is_text (of))
    return strcmp (name, "with_name") == 0 ? path_with_name (of->valuestring, call)
                                           : python_text_method (of->valuestring, name, call);
  g_autofree char *key = python_key_of (which);
  if (!python_is_dictionary (of) || strcmp (name, "get") != 0 || !key || python_is_unknown (which))
    return NULL;
  const cJSON *member = cJSON_GetObjectItemCaseSensitive (of, key);
  member = member ? member : usual;
  return member ? cJSON_Duplicate (member, true) : cJSON_CreateNull ();
}
