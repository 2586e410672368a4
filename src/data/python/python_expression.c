/* data/python/python_expression.c — texts, numbers, names, lists, calls and operators of Python. What is not
 * known is a hole, with its words and what names in it were set to. */
#include <math.h>
#include <string.h>

#include "data/python/python_parts.h"

#define MAX_HOLE 120 /* letters of an expression that a hole shows */

static bool
expect (PythonPlace *x, const char *text)
{
  if (python_take (x, text))
    return true;
  g_autofree char *why = g_strdup_printf ("expected \"%s\"", text);
  python_fail (x->python, python_token (x)->line, why);
  return false;
}

/* --- holes -------------------------------------------------------------------------------------------- */

/* What a token stands for, of a name that was set to a text or to a call whose first argument is one; NULL:
 * it is as it is written. The caller frees it. */
static char *
text_of_name (const PythonPlace *x, guint at)
{
  const PythonToken *t = &g_array_index (x->python->tokens, PythonToken, at);
  bool is_name = t->kind == PYTHON_NAME && !(at > 0 && python_is (t - 1, ".")) && !python_is (t + 1, "=");
  g_autofree char *name = is_name ? python_word (t) : NULL;
  const PythonValue *v = name ? python_lookup (x, name) : NULL,
                    *of = v && v->kind == PYTHON_IS_CALL ? python_get (v, "0") : v;
  if (!of
      || (of->kind != PYTHON_IS_TEXT
          && (v != of || (of->kind != PYTHON_IS_HOLE && of->kind != PYTHON_IS_NAME))))
    return NULL;
  return v != of                   ? g_strdup_printf ("%s(\"%s\")", v->text, of->text)
      : of->kind == PYTHON_IS_TEXT ? g_strdup_printf ("\"%s\"", of->text)
                                   : g_strdup (of->text);
}

char *
python_hole_text (const PythonPlace *x, guint first, guint end)
{
  g_autoptr (GString) out = g_string_new (NULL);
  for (guint i = first; i < end && out->len < MAX_HOLE; i++) {
    const PythonToken *t = &g_array_index (x->python->tokens, PythonToken, i);
    if (t->kind == PYTHON_END)
      break;
    g_autofree char *text = text_of_name (x, i);
    if (i > first && t->at > (t - 1)->at + (t - 1)->n)
      g_string_append_len (out, (t - 1)->at + (t - 1)->n, t->at - (t - 1)->at - (gssize) (t - 1)->n);
    if (text)
      g_string_append (out, text);
    else
      g_string_append_len (out, t->at, (gssize) t->n);
  }
  return python_shown (out->str, MIN (out->len, MAX_HOLE));
}

PythonValue *
python_hole (PythonPlace *x, guint first)
{
  g_autofree char *text = python_hole_text (x, first, MAX (first + 1, x->at));
  return python_called (x->python, PYTHON_IS_HOLE, text);
}

/* --- texts and numbers -------------------------------------------------------------------------------- */

/* "{a}", "{a.b}" of f"{a}": what stands behind "{". Returns how many letters it has, with its "}"; 0: that is
 * not known. */
static gsize
append_value (GString *out, const PythonPlace *x, const char *at)
{
  g_autofree char *path = g_strndup (at, strcspn (at, "}"));
  g_auto (GStrv) names = g_strsplit (g_strstrip (path), ".", -1);
  const PythonValue *v = *names ? python_lookup (x, *names) : NULL;
  for (char **name = names + 1; v && *name; name++)
    v = python_get (v, *name);
  g_autofree char *text = v ? python_written (v) : NULL;
  g_string_append (out, text ? text : "");
  return text ? strcspn (at, "}") + 1 : 0;
}

/* f"a{b}". False: it is not known. */
static bool
append_formatted (GString *out, const PythonPlace *x)
{
  gsize n, part;
  const char *at = python_text_inside (python_token (x), &n), *end = at + n;
  for (; at < end; at += part) {
    bool is_value = *at == '{' && at[1] != '{', is_mark = !is_value && strchr ("{}", *at);
    part = is_mark ? 1 : MIN (strcspn (at, "{}"), (gsize) (end - at));
    if (is_value && (part = append_value (out, x, at + 1)) > 0)
      part++;
    else if (is_value || (is_mark && at[1] != *at) || !python_append_text (out, python_token (x), at, part))
      return false;
    part += is_mark;
  }
  return true;
}

