/* data/shell/shell_arith.c — expressions of the shell: arithmetic, conditions of [ ... ] and [[ ... ]]. */
#include "data/shell/shell_parts.h"

#include <fnmatch.h>
#include <regex.h>
#include <string.h>

#define NAME_LETTERS G_CSET_DIGITS G_CSET_A_2_Z G_CSET_a_2_z "_"

typedef struct {
  const LsShell *sh;
  const char *p;
  int depth;
  bool is_bad;
} Sum;

static gint64 expression (Sum *s, int least);

static gint64
bad (Sum *s)
{
  s->is_bad = true;
  return 0;
}

static bool
take (Sum *s, const char *text)
{
  s->p += strspn (s->p, " \t\n\v\f\r");
  if (!g_str_has_prefix (s->p, text))
    return false;
  s->p += strlen (text);
  return true;
}

/* A number, or a variable that is one. */
static gint64
number (Sum *s)
{
  const gsize n = strspn (s->p, NAME_LETTERS);
  g_autofree char *word = g_strndup (s->p, n);
  const ShellValue *value = g_ascii_isdigit (*word) ? NULL : shell_value (s->sh, word);
  const char *digits = !value ? word : value->items->len == 1 ? value->items->pdata[0] : "";
  gint64 result = 0;
  s->p += n;
  bool is_number = g_ascii_string_to_signed (digits, 10, G_MININT64, G_MAXINT64, &result, NULL);
  return is_number && *s->p != '.' ? result : bad (s);
}

/* In the order in which they are looked for: longer ones first. */
static const struct {
  const char *text;
  int level;
  char sign;
} operators[] = {
  { "**", 12, '^' }, { "<=", 6, 'l' }, { ">=", 6, 'g' }, { "==", 5, '=' }, { "!=", 5, '!' },
  { "&&", 3, '&' },  { "||", 2, '|' }, { "*", 10, '*' }, { "/", 10, '/' }, { "%", 10, '%' },
  { "+", 9, '+' },   { "-", 9, '-' },  { "<", 6, '<' },  { ">", 6, '>' },  { "?", 1, '?' },
};

#define LEVEL_OF_SIGNS 11

/* What an operator makes of two numbers; false: none, or one that is too large. */
static bool
apply (char sign, gint64 a, gint64 b, gint64 *ret)
{
  bool is_exact = b != 0 && !(a == G_MININT64 && b == -1);
  switch (sign) {
  case '+':
    return !__builtin_add_overflow (a, b, ret);
  case '-':
    return !__builtin_sub_overflow (a, b, ret);
  case '*':
    return !__builtin_mul_overflow (a, b, ret);
  case '/':
  case '%':
    *ret = !is_exact ? 0 : sign == '/' ? a / b : a % b;
    return is_exact;
  case '^':
    is_exact = b >= 0 && b <= 62;
    for (*ret = 1; b > 0 && is_exact; b--)
      is_exact = !__builtin_mul_overflow (*ret, a, ret);
    return is_exact;
  default:
    *ret = sign == '&' ? a && b
        : sign == '|'  ? a || b
        : sign == '='  ? a == b
        : sign == '!'  ? a != b
        : sign == '<'  ? a < b
        : sign == '>'  ? a > b
        : sign == 'l'  ? a <= b
                       : a >= b;
    return true;
  }
}

static gint64
operand (Sum *s)
{
  gint64 value;
  if (take (s, "(")) {
    value = expression (s, 0);
    return take (s, ")") ? value : bad (s);
  }
  if (take (s, "-"))
    return apply ('-', 0, expression (s, LEVEL_OF_SIGNS), &value) ? value : bad (s);
  if (take (s, "+"))
    return expression (s, LEVEL_OF_SIGNS);
  return take (s, "!") ? !expression (s, LEVEL_OF_SIGNS) : number (s);
}

/* Of operators that bind as much as the least, or more. */
static gint64
expression (Sum *s, int least)
{
  if (++s->depth > SHELL_MAX_NESTED)
    return bad (s);
  gint64 value = operand (s);
  for (guint i = 0; i < G_N_ELEMENTS (operators) && !s->is_bad; i++) {
    if (operators[i].level < least || !take (s, operators[i].text))
      continue;
    const gint64 right = expression (s, operators[i].sign == '?' ? 0 : operators[i].level + 1);
    if (operators[i].sign == '?') {
      const gint64 other = take (s, ":") ? expression (s, 1) : bad (s);
      value = value ? right : other;
    } else if (!apply (operators[i].sign, value, right, &value))
      bad (s);
    i = (guint) -1; /* whatever stands behind it */
  }
  s->depth--;
  return value;
}

