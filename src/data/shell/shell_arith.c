/* data/shell/shell_arith.c — expressions of the shell: arithmetic, conditions of [ ... ] and [[ ... ]]. */
#include "data/shell/shell_parts.h"

#include <fnmatch.h>
#include <regex.h>
#include <string.h>

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

static void
skip_blanks (Sum *s)
{
  while (g_ascii_isspace (*s->p))
    s->p++;
}

static bool
take (Sum *s, const char *text)
{
  skip_blanks (s);
  if (!g_str_has_prefix (s->p, text))
    return false;
  s->p += strlen (text);
  return true;
}

static gint64
variable (Sum *s)
{
  const char *begin = s->p;
  while (g_ascii_isalnum (*s->p) || *s->p == '_')
    s->p++;
  g_autofree char *name = g_strndup (begin, (gsize) (s->p - begin));
  const ShellValue *value = shell_value (s->sh, name);
  gint64 number = 0;
  bool is_number = value && value->items->len == 1
      && g_ascii_string_to_signed (value->items->pdata[0], 10, G_MININT64, G_MAXINT64, &number, NULL);
  return is_number ? number : bad (s);
}

static gint64
number (Sum *s)
{
  char *end = NULL;
  gint64 value = g_ascii_strtoll (s->p, &end, 10);
  if (end == s->p || g_ascii_isalnum (*end) || *end == '_' || *end == '.')
    return bad (s);
  s->p = end;
  return value;
}

static gint64
negated (Sum *s)
{
  gint64 value = expression (s, 11), result;
  return __builtin_sub_overflow ((gint64) 0, value, &result) ? bad (s) : result;
}

static gint64
operand (Sum *s)
{
  skip_blanks (s);
  if (++s->depth > 64)
    return bad (s);
  gint64 value;
  if (take (s, "(")) {
    value = expression (s, 0);
    value = take (s, ")") ? value : bad (s);
  } else if (take (s, "-"))
    value = negated (s);
  else if (take (s, "+"))
    value = expression (s, 11);
  else if (take (s, "!"))
    value = !expression (s, 11);
  else
    value = g_ascii_isalpha (*s->p) || *s->p == '_' ? variable (s) : number (s);
  s->depth--;
  return value;
}

/* In the order in which they are looked for: longer ones first. */
static const struct {
  const char *text;
  int level;
} operators[] = {
  { "**", 12 }, { "<=", 6 }, { ">=", 6 }, { "==", 5 }, { "!=", 5 }, { "&&", 3 }, { "||", 2 }, { "*", 10 },
  { "/", 10 },  { "%", 10 }, { "+", 9 },  { "-", 9 },  { "<", 6 },  { ">", 6 },  { "?", 1 },
};

static gint64
power (Sum *s, gint64 base, gint64 exponent)
{
  gint64 result = 1;
  if (exponent < 0 || exponent > 62)
    return bad (s);
  for (; exponent > 0; exponent--)
    if (__builtin_mul_overflow (result, base, &result))
      return bad (s);
  return result;
}

static gint64
arithmetic (Sum *s, char operator, gint64 a, gint64 b)
{
  gint64 result = 0;
  bool divides = operator== '/' || operator== '%';
  if (divides && (b == 0 || (a == G_MININT64 && b == -1)))
    return bad (s);
  bool is_over = operator== '+' ? __builtin_add_overflow (a, b, &result) :
      operator== '-'            ? __builtin_sub_overflow (a, b, &result)
      :
      operator== '*' ? __builtin_mul_overflow (a, b, &result)
                     : false;
  if (is_over)
    return bad (s);
  return operator== '/' ? a / b : operator== '%' ? a % b : result;
}

static gint64
apply (Sum *s, const char *operator, gint64 a, gint64 b)
{
  if (strcmp (operator, "**") == 0)
    return power (s, a, b);
  if (strcmp (operator, "&&") == 0)
    return a && b;
  if (strcmp (operator, "||") == 0)
    return a || b;
  if (strcmp (operator, "==") == 0)
    return a == b;
  if (strcmp (operator, "!=") == 0)
    return a != b;
  if (*operator== '<' || * operator== '>') {
    bool is_less = *operator== '<' ? a < b : a> b;
    return is_less || (operator[1] == '=' && a == b);
  }
  return arithmetic (s, *operator, a, b);
}

static gint64
choice (Sum *s, gint64 condition)
{
  gint64 yes = expression (s, 0);
  if (!take (s, ":"))
    return bad (s);
  gint64 no = expression (s, 1);
  return condition ? yes : no;
}