/* Texts one behind the other are one. */
static PythonValue *
text (PythonPlace *x)
{
  g_autoptr (GString) out = g_string_new (NULL);
  guint first = x->at;
  bool is_known = true;
  for (; python_token (x)->kind == PYTHON_TEXT; x->at++)
    if (python_has_prefix (python_token (x), 'f'))
      is_known = append_formatted (out, x) && is_known;
    else {
      gsize n;
      const char *at = python_text_inside (python_token (x), &n);
      is_known = python_append_text (out, python_token (x), at, n) && is_known;
    }
  return is_known && g_utf8_validate (out->str, -1, NULL) ? python_text (x->python, out->str)
                                                          : python_hole (x, first);
}

static PythonValue *
number (PythonPlace *x)
{
  g_autoptr (GString) digits = g_string_new_len (python_token (x)->at, (gssize) python_token (x)->n);
  char *end;
  g_string_replace (digits, "_", "", 0);
  double value = g_ascii_strtod (digits->str, &end);
  bool is_float = strpbrk (digits->str, ".eE") && !strpbrk (digits->str, "xX");
  guint first = x->at++;
  return *end || !isfinite (value) ? python_hole (x, first) : python_number (x->python, value, is_float);
}

/* --- names -------------------------------------------------------------------------------------------- */

/* Behind "lambda": "lambda: [1, 2]" is a call that has what it returns as `value`; of one with arguments it
 * is not known. */
static PythonValue *
lambda_of (PythonPlace *x, guint first)
{
  bool has_none = python_is (python_token (x), ":");
  python_pass_to (x, ":");
  python_take (x, ":");
  PythonValue *value = python_expression (x), *made = python_called (x->python, PYTHON_IS_CALL, "lambda");
  python_set (made, "value", value, false);
  return has_none && value->kind != PYTHON_IS_HOLE ? made : python_hole (x, first);
}

static PythonValue *
name (PythonPlace *x)
{
  g_autofree char *word = python_word (python_token (x));
  guint first = x->at++;
  if (strcmp (word, "None") == 0)
    return python_new (x->python, PYTHON_IS_NONE);
  if (strcmp (word, "True") == 0 || strcmp (word, "False") == 0)
    return python_bool (x->python, *word == 'T');
  if (strcmp (word, "lambda") == 0)
    return lambda_of (x, first);
  if (strcmp (word, "__file__") == 0)
    return python_text (x->python, python_module (x->python, x->module)->path);
  PythonValue *value = python_lookup (x, word);
  return value ? value : python_called (x->python, PYTHON_IS_NAME, word);
}

/* --- lists, dictionaries and arguments ---------------------------------------------------------------- */

/* Whether behind what was read stands what is not known, "for a in b"; it is passed over then. */
static bool
has_more (PythonPlace *x, const char *end)
{
  const bool has_none = python_is (python_token (x), ",") || python_is (python_token (x), end);
  if (!has_none)
    python_pass_to (x, end);
  return !has_none;
}

/* "a" or "*b" of a list. False: b is not known, and left out. */
static bool
add_item (PythonPlace *x, PythonValue *list)
{
  bool is_spread = python_take (x, "*");
  PythonValue *item = python_expression (x);
  if (!is_spread)
    python_add (list, item);
  else if (python_is_list (item))
    for (guint i = 0; item->items && i < item->items->len; i++)
      python_add (list, item->items->pdata[i]);
  return !is_spread || python_is_list (item);
}

static bool
goes_on (const PythonPlace *x, const char *end)
{
  return !python_is (python_token (x), end) && python_token (x)->kind != PYTHON_END && !x->python->why;
}