bool
shell_arithmetic (const LsShell *sh, const char *text, gint64 *ret_value)
{
  Sum s = { sh, text, 0, false };
  if (ls_shell_has_hole (text))
    return false;
  *ret_value = expression (&s, 0);
  return take (&s, "") && !s.is_bad && *s.p == '\0';
}

/* --- [ ... ] and [[ ... ]]: decided where no hole stands in the way --------------------------------- */

typedef struct {
  LsShell *sh;
  char *const *words;
  guint n, at;
  bool has_patterns;
  int depth;
} Test;

static ShellStatus either (Test *t, bool is_and);

static ShellStatus
status_of (bool is_true)
{
  return is_true ? SHELL_YES : SHELL_NO;
}

static ShellStatus
negated (ShellStatus s)
{
  return s == SHELL_YES ? SHELL_NO : s == SHELL_NO ? SHELL_YES : SHELL_UNKNOWN;
}

static bool
take_word (Test *t, const char *word)
{
  bool is_it = t->at < t->n && strcmp (t->words[t->at], word) == 0;
  t->at += is_it;
  return is_it;
}

/* Whether a word is empty; one that is a variable as a whole which nobody set is noted, and is. */
static ShellStatus
is_empty (Test *t, const char *word)
{
  static const char *const forms[][2] = { { "\001${", "}\002" }, { "\001$", "\002" } };
  if (!ls_shell_has_hole (word))
    return status_of (*word == '\0');
  for (guint i = 0; i < G_N_ELEMENTS (forms); i++) {
    const char *name = g_str_has_prefix (word, forms[i][0]) ? word + strlen (forms[i][0]) : "";
    const gsize n = strspn (name, NAME_LETTERS);
    if (n == 0 || strcmp (name + n, forms[i][1]) != 0)
      continue;
    g_autofree char *own = g_strndup (name, n);
    shell_note_unset (t->sh, own);
    return SHELL_YES;
  }
  return word[0] != LS_SHELL_HOLE ? SHELL_NO : SHELL_UNKNOWN;
}

static ShellStatus
equal (Test *t, const char *a, const char *b)
{
  if (*a == '\0' || *b == '\0')
    return is_empty (t, *b == '\0' ? a : b);
  if (ls_shell_has_hole (a) || ls_shell_has_hole (b))
    return SHELL_UNKNOWN;
  if (t->has_patterns && strlen (a) + strlen (b) < 4096)
    return status_of (fnmatch (b, a, 0) == 0);
  return status_of (strcmp (a, b) == 0);
}

/* A number; of [[ ... ]] an expression too. */
static bool
number_of (const Test *t, const char *text, gint64 *ret)
{
  return g_ascii_string_to_signed (text, 10, G_MININT64, G_MAXINT64, ret, NULL)
      || (t->has_patterns && *text && shell_arithmetic (t->sh, text, ret));
}

/* Those with two words, and how they compare numbers; 0: something else. */
static const struct {
  const char *text;
  char sign;
} comparisons[] = { { "-eq", '=' }, { "-ne", '!' }, { "-lt", '<' }, { "-le", 'l' }, { "-gt", '>' },
                    { "-ge", 'g' }, { "=", 0 },     { "==", 0 },    { "!=", 0 },    { "=~", 0 },
                    { "<", 0 },     { ">", 0 },     { "-nt", 0 },   { "-ot", 0 },   { "-ef", 0 } };

static ShellStatus
binary (Test *t, const char *a, guint row, const char *b)
{
  const char *mark = comparisons[row].text;
  gint64 x, y;
  regex_t regex;
  if (comparisons[row].sign != 0 && number_of (t, a, &x) && number_of (t, b, &y))
    return status_of (apply (comparisons[row].sign, x, y, &x) && x != 0);
  if (ls_shell_is_one (mark, "= =="))
    return equal (t, a, b);
  if (strcmp (mark, "!=") == 0)
    return negated (equal (t, a, b));
  if (strcmp (mark, "=~") != 0 || ls_shell_has_hole (a) || ls_shell_has_hole (b)
      || strlen (a) + strlen (b) > 256 || strpbrk (b, "{\\")
      || regcomp (&regex, b, REG_EXTENDED | REG_NOSUB) != 0)
    return SHELL_UNKNOWN;
  bool is_found = regexec (&regex, a, 0, NULL, 0) == 0;
  regfree (&regex);
  return status_of (is_found);
}

