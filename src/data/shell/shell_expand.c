/* data/shell/shell_expand.c — words expanded; what counts nodes and GPUs. */
#include "data/shell/shell_parts.h"

#include <fnmatch.h>
#include <string.h>

#define MAX_COUNT 10000 /* of "{1..N}" */

typedef struct {
  LsShell *sh;
  GPtrArray *fields; /* NULL: all goes into one text */
  GString *field;
  bool has_field;
  int depth;
} Words;

static void expand (Words *w, const char *p, const char *end, bool is_quoted, bool is_here);

static void
end_field (Words *w)
{
  if (w->has_field && w->fields) {
    g_ptr_array_add (w->fields, g_strdup (w->field->str));
    g_string_truncate (w->field, 0);
    w->has_field = false;
  }
}

static void
add_char (Words *w, char c)
{
  g_string_append_c (w->field, c);
  w->has_field = true;
}

/* Returns its end. */
static const char *
add_literal (Words *w, const char *p, const char *end)
{
  g_string_append_len (w->field, p, end - p);
  w->has_field = true;
  return end;
}

/* What an expansion gave: unless it is quoted, blanks end a field. */
static void
add_text (Words *w, const char *text, bool is_quoted)
{
  bool is_in_hole = false;
  if (!shell_afford (w->sh, strlen (text)))
    return;
  for (; *text; text++) {
    is_in_hole = *text == LS_SHELL_HOLE || (is_in_hole && *text != LS_SHELL_HOLE_END);
    if (!is_quoted && w->fields && !is_in_hole && g_ascii_isspace (*text))
      end_field (w);
    else
      add_char (w, *text);
  }
  w->has_field = w->has_field || is_quoted;
}

static void
add_hole (Words *w, const char *p, const char *end, bool is_quoted)
{
  g_autofree char *name = g_strndup (p, (gsize) MIN (end - p, 60));
  g_strdelimit (name, "\001\002\n\t", ' ');
  g_autofree char *hole = shell_hole (name);
  add_text (w, hole, is_quoted);
}

/* Between the items of "${X[*]}" stands the first character of IFS, if any. */
static void
add_value (Words *w, const ShellValue *value, char subscript, bool is_quoted)
{
  const ShellValue *ifs = is_quoted ? shell_value (w->sh, "IFS") : NULL;
  const char joint = is_quoted && w->sh->out.joint >= 0 ? (char) w->sh->out.joint
      : ifs && ifs->items->len > 0                      ? *(const char *) ifs->items->pdata[0]
                                                        : ' ';
  if (subscript != '@' && subscript != '*') {
    add_text (w, value->items->len > 0 ? value->items->pdata[0] : "", is_quoted);
    return;
  }
  for (guint i = 0; i < value->items->len; i++) {
    if (i > 0 && w->fields && (subscript == '@' || !is_quoted))
      end_field (w);
    else if (i > 0 && joint != 0)
      add_char (w, joint);
    add_text (w, value->items->pdata[i], is_quoted);
  }
}

/* --- ${...} ------------------------------------------------------------------------------------- */

/* "NAME[subscript]operator word", as cut up. */
typedef struct {
  char name[64];
  char subscript; /* '@', '*', '0' a number, '\0' none, '?' what cannot be followed */
  guint index;
  const char *rest, *rest_end;
} Parameter;

/* A name, the number of an argument, or all of these. */
static Parameter
read_parameter (const char *p, const char *end)
{
  const char *name_end = shell_name_end (p, end), *digits_end = p;
  while (digits_end < end && g_ascii_isdigit (*digits_end))
    digits_end++;
  const char *mark_end = p + (p < end && strchr ("@*#", *p));
  Parameter q = { .rest = MAX (MAX (name_end, digits_end), mark_end), .rest_end = end };
  if ((gsize) (q.rest - p) < sizeof q.name)
    memcpy (q.name, p, (gsize) (q.rest - p));
  q.subscript = *q.name == '@' || *q.name == '*' ? '@' : '\0';
  const char *close = q.rest < end && *q.rest == '[' ? shell_group_end (q.rest + 1, end, "[]", 0) : q.rest;
  const gsize n = close > q.rest ? (gsize) (close - q.rest - 2) : 0;
  g_autofree char *text = g_strndup (q.rest + 1, n);
  guint64 index;
  if (close == q.rest)
    return q;
  q.subscript = '?';
  if (n == 1 && (*text == '@' || *text == '*'))
    q.subscript = *text;
  else if (g_ascii_string_to_unsigned (text, 10, 0, 65535, &index, NULL)) {
    q.subscript = '0';
    q.index = (guint) index;
  }
  q.rest = close ? close : end;
  return q;
}

