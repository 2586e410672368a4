/* data/python/python_operators.c — operators, and what is true: of what is known, else a hole. */
#include <math.h>
#include <string.h>

#include "data/python/python_parts.h"
#include "data/shell/shell.h"

/* --- operators -------------------------------------------------------------------------------------- */

static PythonValue unary (PythonPlace *x);

/* a ** b, which binds more than the sign of a, and less than that of b. */
static PythonValue
power (PythonPlace *x)
{
  guint first = x->at;
  PythonValue v = python_operand (x);
  const PythonToken *mark = python_token (x);
  if (!python_take (x, "**"))
    return v;
  bool is_near = python_enter (x->python, mark->line);
  PythonValue by = is_near ? unary (x) : (PythonValue) { .item = cJSON_CreateNull () };
  x->python->depth--;
  return python_arithmetic (x, mark, v, by, first);
}

static PythonValue
unary (PythonPlace *x)
{
  guint first = x->at;
  double sign = 1;
  bool is_known = true;
  for (; python_is (python_token (x), "-") || python_is (python_token (x), "+")
       || python_is (python_token (x), "~") || python_is (python_token (x), "await");
       x->at++) {
    sign = python_is (python_token (x), "-") ? -sign : sign;
    is_known = is_known && (python_is (python_token (x), "-") || python_is (python_token (x), "+"));
  }
  bool is_plain = x->at == first;
  PythonValue v = power (x);
  if (is_plain)
    return v;
  if (!is_known || !cJSON_IsNumber (v.item))
    return python_hole_of (x, v, first);
  bool is_float = python_is_kind (v.item, PYTHON_FLOAT);
  double value = v.item->valuedouble * sign;
  python_drop (v);
  return python_value_of (x, python_number (is_float ? value : value + 0.0, is_float)); /* -0 is 0 */
}

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
static cJSON *
number_of (const PythonToken *mark, const cJSON *a, const cJSON *b)
{
  if (!cJSON_IsNumber (a) || !cJSON_IsNumber (b))
    return NULL;
  double value = computed (mark, a->valuedouble, b->valuedouble);
  bool is_float = python_is_kind (a, PYTHON_FLOAT) || python_is_kind (b, PYTHON_FLOAT)
      || python_is (mark, "/") || (python_is (mark, "**") && b->valuedouble < 0),
       is_exact = is_float || fabs (value) <= 9007199254740992;
  return isfinite (value) && is_exact ? python_number (value, is_float) : NULL;
}

/* a in b: one of a list, a key of a dictionary, a part of a text. */
static PythonTruth
is_among (const cJSON *item, const cJSON *all)
{
  PythonTruth truth = PYTHON_FALSE;
  if (python_is_dictionary (all))
    return python_has_key (all, item);
  if (python_is_text (all) && python_is_text (item))
    return strstr (all->valuestring, item->valuestring) ? PYTHON_TRUE : PYTHON_FALSE;
  if (!cJSON_IsArray (all))
    return PYTHON_OPEN;
  for (const cJSON *one = all->child; one && truth != PYTHON_TRUE; one = one->next) {
    PythonTruth is_it = python_is_same (one, item);
    truth = is_it == PYTHON_FALSE ? truth : is_it;
  }
  return truth;
}

static PythonTruth
inverse (PythonTruth truth)
{
  return truth == PYTHON_OPEN ? truth : PYTHON_TRUE - truth;
}

/* None, and nothing else, is None; a name that means nothing here is taken for something. */
static PythonTruth
is_none (const cJSON *a, const cJSON *b)
{
  const cJSON *other = cJSON_IsNull (a) ? b : a;
  bool is_name = cJSON_IsString (other) && !python_is_open (other);
  if (cJSON_IsNull (other))
    return PYTHON_TRUE;
  return python_is_unknown (other) && !is_name ? PYTHON_OPEN : PYTHON_FALSE;
}

static PythonTruth
compared (const PythonToken *mark, const cJSON *a, const cJSON *b)
{
  bool are_numbers = cJSON_IsNumber (a) && cJSON_IsNumber (b), is_not = python_is (mark, "!=");
  double below = are_numbers ? a->valuedouble - b->valuedouble : 0;
  if (!a || !b)
    return PYTHON_OPEN;
  if (python_is (mark, "in"))
    return is_among (a, b);
  if (is_not || python_is (mark, "==") || python_is (mark, "is")) {
    PythonTruth truth = cJSON_IsNull (a) || cJSON_IsNull (b) ? is_none (a, b) : python_is_same (a, b);
    return is_not ? inverse (truth) : truth;
  }
  if (!are_numbers)
    return PYTHON_OPEN;
  return python_is (mark, "<") ? below < 0
      : python_is (mark, ">")  ? below > 0
      : python_is (mark, "<=") ? below <= 0
                               : below >= 0;
}