static ShellStatus
primary (Test *t)
{
  if (t->at >= t->n)
    return SHELL_UNKNOWN;
  if (take_word (t, "(")) {
    ShellStatus inner = either (t, false);
    take_word (t, ")");
    return inner;
  }
  const char *a = t->words[t->at++];
  for (guint row = 0; row < G_N_ELEMENTS (comparisons) && t->at + 1 < t->n; row++)
    if (strcmp (comparisons[row].text, t->words[t->at]) == 0) {
      t->at += 2;
      return binary (t, a, row, t->words[t->at - 1]);
    }
  if (a[0] != '-' || strlen (a) != 2 || t->at >= t->n)
    return negated (is_empty (t, a));
  const char *word = t->words[t->at++];
  return a[1] == 'z' ? is_empty (t, word)
      : a[1] == 'n'  ? negated (is_empty (t, word))
                     : SHELL_UNKNOWN; /* of files */
}

/* Conditions with "!" in front. */
static ShellStatus
denied (Test *t)
{
  bool is_negated = false;
  while (take_word (t, "!"))
    is_negated = !is_negated;
  ShellStatus s = ++t->depth > 2 * SHELL_MAX_NESTED ? SHELL_UNKNOWN : primary (t);
  t->depth--;
  return is_negated ? negated (s) : s;
}

/* Conditions with "||" between, or, is_and, with "&&". */
static ShellStatus
either (Test *t, bool is_and)
{
  const ShellStatus decisive = status_of (!is_and);
  ShellStatus s = is_and ? denied (t) : either (t, true);
  while (take_word (t, is_and ? "-a" : "-o") || take_word (t, is_and ? "&&" : "||")) {
    ShellStatus next = is_and ? denied (t) : either (t, true);
    s = s == decisive || next == decisive ? decisive : s == SHELL_UNKNOWN ? s : next;
  }
  return s;
}

ShellStatus
shell_test (LsShell *sh, char *const *words, guint n, bool has_patterns)
{
  n -= !has_patterns && n > 0 && strcmp (words[n - 1], "]") == 0;
  Test t = { sh, words, n, 0, has_patterns, 0 };
  ShellStatus s = either (&t, false);
  return t.at == n ? s : SHELL_UNKNOWN;
}

ShellStatus
shell_set_arithmetic (LsShell *sh, const char *text)
{
  const char *p = text + strspn (text, " \t"), *end = shell_name_end (p, p + strlen (p)),
             *q = end + strspn (end, " \t");
  bool is_step = (q[0] == '+' || q[0] == '-') && q[1] == q[0] && q[2 + strspn (q + 2, " \t")] == '\0';
  bool is_plain = q[0] == '=' && q[1] != '=', changes = *q && strchr ("+-*/%", *q) && q[1] == '=';
  bool sets = end > p && (is_step || is_plain || changes);
  g_autofree char *name = g_strndup (p, (gsize) (end - p)),
                  *sum = !sets || is_plain ? g_strdup (sets ? q + 1 : text)
                                           : g_strdup_printf ("%s %c (%s)", name, *q, is_step ? "1" : q + 2),
                  *what = g_strdup_printf ("$((%s))", name);
  gint64 value = 0;
  bool is_known = shell_arithmetic (sh, sum, &value);
  if (sets)
    shell_set (sh, name, is_known ? g_strdup_printf ("%" G_GINT64_FORMAT, value) : shell_hole (what));
  return is_known ? status_of (value != 0) : SHELL_UNKNOWN;
}

/* --- elements of arrays --------------------------------------------------------------------------- */

void
shell_set_element (LsShell *sh, const char *p, const char *end, char *text, bool is_appended)
{
  const char *name_end = shell_name_end (p, end), *close = end;
  g_autofree char *name = g_strndup (p, (gsize) (name_end - p)), *own = text;
  const ShellValue *old = shell_value (sh, name);
  while (close > name_end && *close != ']')
    close--;
  g_autofree char *index = shell_expand_text (sh, MIN (name_end + 1, close), close, false);
  gint64 at = 0;
  bool is_known = shell_arithmetic (sh, index, &at) && at >= 0;
  if (!old && (!is_known || !text))
    return; /* of an array by names nothing is known */
  GPtrArray *items = g_ptr_array_new_with_free_func (g_free);
  guint n = old ? old->items->len : 0, i = is_known ? (guint) MIN ((guint64) at, n) : n;
  for (guint k = 0; k < n; k++)
    g_ptr_array_add (items, g_strdup (old->items->pdata[k]));
  if (!is_known)
    g_ptr_array_add (items, shell_hole (name));
  else if (!text && i < n)
    g_ptr_array_remove_index (items, i);
  else if (text && i == n)
    g_ptr_array_add (items, g_steal_pointer (&own));
  else if (text) {
    char *now = g_strconcat (is_appended ? items->pdata[i] : "", text, NULL);
    g_free (items->pdata[i]);
    items->pdata[i] = now;
  }
  shell_assign (sh, name, items, true, false);
}