/* Of [ ], ( ) and { } without keys, behind the bracket. */
static PythonValue *
items (PythonPlace *x, const char *end, PythonKind kind)
{
  PythonValue *list = python_new (x->python, kind);
  guint first = x->at - 1;
  bool is_known = true, is_tuple = kind != PYTHON_IS_TUPLE || python_is (python_token (x), ")");
  while (goes_on (x, end)) {
    is_known = add_item (x, list) && is_known;
    is_known = !has_more (x, end) && is_known;
    if (!python_take (x, ","))
      break;
    is_tuple = true;
  }
  expect (x, end);
  return !is_known ? python_hole (x, first) : is_tuple ? list : list->items->pdata[0];
}

/* The members of a dictionary, "**kwargs", as arguments or members. False: it is none. */
static bool
spread (PythonValue *to, const PythonValue *of)
{
  for (guint i = 0; of->kind == PYTHON_IS_DICTIONARY && of->items && i < of->items->len; i++)
    python_set (to, of->keys->pdata[i], of->items->pdata[i], false);
  return of->kind == PYTHON_IS_DICTIONARY;
}

/* Behind "{". Keys are texts. */
static PythonValue *
dictionary (PythonPlace *x)
{
  guint first = x->at - 1;
  PythonPlace key = *x;
  PythonValue *made = python_new (x->python, PYTHON_IS_DICTIONARY);
  bool is_known = true, is_set = !python_is (python_token (x), "}") && !python_is (python_token (x), "**");
  bool is_spread = python_is (python_token (x), "*");
  if (is_set && !is_spread)
    python_expression (&key);
  if (is_set && !python_is (python_token (&key), ":"))
    return items (x, "}", PYTHON_IS_LIST);
  while (goes_on (x, "}")) {
    if (python_take (x, "**"))
      is_known = spread (made, python_expression (x)) && is_known;
    else {
      const PythonValue *name = python_expression (x);
      expect (x, ":");
      PythonValue *value = python_expression (x);
      is_known = !has_more (x, "}") && is_known && name->kind == PYTHON_IS_TEXT;
      if (is_known)
        python_set (made, name->text, value, false);
    }
    if (!python_take (x, ","))
      break;
  }
  expect (x, "}");
  return is_known ? made : python_hole (x, first);
}

/* "**b" and "*b" behind the mark. What is not known of it is named. */
static void
spread_argument (PythonPlace *x, PythonValue *call, guint *n, bool is_list)
{
  guint mark = x->at - 1;
  PythonValue *v = python_expression (x);
  bool is_known = is_list ? python_is_list (v) : spread (call, v);
  for (guint i = 0; is_list && is_known && v->items && i < v->items->len; i++) {
    g_autofree char *key = g_strdup_printf ("%u", (*n)++);
    python_set (call, key, v->items->pdata[i], true);
  }
  if (!is_known)
    python_pass (x->python, x->module, mark);
}

void
python_arguments (PythonPlace *x, PythonValue *call)
{
  for (guint n = 0; goes_on (x, ")");) {
    bool is_named = python_token (x)->kind == PYTHON_NAME && python_is (python_token (x) + 1, "="),
         is_list = python_take (x, "*");
    if (is_list || python_take (x, "**"))
      spread_argument (x, call, &n, is_list);
    else {
      g_autofree char *key = is_named ? python_word (python_token (x)) : g_strdup_printf ("%u", n);
      x->at += is_named ? 2 : 0;
      guint first = x->at;
      PythonValue *v = python_expression (x);
      v = has_more (x, ")") ? python_hole (x, first) : v;
      bool is_held = v->is_held; /* an argument alone is held by nobody else */
      python_set (call, key, v, true);
      v->is_held = is_held;
      n += !is_named;
    }
    if (!python_take (x, ","))
      break;
  }
  expect (x, ")");
}

/* --- members and places ------------------------------------------------------------------------------- */

static PythonValue *
member (PythonPlace *x, PythonValue *v, guint first)
{
  g_autofree char *key = python_word (python_token (x));
  x->at++;
  PythonValue *item = v->kind == PYTHON_IS_LIST || v->kind == PYTHON_IS_TUPLE ? NULL : python_get (v, key);
  if (item || (v->kind != PYTHON_IS_NAME && v->kind != PYTHON_IS_CLASS))
    return item ? item : python_hole (x, first);
  g_autofree char *longer = g_strconcat (v->text, ".", key, NULL);
  return python_called (x->python, PYTHON_IS_NAME, longer);
}