/* Takes the text; NULL: what stands from p on is a hole. */
static void
add_known (Words *w, char *text, const char *p, const char *end, bool is_quoted)
{
  g_autofree char *own = text;
  if (own)
    add_text (w, own, is_quoted);
  else
    add_hole (w, p, end, is_quoted);
}

/* ${X:-word} and its kin. */
static void
add_default (Words *w, const Parameter *q, const char *p, const char *end, bool is_quoted)
{
  const ShellValue *value = shell_value (w->sh, q->name);
  const char *word = q->rest + (*q->rest == ':' ? 2 : 1), mark = word[-1];
  bool is_empty = value
      && (value->items->len == 0 || (value->items->len == 1 && *(char *) value->items->pdata[0] == '\0'));
  bool is_set = value && !(*q->rest == ':' && is_empty);
  if (!value && w->sh->mode != SHELL_SKIPPED)
    shell_note_unset (w->sh, q->name);
  if (mark == '?' && !is_set)
    add_hole (w, p, end, is_quoted);
  else if (mark != '+' && is_set)
    add_value (w, value, q->subscript, is_quoted);
  else if (mark != '+' || is_set) {
    if (mark == '=')
      shell_set (w->sh, q->name, shell_expand_text (w->sh, word, q->rest_end, false));
    expand (w, word, q->rest_end, is_quoted, false);
  }
}

/* What becomes of a text by #, ##, % or %%, ",," or "^^"; NULL: that is not known. */
static char *
altered (const Words *w, const Parameter *q)
{
  const char mark = *q->rest, *word = q->rest + 1;
  const bool is_front = mark == '#', cuts = is_front || mark == '%',
             is_double = word < q->rest_end && *word == mark;
  if (!cuts && !(is_double && word + 1 == q->rest_end && strchr (",^", mark)))
    return NULL;
  g_autofree char *pattern
      = cuts ? shell_expand_text (w->sh, word + is_double, q->rest_end, false) : g_strdup ("");
  const ShellValue *value = shell_value (w->sh, q->name);
  g_autofree char *text = g_strdup (value && value->items->len == 1 ? value->items->pdata[0] : "\001");
  const gsize n = strlen (text);
  if (ls_shell_has_hole (pattern) || n > 4096
      || (ls_shell_has_hole (text) && !(cuts && shell_is_beside (text))))
    return NULL;
  for (gsize i = 0; i <= n && cuts; i++) {
    const gsize length = is_double ? n - i : i, at = is_front ? length : n - length;
    const char kept = text[at];
    if (is_front)
      text[at] = '\0';
    bool fits = fnmatch (pattern, is_front ? text : text + at, 0) == 0;
    text[at] = kept;
    if (fits)
      return is_front ? g_strdup (text + at) : g_strndup (text, at);
  }
  return cuts ? g_steal_pointer (&text) : mark == ',' ? g_ascii_strdown (text, -1) : g_ascii_strup (text, -1);
}

/* ${#X[@]}, ${#X}; NULL: it is not known. */
static char *
length_of (const ShellValue *value, char subscript)
{
  const GPtrArray *items = value ? value->items : NULL;
  if (!items || subscript == '?' || (items->len > 0 && ls_shell_has_hole (items->pdata[0])))
    return NULL;
  bool counts = subscript == '@' || subscript == '*';
  const gsize n = counts ? items->len : items->len > 0 ? strlen (items->pdata[0]) : 0;
  return g_strdup_printf ("%" G_GSIZE_FORMAT, n);
}

/* $X, ${X}, ${X[1]}; $#, of which a script that nobody hands words to has none. */
static void
add_parameter (Words *w, const Parameter *q, const char *p, const char *end, bool is_quoted)
{
  const bool counts = *q->name == '#';
  const ShellValue *value = shell_value (w->sh, counts ? "@" : q->name);
  if (counts)
    add_known (w, value ? length_of (value, '@') : g_strdup ("0"), p, end, is_quoted);
  else if (!value)
    add_hole (w, p, end, is_quoted);
  else if (q->subscript == '0' && q->index > 0)
    add_text (w, q->index < value->items->len ? value->items->pdata[q->index] : "", is_quoted);
  else
    add_value (w, value, q->subscript, is_quoted);
}