/* a + b of lists; both are taken. */
static PythonValue
joined (PythonPlace *x, PythonValue a, PythonValue b)
{
  for (const cJSON *item = b.item->child; item && !x->python->why; item = item->next)
    cJSON_AddItemToArray (a.item, python_item_of (x, python_copy_of (x, item)));
  python_drop (b);
  a.item->valueint = 0; /* it is another list */
  return python_value_of (x, a.item);
}

/* So many times a list, which is taken. */
static PythonValue
repeated (PythonPlace *x, PythonValue list, double times)
{
  cJSON *all = cJSON_CreateArray ();
  for (double n = 0; n < times && !x->python->why; n++)
    for (const cJSON *item = list.item->child; item && !x->python->why; item = item->next)
      cJSON_AddItemToArray (all, python_item_of (x, python_copy_of (x, item)));
  python_drop (list);
  return python_value_of (x, all);
}

PythonValue
python_arithmetic (PythonPlace *x, const PythonToken *mark, PythonValue a, PythonValue b, guint first)
{
  bool are_texts = python_is_text (a.item) && python_is_text (b.item);
  if (cJSON_IsArray (a.item) && cJSON_IsArray (b.item) && python_is (mark, "+"))
    return joined (x, a, b);
  if (cJSON_IsArray (a.item) && cJSON_IsNumber (b.item) && python_is (mark, "*")) {
    double times = b.item->valuedouble;
    python_drop (b);
    return repeated (x, a, times);
  }
  cJSON *result = number_of (mark, a.item, b.item);
  if (are_texts && python_is (mark, "+")) {
    g_autofree char *joined = g_strconcat (a.item->valuestring, b.item->valuestring, NULL);
    result = cJSON_CreateString (joined);
  }
  if (!result && python_is_text (a.item) && python_is (mark, "%"))
    result = python_percent (a.item->valuestring, b.item);
  python_drop (b);
  if (!result)
    return python_hole_of (x, a, first);
  python_drop (a);
  return python_value_of (x, result);
}

static PythonValue
truth_value (PythonPlace *x, PythonValue v, PythonTruth truth, guint first)
{
  if (truth == PYTHON_OPEN)
    return python_hole_of (x, v, first);
  python_drop (v);
  return python_value_of (x, cJSON_CreateBool (truth == PYTHON_TRUE));
}

static bool
is_one_of (const PythonToken *t, const char *const *marks)
{
  for (; *marks; marks++)
    if (python_is (t, *marks))
      return true;
  return false;
}

static PythonValue
product (PythonPlace *x, guint level)
{
  static const char *const levels[][7]
      = { { "|", "&", "^", "<<", ">>" }, { "+", "-" }, { "*", "/", "//", "%", "@" } };
  if (level == G_N_ELEMENTS (levels))
    return unary (x);
  guint first = x->at;
  PythonValue v = product (x, level + 1);
  while (is_one_of (python_token (x), levels[level]) && !x->python->why) {
    const PythonToken *mark = python_token (x);
    x->at++;
    v = python_arithmetic (x, mark, v, product (x, level + 1), first);
  }
  return v;
}

/* With "A" in os.environ. */
static PythonTruth
related (const PythonPlace *x, const PythonToken *mark, const cJSON *a, const PythonValue *b)
{
  bool asks = python_is (mark, "in") && b->name && cJSON_IsString (a) && !python_is_open (a)
      && python_is_environment (x->python, b->name);
  if (!asks)
    return compared (mark, a, b->item);
  return python_has_variable (x->python, a);
}

static PythonValue
comparison (PythonPlace *x)
{
  static const char *const marks[] = { "==", "!=", "<", ">", "<=", ">=", "in", "is", "not", NULL };
  guint first = x->at;
  PythonValue v = product (x, 0);
  for (guint n = 0; is_one_of (python_token (x), marks) && !x->python->why; n++) {
    bool is_not = python_take (x, "not");
    const PythonToken *mark = python_token (x);
    x->at++;
    is_not = is_not || (python_is (mark, "is") && python_take (x, "not"));
    PythonValue other = product (x, 0);
    PythonTruth truth = n > 0 ? PYTHON_OPEN : related (x, mark, v.item, &other); /* a < b < c */
    python_drop (other);
    v = truth_value (x, v, is_not ? inverse (truth) : truth, first);
  }
  return v;
}