/* Behind "[": of a text, and of more than one place, it is not known; os.environ["A"]. */
static PythonValue *
subscript (PythonPlace *x, const PythonValue *v, guint first)
{
  PythonValue *key = NULL, **item = NULL, *value = NULL;
  bool is_open;
  if (python_is (python_token (x), ":"))
    python_pass_to (x, "]");
  else
    key = python_several (x);
  bool is_one = key && python_is (python_token (x), "]");
  python_pass_to (x, "]");
  expect (x, "]");
  if (is_one && v->kind == PYTHON_IS_NAME && strcmp (v->text, "os.environ") == 0)
    value = python_variable (x->python, key, &is_open);
  else if (is_one && (python_is_list (v) || v->kind == PYTHON_IS_DICTIONARY))
    item = python_item_at (v, key);
  value = item ? *item : value && value->kind == PYTHON_IS_TEXT ? value : NULL;
  return value ? value : python_hole (x, first);
}

static PythonValue *
atom (PythonPlace *x)
{
  const PythonToken *t = python_token (x);
  if (t->kind == PYTHON_TEXT)
    return text (x);
  if (t->kind == PYTHON_NUMBER)
    return number (x);
  if (t->kind == PYTHON_NAME)
    return name (x);
  if (python_take (x, "("))
    return items (x, ")", PYTHON_IS_TUPLE);
  if (python_take (x, "["))
    return items (x, "]", PYTHON_IS_LIST);
  if (python_take (x, "{"))
    return dictionary (x);
  if (python_take (x, "..."))
    return python_hole (x, x->at - 1);
  python_fail (x->python, t->line, "expected a value");
  return python_new (x->python, PYTHON_IS_NONE);
}

/* "lower ()" of a value that is known, behind the dot. */
static PythonValue *
method (PythonPlace *x, PythonValue *v, guint first)
{
  g_autofree char *word = python_word (python_token (x));
  PythonValue *call = python_called (x->python, PYTHON_IS_CALL, word);
  x->at += 2;
  python_arguments (x, call);
  return python_method (x, v, word, call, first);
}

static PythonValue *
operand (PythonPlace *x)
{
  guint first = x->at;
  PythonValue *v = atom (x);
  while (!x->python->why) {
    const bool has_dot = python_take (x, "."), is_name = python_token (x)->kind == PYTHON_NAME;
    if (has_dot && !is_name)
      python_fail (x->python, python_token (x)->line, "expected a name");
    else if (has_dot) {
      bool is_method
          = python_is (python_token (x) + 1, "(") && v->kind != PYTHON_IS_NAME && v->kind != PYTHON_IS_CLASS;
      v = is_method ? method (x, v, first) : member (x, v, first);
    } else if (python_take (x, "(")) {
      PythonValue *call = python_called (x->python, PYTHON_IS_CALL, v->text ? v->text : "");
      python_arguments (x, call);
      v = python_call (x, v, call, first);
    } else if (python_take (x, "["))
      v = subscript (x, v, first);
    else
      break;
  }
  return v;
}

/* --- arithmetic --------------------------------------------------------------------------------------- */