static void
add_braced (Words *w, const char *p, const char *end, bool is_quoted)
{
  const char *inner = p + 2, *inner_end = end - 1;
  const bool is_length = *inner == '#' && inner + 1 < inner_end;
  const Parameter q = read_parameter (inner + is_length, inner_end);
  const char *mark = q.rest + (*q.rest == ':');
  if (is_length)
    add_known (w, length_of (shell_value (w->sh, q.name), q.subscript), p, end, is_quoted);
  else if (*q.name == '\0' || q.subscript == '?')
    add_hole (w, p, end, is_quoted);
  else if (q.rest == q.rest_end)
    add_parameter (w, &q, p, end, is_quoted);
  else if (mark < q.rest_end && strchr ("-=?+", *mark))
    add_default (w, &q, p, end, is_quoted);
  else
    add_known (w, altered (w, &q), p, end, is_quoted);
}

/* --- what begins with $ or ` -------------------------------------------------------------------- */

/* $(command), `command` */
static void
add_output (Words *w, const char *p, const char *end, bool is_quoted)
{
  const char *inner = p + (*p == '`' ? 1 : 2);
  const gsize n = (gsize) (end - 1 - inner);
  bool is_plain = end - 1 > inner && !(*p == '`' && memchr (inner, '\\', n));
  const char *counted = is_plain ? shell_counted (inner, n) : NULL;
  const ShellValue *count = counted ? shell_value (w->sh, counted) : NULL;
  if (count)
    add_value (w, count, '\0', is_quoted);
  else
    add_known (w, is_plain ? shell_output_of (w->sh, inner, n) : NULL, p, end, is_quoted);
}

/* Returns what is behind it. */
static const char *
add_expansion (Words *w, const char *p, const char *end, bool is_quoted)
{
  const char *behind = shell_expansion_end (p, end, 0);
  const gsize n = behind ? (gsize) (behind - p) : 0;
  if (n == 1)
    add_char (w, '$');
  else if (n >= 5 && p[1] == '(' && p[2] == '(' && behind[-2] == ')') {
    g_autofree char *text = shell_expand_text (w->sh, p + 3, behind - 2, true);
    gint64 value;
    bool is_known = shell_arithmetic (w->sh, text, &value);
    add_known (w, is_known ? g_strdup_printf ("%" G_GINT64_FORMAT, value) : NULL, p, behind, is_quoted);
  } else if (n > 0 && (p[1] == '(' || *p == '`'))
    add_output (w, p, behind, is_quoted);
  else if (n > 0 && p[1] == '{')
    add_braced (w, p, behind, is_quoted);
  else {
    const Parameter q = read_parameter (p + 1, behind ? behind : p + 1);
    add_parameter (w, &q, p, behind ? behind : end, is_quoted);
  }
  return behind ? behind : end;
}

/* --- words -------------------------------------------------------------------------------------- */

static const char *
add_quoted (Words *w, const char *p, const char *end)
{
  const char *behind = shell_quote_end (p + 1, end, *p, 0);
  w->has_field = true;
  if (!behind) {
    shell_fail (w->sh, "a quote is not closed");
    return end;
  }
  if (*p == '"')
    expand (w, p + 1, behind - 1, true, false);
  else
    add_literal (w, p + 1, behind - 1);
  return behind;
}

/* Of a backslash: outside of quotes any character stands for itself, inside only some. */
static const char *
add_escaped (Words *w, const char *p, const char *end, bool is_quoted)
{
  if (p + 1 >= end)
    return end;
  if (p[1] == '\n')
    return p + 2;
  if (is_quoted && !strchr ("$`\"\\", p[1]))
    add_char (w, '\\');
  add_char (w, p[1]);
  return p + 2;
}

/* What stands at p. Returns what is behind it. */
static const char *
add_next (Words *w, const char *p, const char *end, bool is_quoted, bool is_here)
{
  const bool is_plain = !is_quoted && !is_here;
  const char *placeholder_end = *p == '<' && is_plain ? shell_placeholder_end (p, end) : NULL;
  if (*p == '\\')
    return add_escaped (w, p, end, !is_plain);
  if (*p == '$' || *p == '`')
    return add_expansion (w, p, end, !is_plain);
  if (is_plain && (*p == '"' || *p == '\''))
    return add_quoted (w, p, end);
  if (*p == LS_SHELL_HOLE) /* of a text that is read again */
    return add_literal (w, p, MIN (shell_find (p, end, LS_SHELL_HOLE_END) + 1, end));
  if (placeholder_end)
    add_hole (w, p, placeholder_end, false);
  else if (is_plain && w->fields && g_ascii_isspace (*p))
    end_field (w);
  else
    add_char (w, *p);
  return placeholder_end ? placeholder_end : p + 1;
}