static gint64
expression (Sum *s, int least)
{
  if (++s->depth > 64)
    return bad (s);
  gint64 value = operand (s);
  for (guint i = 0; i < G_N_ELEMENTS (operators) && !s->is_bad;) {
    if (operators[i].level < least || !take (s, operators[i].text)) {
      i++;
      continue;
    }
    value = operators[i].level == 1
        ? choice (s, value)
        : apply (s, operators[i].text, value, expression (s, operators[i].level + 1));
    i = 0;
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
  skip_blanks (&s);
  return !s.is_bad && *s.p == '\0';
}

/* --- [  ------------------------------------------------------------------------------------------ */

/* ] and [[ ... ]]: decided where no hole stands in the way. */

typedef struct {
  LsShell *sh;
  char *const *words;
  guint n, at;
  bool has_patterns;
  int depth;
} Test;

static ShellStatus either (Test *t);

static ShellStatus
status_of (bool is_true)
{
  return is_true ? SHELL_YES : SHELL_NO;
}

static ShellStatus
negated_test (ShellStatus s)
{
  return s == SHELL_YES ? SHELL_NO : s == SHELL_NO ? SHELL_YES : SHELL_UNKNOWN;
}

static bool
take_word (Test *t, const char *word)
{
  if (t->at >= t->n || strcmp (t->words[t->at], word) != 0)
    return false;
  t->at++;
  return true;
}

/* The name, if the whole word is a variable that nobody set; NULL: it is not. */
static char *
unset_name (const char *word)
{
  gsize n = strlen (word);
  if (n < 4 || word[0] != LS_SHELL_HOLE || word[1] != '$' || strchr (word, LS_SHELL_HOLE_END) != word + n - 1)
    return NULL;
  g_autofree char *name = g_strndup (word + 2, n - 3);
  gsize length = strlen (name);
  if (length > 2 && name[0] == '{' && name[length - 1] == '}') {
    memmove (name, name + 1, length - 2);
    name[length - 2] = '\0';
  }
  for (const char *p = name; *p; p++)
    if (!g_ascii_isalnum (*p) && *p != '_')
      return NULL;
  return g_steal_pointer (&name);
}

static ShellStatus
is_empty (Test *t, const char *word)
{
  if (!ls_shell_has_hole (word))
    return status_of (*word == '\0');
  g_autofree char *name = unset_name (word);
  if (!name)
    return word[0] != LS_SHELL_HOLE ? SHELL_NO : SHELL_UNKNOWN;
  if (g_hash_table_size (t->sh->unset) < 1000)
    g_hash_table_add (t->sh->unset, g_steal_pointer (&name));
  return SHELL_YES;
}

static ShellStatus
equal (Test *t, const char *a, const char *b)
{
  if (*b == '\0')
    return is_empty (t, a);
  if (*a == '\0')
    return is_empty (t, b);
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

static ShellStatus
compare (Test *t, const char *a, const char *operator, const char * b)
{
  gint64 x, y;
  if (!number_of (t, a, &x) || !number_of (t, b, &y))
    return SHELL_UNKNOWN;
  static const char *const names[] = { "-eq", "-ne", "-lt", "-le", "-gt", "-ge" };
  const bool results[] = { x == y, x != y, x<y, x <= y, x> y, x >= y };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (strcmp (operator, names[i]) == 0)
      return status_of (results[i]);
  return SHELL_UNKNOWN;
}

static ShellStatus
matches (const char *text, const char *pattern)
{
  regex_t regex;
  if (ls_shell_has_hole (text) || ls_shell_has_hole (pattern) || strlen (text) + strlen (pattern) > 256
      || strpbrk (pattern, "{\\") || regcomp (&regex, pattern, REG_EXTENDED | REG_NOSUB) != 0)
    return SHELL_UNKNOWN;
  bool is_found = regexec (&regex, text, 0, NULL, 0) == 0;
  regfree (&regex);
  return status_of (is_found);
}

static ShellStatus
binary (Test *t, const char *a, const char *operator, const char * b)
{
  if (strcmp (operator, "=") == 0 || strcmp (operator, "==") == 0)
    return equal (t, a, b);
  if (strcmp (operator, "!=") == 0)
    return negated_test (equal (t, a, b));
  if (strcmp (operator, "=~") == 0)
    return matches (a, b);
  return compare (t, a, operator, b);
}

static bool
is_operator (const char *word)
{
  static const char *const all[] = { "=",   "==",  "!=",  "=~",  "<",   ">",   "-eq", "-ne",
                                     "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef", NULL };
  return g_strv_contains (all, word);
}

static ShellStatus
unary (Test *t, const char *operator, const char * word)
{
  if (strcmp (operator, "-z") == 0)
    return is_empty (t, word);
  if (strcmp (operator, "-n") == 0)
    return negated_test (is_empty (t, word));
  return SHELL_UNKNOWN; /* of files */
}

static ShellStatus
primary (Test *t)
{
  if (t->at >= t->n)
    return SHELL_UNKNOWN;
  if (take_word (t, "(")) {
    ShellStatus inner = either (t);
    take_word (t, ")");
    return inner;
  }
  const char *a = t->words[t->at++];
  if (t->at + 1 < t->n && is_operator (t->words[t->at])) {
    t->at += 2;
    return binary (t, a, t->words[t->at - 2], t->words[t->at - 1]);
  }
  if (a[0] == '-' && strlen (a) == 2 && t->at < t->n)
    return unary (t, a, t->words[t->at++]);
  return negated_test (is_empty (t, a));
}

static ShellStatus not(Test * t)
{
  bool is_negated = false;
  while (take_word (t, "!"))
    is_negated = !is_negated;
  ShellStatus s = ++t->depth > 64 ? SHELL_UNKNOWN : primary (t);
  t->depth--;
  return is_negated ? negated_test (s) : s;
}

static ShellStatus
both (Test *t)
{
  ShellStatus s = not(t);
  while (take_word (t, "-a") || take_word (t, "&&")) {
    ShellStatus next = not(t);
    s = s == SHELL_NO || next == SHELL_NO ? SHELL_NO : s == SHELL_YES ? next : s;
  }
  return s;
}

static ShellStatus
either (Test *t)
{
  ShellStatus s = both (t);
  while (take_word (t, "-o") || take_word (t, "||")) {
    ShellStatus next = both (t);
    s = s == SHELL_YES || next == SHELL_YES ? SHELL_YES : s == SHELL_NO ? next : s;
  }
  return s;
}

ShellStatus
shell_test (LsShell *sh, char *const *words, guint n, bool has_patterns)
{
  Test t = { sh, words, n, 0, has_patterns, 0 };
  ShellStatus s = either (&t);
  return t.at == n ? s : SHELL_UNKNOWN;
}

/* --- as they stand in a script -------------------------------------------------------------------- */

/* [[ ... ]] */
ShellStatus
shell_read_test (ShellText *s)
{
  g_autoptr (GPtrArray) words = g_ptr_array_new_with_free_func (g_free);
  for (s->p += 2; s->p < s->end && !s->is_bad;) {
    const char *end = shell_next_end (s);
    if (g_ascii_isspace (*s->p)) {
      s->p++;
      continue;
    }
    if (shell_is_word (s, "]]"))
      break;
    if (end == s->p)
      end += shell_is_at (s, "&&") || shell_is_at (s, "||") ? 2 : 1;
    g_ptr_array_add (
        words, s->sh->mode == SHELL_SKIPPED ? g_strdup ("") : shell_expand_text (s->sh, s->p, end, false));
    s->p = end;
  }
  s->p = MIN (s->p + 2, s->end);
  return shell_test (s->sh, (char *const *) words->pdata, words->len, true);
}

/* Behind the operator of "NAME += ...", "NAME++"; NULL: nothing is set. */
static const char *
assignment_end (const char *text, char **ret_name, char *ret_operator)
{
  const char *p = text + strspn (text, " \t"), *end = shell_name_end (p, p + strlen (p)),
             *q = end + strspn (end, " \t");
  bool is_step = (q[0] == '+' || q[0] == '-') && q[1] == q[0] && q[2 + strspn (q + 2, " \t")] == '\0';
  bool is_plain = q[0] == '=' && q[1] != '=', changes = strchr ("+-*/%", *q) && *q && q[1] == '=';
  if (end == p || !(is_step || is_plain || changes))
    return NULL;
  *ret_name = g_strndup (p, (gsize) (end - p));
  *ret_operator = is_plain ? '\0' : *q;
  q += is_plain ? 1 : 2;
  return is_step ? "" : q;
}

bool
shell_set_arithmetic (LsShell *sh, const char *text, gint64 *ret_value)
{
  g_autofree char *name = NULL;
  char operator= '\0';
  const char *right = assignment_end (text, &name, &operator);
  if (!right)
    return shell_arithmetic (sh, text, ret_value);
  g_autofree char *sum = !operator? g_strdup (right)
      : * right                   ? g_strdup_printf ("%s %c (%s)", name, operator, right)
                                  : g_strdup_printf ("%s %c 1", name, operator);
  bool is_known = shell_arithmetic (sh, sum, ret_value);
  shell_set (sh, name,
             is_known ? g_strdup_printf ("%" G_GINT64_FORMAT, *ret_value)
                      : g_strdup_printf ("%c$((%s))%c", LS_SHELL_HOLE, name, LS_SHELL_HOLE_END));
  return is_known;
}

/* (( ... )) */
ShellStatus
shell_read_arithmetic (ShellText *s)
{
  const char *end = shell_group_end (s->p + 1, s->end, '(', ')');
  gint64 value = 0;
  if (!end) {
    shell_give_up (s, "a bracket is not closed");
    return SHELL_UNKNOWN;
  }
  g_autofree char *text = shell_expand_text (s->sh, s->p + 2, MAX (end - 2, s->p + 2), true);
  s->p = end;
  return !shell_set_arithmetic (s->sh, text, &value) ? SHELL_UNKNOWN : value != 0 ? SHELL_YES : SHELL_NO;
}