/* a % b, which has the sign of b. */
static double
rest_of (double a, double b)
{
  double rest = fmod (a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* NaN: it is none of numbers. */
static double
computed (const PythonToken *mark, double a, double b)
{
  return python_is (mark, "+") ? a + b
      : python_is (mark, "-")  ? a - b
      : python_is (mark, "*")  ? a * b
      : python_is (mark, "/")  ? a / b
      : python_is (mark, "//") ? floor ((a - rest_of (a, b)) / b + 0.5)
      : python_is (mark, "%")  ? rest_of (a, b)
      : python_is (mark, "**") ? pow (a, b)
                               : NAN;
}

/* Of whole numbers whole ones, as far as they are exact. */
static PythonValue *
number_of (LsPython *p, const PythonToken *mark, const PythonValue *a, const PythonValue *b)
{
  double value = computed (mark, a->number, b->number);
  bool is_float
      = a->is_float || b->is_float || python_is (mark, "/") || (python_is (mark, "**") && b->number < 0),
      is_exact = is_float || fabs (value) <= 9007199254740992;
  return isfinite (value) && is_exact ? python_number (p, value, is_float) : NULL;
}

PythonValue *
python_arithmetic (LsPython *p, const PythonToken *mark, PythonValue *a, PythonValue *b)
{
  if (a->kind == PYTHON_IS_NUMBER && b->kind == PYTHON_IS_NUMBER)
    return number_of (p, mark, a, b);
  bool are_texts = a->kind == PYTHON_IS_TEXT && b->kind == PYTHON_IS_TEXT && python_is (mark, "+");
  g_autofree char *joined = are_texts ? g_strconcat (a->text, b->text, NULL) : NULL;
  return joined ? python_text (p, joined) : NULL;
}

static PythonValue *unary (PythonPlace *x);

/* a ** b, which binds more than the sign of a, and less than that of b. */
static PythonValue *
power (PythonPlace *x)
{
  guint first = x->at;
  PythonValue *v = operand (x);
  const PythonToken *mark = python_token (x);
  if (!python_take (x, "**") || !python_enter (x->python, mark->line))
    return v;
  PythonValue *made = python_arithmetic (x->python, mark, v, unary (x));
  x->python->depth--;
  return made ? made : python_hole (x, first);
}

static PythonValue *
unary (PythonPlace *x)
{
  guint first = x->at;
  double sign = 1;
  for (; python_is (python_token (x), "-") || python_is (python_token (x), "+"); x->at++)
    sign = python_is (python_token (x), "-") ? -sign : sign;
  bool is_known = !python_take (x, "~") && !python_take (x, "await"), is_plain = x->at == first;
  PythonValue *v = power (x);
  if (is_plain)
    return v;
  return is_known && v->kind == PYTHON_IS_NUMBER ? python_number (x->python, v->number * sign, v->is_float)
                                                 : python_hole (x, first);
}

static PythonValue *
product (PythonPlace *x, guint level)
{
  static const char *const levels[][7]
      = { { "|", "&", "^", "<<", ">>" }, { "+", "-" }, { "*", "/", "//", "%", "@" } };
  if (level == G_N_ELEMENTS (levels))
    return unary (x);
  guint first = x->at;
  PythonValue *v = product (x, level + 1);
  while (python_is_one (python_token (x), levels[level]) && !x->python->why) {
    const PythonToken *mark = python_token (x);
    x->at++;
    PythonValue *made = python_arithmetic (x->python, mark, v, product (x, level + 1));
    v = made ? made : python_hole (x, first);
  }
  return v;
}

/* --- what is true ------------------------------------------------------------------------------------- */

static PythonTruth
inverse (PythonTruth truth)
{
  return truth == PYTHON_OPEN ? truth : PYTHON_TRUE - truth;
}

/* a in b, of a list. */
static PythonTruth
is_among (const PythonValue *item, const PythonValue *all)
{
  PythonTruth truth = python_is_list (all) ? PYTHON_FALSE : PYTHON_OPEN;
  for (guint i = 0; python_is_list (all) && all->items && i < all->items->len && truth != PYTHON_TRUE; i++) {
    PythonTruth is_it = python_is_same (all->items->pdata[i], item);
    truth = is_it == PYTHON_FALSE ? truth : is_it;
  }
  return truth;
}

/* None, and nothing else that is known, is None. */
static PythonTruth
is_none (const PythonValue *a, const PythonValue *b)
{
  const PythonValue *other = a->kind == PYTHON_IS_NONE ? b : a;
  return other->kind == PYTHON_IS_NONE ? PYTHON_TRUE : python_is_unknown (other) ? PYTHON_OPEN : PYTHON_FALSE;
}

static PythonTruth
compared (const PythonToken *mark, const PythonValue *a, const PythonValue *b)
{
  bool are_numbers = a->kind == PYTHON_IS_NUMBER && b->kind == PYTHON_IS_NUMBER,
       is_not = python_is (mark, "!=");
  if (python_is (mark, "in"))
    return is_among (a, b);
  double below = are_numbers ? a->number - b->number : 0;
  if (is_not || python_is (mark, "==") || python_is (mark, "is")) {
    bool has_none = a->kind == PYTHON_IS_NONE || b->kind == PYTHON_IS_NONE;
    PythonTruth truth = has_none ? is_none (a, b) : python_is_same (a, b);
    return is_not ? inverse (truth) : truth;
  }
  if (!are_numbers)
    return PYTHON_OPEN;
  return python_is (mark, "<") ? below < 0
      : python_is (mark, ">")  ? below > 0
      : python_is (mark, "<=") ? below <= 0
                               : below >= 0;
}

static PythonValue *
truth_value (PythonPlace *x, PythonTruth truth, guint first)
{
  return truth == PYTHON_OPEN ? python_hole (x, first) : python_bool (x->python, truth == PYTHON_TRUE);
}

static PythonValue *
comparison (PythonPlace *x)
{
  static const char *const marks[] = { "==", "!=", "<", ">", "<=", ">=", "in", "is", "not", NULL };
  guint first = x->at;
  PythonValue *v = product (x, 0);
  for (guint n = 0; python_is_one (python_token (x), marks) && !x->python->why; n++) {
    bool is_not = python_take (x, "not");
    const PythonToken *mark = python_token (x);
    x->at++;
    is_not = is_not || (python_is (mark, "is") && python_take (x, "not"));
    PythonValue *other = product (x, 0);
    PythonTruth truth = n > 0 ? PYTHON_OPEN : compared (mark, v, other); /* a < b < c */
    v = truth_value (x, is_not ? inverse (truth) : truth, first);
  }
  return v;
}

static PythonValue *
negation (PythonPlace *x)
{
  guint first = x->at;
  bool is_not = false;
  while (python_take (x, "not"))
    is_not = !is_not;
  PythonValue *v = comparison (x);
  if (x->at == first || !python_is (&g_array_index (x->python->tokens, PythonToken, first), "not"))
    return v;
  PythonTruth truth = python_truth_of (v);
  return truth_value (x, is_not ? inverse (truth) : truth, first);
}

/* "a or b" is a if that is true, "a and b" if that is false. */
static PythonValue *
either (PythonPlace *x, bool is_and)
{
  guint first = x->at;
  PythonValue *v = is_and ? negation (x) : either (x, true);
  while (python_take (x, is_and ? "and" : "or") && !x->python->why) {
    PythonValue *other = is_and ? negation (x) : either (x, true);
    PythonTruth truth = python_truth_of (v);
    bool is_first = truth == (is_and ? PYTHON_FALSE : PYTHON_TRUE);
    v = truth == PYTHON_OPEN ? python_hole (x, first) : is_first ? v : other;
  }
  return v;
}

PythonValue *
python_expression (PythonPlace *x)
{
  guint first = x->at;
  LsPython *p = x->python;
  PythonValue *v
      = python_enter (p, python_token (x)->line) ? either (x, false) : python_new (p, PYTHON_IS_NONE);
  if (!p->why && python_take (x, "if")) {
    PythonTruth truth = python_truth_of (python_expression (x));
    PythonValue *other = expect (x, "else") ? python_expression (x) : v;
    v = truth == PYTHON_FALSE ? other : v;
    v = truth == PYTHON_OPEN ? python_hole (x, first) : v;
  }
  p->depth--;
  return v;
}

PythonValue *
python_several (PythonPlace *x)
{
  static const char *const ends[] = { "=", "]", ")", NULL };
  guint first = x->at;
  bool is_known = true;
  PythonValue *all = python_new (x->python, PYTHON_IS_TUPLE);
  for (guint n = 0; !x->python->why; n++) {
    bool is_spread = python_take (x, "*");
    PythonValue *item = python_expression (x);
    if (n == 0 && !is_spread && !python_is (python_token (x), ","))
      return item;
    PythonValue *only = is_spread ? NULL : item;
    is_known = is_known && (only || python_is_list (item));
    if (only)
      python_add (all, item);
    for (guint i = 0; !only && python_is_list (item) && item->items && i < item->items->len; i++)
      python_add (all, item->items->pdata[i]);
    if (!python_take (x, ",") || python_token (x)->kind == PYTHON_END
        || python_is_one (python_token (x), ends))
      break;
  }
  return is_known ? all : python_hole (x, first);
}