static void
expand (Words *w, const char *p, const char *end, bool is_quoted, bool is_here)
{
  if (++w->depth > SHELL_MAX_NESTED || !shell_afford (w->sh, (gsize) (end - p)))
    p = end;
  while (p < end && !w->sh->fault)
    p = add_next (w, p, end, is_quoted, is_here);
  w->depth--;
}

/* The words that "a{1..3}b" and "a{x,y}b" stand for, in front of all else; NULL: it is no such word, or has
 * quotes, expansions or braces within braces. */
static GPtrArray *
words_of_braces (const char *p, const char *end)
{
  g_autofree char *word = g_strndup (p, (gsize) (end - p));
  char *open = strchr (word, '{'), *close = open ? strchr (open, '}') : NULL, *dots;
  if (!close || strpbrk (word, "'\"\\$`") || strchr (open + 1, '{') || !(dots = strpbrk (open, ",."))
      || dots > close)
    return NULL;
  *open = *close = '\0';
  g_auto (GStrv) parts = g_strsplit (open + 1, *dots == ',' ? "," : "..", -1);
  gint64 from, to;
  bool is_range = *dots == '.' && g_strv_length (parts) == 2
      && g_ascii_string_to_signed (parts[0], 10, -MAX_COUNT, MAX_COUNT, &from, NULL)
      && g_ascii_string_to_signed (parts[1], 10, -MAX_COUNT, MAX_COUNT, &to, NULL);
  if (!is_range && *dots != ',')
    return NULL;
  GPtrArray *words = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; !is_range && parts[i]; i++)
    g_ptr_array_add (words, g_strconcat (word, parts[i], close + 1, NULL));
  for (gint64 i = 0; is_range && i <= ABS (to - from); i++)
    g_ptr_array_add (
        words,
        g_strdup_printf ("%s%" G_GINT64_FORMAT "%s", word, to < from ? from - i : from + i, close + 1));
  return words;
}

void
shell_expand (LsShell *sh, const char *p, const char *end, GPtrArray *fields)
{
  g_autoptr (GPtrArray) words = words_of_braces (p, end);
  for (guint i = 0; words && i < words->len && shell_afford (sh, strlen (words->pdata[i])); i++)
    g_ptr_array_add (fields, g_strdup (words->pdata[i]));
  if (words)
    return;
  Words w = { sh, fields, g_string_new (NULL), false, 0 };
  expand (&w, p, end, false, false);
  end_field (&w);
  g_string_free (w.field, TRUE);
}

char *
shell_expand_text (LsShell *sh, const char *p, const char *end, bool is_here)
{
  Words w = { sh, NULL, g_string_new (NULL), false, 0 };
  expand (&w, p, end, false, is_here);
  return g_string_free (w.field, FALSE);
}

/* --- what is counted of a job's nodes and GPUs ------------------------------------------------------ */

/* "nvidia-smi -L | wc -l", "scontrol show hostnames $X | wc -l", "sort -u $PBS_NODEFILE | wc -l":
 * variables of the batch system say the same. */
static const struct {
  const char *command, *with, *or_with, *variable;
} counts[] = {
  { "nvidia-smi", " -L", "--list-gpus", "SLURM_GPUS_ON_NODE" },
  { "scontrol", "hostname", "hostname", "SLURM_NNODES" },
  { "PBS_NODEFILE", "sort -u", "uniq", "PBS_NUM_NODES" },
  { "SKYPILOT_NODE_IPS", "echo", "cat", "SKYPILOT_NUM_NODES" },
};

const char *
shell_counted (const char *text, gsize n)
{
  static const char *const others[] = { "grep", "awk", "head", "tail", ";", "&&", "||", "<<" };
  g_autofree char *command = g_strchomp (g_strndup (text, n));
  const char *behind = strrchr (command, '|');
  if (!behind || strcmp (behind + 1 + strspn (behind + 1, " \t\n"), "wc -l") != 0)
    return NULL;
  for (guint i = 0; i < G_N_ELEMENTS (others); i++)
    if (strstr (command, others[i]))
      return NULL;
  for (guint i = 0; i < G_N_ELEMENTS (counts); i++)
    if (strstr (command, counts[i].command)
        && (strstr (command, counts[i].with) || strstr (command, counts[i].or_with)))
      return counts[i].variable;
  return NULL;
}