static PythonValue
negation (PythonPlace *x)
{
  guint first = x->at;
  if (!python_take (x, "not"))
    return comparison (x);
  bool is_near = python_enter (x->python, python_token (x)->line);
  PythonValue v = is_near ? negation (x) : (PythonValue) { .item = cJSON_CreateNull () };
  x->python->depth--;
  PythonTruth truth = python_truth_of (v.item);
  return truth_value (x, v, inverse (truth), first);
}

/* "a or b" is a if that is true, "a and b" if that is false. */
static PythonValue
either (PythonPlace *x, bool is_and)
{
  guint first = x->at;
  PythonValue v = is_and ? negation (x) : either (x, true);
  while (python_take (x, is_and ? "and" : "or") && !x->python->why) {
    PythonValue other = is_and ? negation (x) : either (x, true);
    PythonTruth truth = python_truth_of (v.item);
    bool is_first = truth == (is_and ? PYTHON_FALSE : PYTHON_TRUE);
    python_drop (truth == PYTHON_OPEN || is_first ? other : v);
    v = truth == PYTHON_OPEN ? python_hole_of (x, v, first) : is_first ? v : other;
  }
  return v;
}

PythonValue
python_either (PythonPlace *x)
{
  return either (x, false);
}

/* "a := b" in brackets, behind the mark. */
static PythonValue
named (PythonPlace *x, guint first)
{
  g_autoptr (GPtrArray) path = g_ptr_array_new_with_free_func (g_free);
  cJSON *item = python_expression (x);
  const PythonToken *name = &g_array_index (x->python->tokens, PythonToken, first);
  g_ptr_array_add (path, g_strndup (name->at, name->n));
  PythonValue v = python_copy_of (x, item);
  python_set_path (x, path, 1, item, first);
  return v;
}

PythonValue
python_any (PythonPlace *x)
{
  guint first = x->at;
  bool is_named = python_token (x)->kind == PYTHON_NAME && python_is (python_token (x) + 1, ":=");
  x->at += is_named ? 2 : 0;
  if (is_named)
    return named (x, first);
  bool is_near = python_enter (x->python, python_token (x)->line);
  PythonValue v = is_near ? either (x, false) : (PythonValue) { .item = cJSON_CreateNull () };
  if (python_is (python_token (x), "if") && !x->python->why) {
    x->at++;
    PythonValue condition = python_any (x);
    PythonTruth truth = python_truth_of (condition.item);
    python_drop (condition);
    bool has_other = python_expect (x, "else");
    PythonValue other = has_other ? python_any (x) : (PythonValue) { .item = cJSON_CreateNull () };
    python_drop (truth == PYTHON_FALSE ? v : other);
    v = truth == PYTHON_FALSE ? other : v;
    v = truth == PYTHON_OPEN ? python_hole_of (x, v, first) : v;
  }
  x->python->depth--;
  return v;
}

bool
python_is_true (PythonPlace *x, bool *ret_is_open)
{
  PythonValue v = python_any (x);
  PythonTruth truth = python_truth_of (v.item);
  python_drop (v);
  *ret_is_open = truth == PYTHON_OPEN;
  return truth == PYTHON_TRUE;
}

cJSON *
python_expression (PythonPlace *x)
{
  return python_item_of (x, python_any (x));
}

/* Whether another item stands behind a comma. */
static bool
has_more (PythonPlace *x)
{
  const PythonToken *t = python_token (x);
  return t->kind != PYTHON_END && !python_is (t, "=") && !python_is (t, "]") && !python_is (t, ")");
}

cJSON *
python_tuple (PythonPlace *x)
{
  guint first = x->at;
  bool is_spread = python_is (python_token (x), "*"), is_known;
  cJSON *all = cJSON_CreateArray ();
  is_known = python_add_item (x, all);
  if (!is_spread && !python_is (python_token (x), ",")) {
    cJSON *only = cJSON_DetachItemFromArray (all, 0);
    cJSON_Delete (all);
    return only;
  }
  while (!x->python->why && python_take (x, ",") && has_more (x))
    is_known = python_add_item (x, all) && is_known;
  all->type |= PYTHON_TUPLE;
  return is_known ? all : python_hole (x, all, first);
}

cJSON *
python_hole (PythonPlace *x, cJSON *item, guint first)
{
  return python_hole_of (x, (PythonValue) { .item = item }, first).item;
}
