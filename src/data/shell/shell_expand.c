/* data/shell/shell_expand.c — words expanded; what counts nodes and GPUs. */
#include "data/shell/shell_parts.h"

#include <fnmatch.h>
#include <string.h>

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
  g_autofree char *hole = g_strdup_printf ("%c%s%c", LS_SHELL_HOLE, name, LS_SHELL_HOLE_END);
  add_text (w, hole, is_quoted);
}

/* What stands between the items of "${X[*]}": the first character of IFS; 0: nothing. */
static char
joint_of (const Words *w)
{
  const ShellValue *ifs = shell_value (w->sh, "IFS");
  if (w->sh->joint >= 0)
    return (char) w->sh->joint;
  return ifs && ifs->items->len > 0 ? *(const char *) ifs->items->pdata[0] : ' ';
}

static void
add_value (Words *w, const ShellValue *value, char subscript, bool is_quoted)
{
  char joint = is_quoted ? joint_of (w) : ' ';
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
  const char *begin, *end; /* of all of it, with ${ and } */
  char name[64];
  char subscript; /* '@', '*', '0' a number, '\0' none, '?' what cannot be followed */
  guint index;
  const char *rest, *rest_end;
} Parameter;

static void
read_subscript (Parameter *q)
{
  const char *close = shell_group_end (q->rest + 1, q->rest_end, '[', ']');
  gsize n = close ? (gsize) (close - q->rest - 2) : 0;
  g_autofree char *text = g_strndup (q->rest + 1, n);
  guint64 index;
  q->subscript = '?';
  if (n == 1 && (*text == '@' || *text == '*'))
    q->subscript = *text;
  else if (g_ascii_string_to_unsigned (text, 10, 0, 65535, &index, NULL)) {
    q->subscript = '0';
    q->index = (guint) index;
  }
  q->rest = close ? close : q->rest_end;
}

static void
read_parameter (Parameter *q, const char *p, const char *end)
{
  const char *name = p, *name_end = shell_name_end (p, end);
  while (name_end == p && name < end && g_ascii_isdigit (*name))
    name++;
  if (name_end == p)
    name_end = name > p ? name : p < end && strchr ("@*#", *p) ? p + 1 : p;
  g_strlcpy (q->name, "", sizeof q->name);
  if ((gsize) (name_end - p) < sizeof q->name)
    g_strlcpy (q->name, p, (gsize) (name_end - p) + 1);
  q->rest = name_end;
  q->rest_end = end;
  q->subscript = '\0';
  if (q->rest < end && *q->rest == '[')
    read_subscript (q);
}

static void
take_as_unset (Words *w, const char *name)
{
  if (w->sh->mode != SHELL_SKIPPED && g_hash_table_size (w->sh->unset) < 1000)
    g_hash_table_add (w->sh->unset, g_strdup (name));
}

static bool
is_empty (const ShellValue *value)
{
  return value->items->len == 0 || (value->items->len == 1 && *(char *) value->items->pdata[0] == '\0');
}

/* ${X:-word} and its kin. */
static void
add_default (Words *w, const Parameter *q, bool is_quoted)
{
  const ShellValue *value = shell_value (w->sh, q->name);
  bool heeds_empty = *q->rest == ':';
  const char *word = q->rest + (heeds_empty ? 2 : 1);
  char operator= word[-1];
  bool is_set = value && !(heeds_empty && is_empty (value));
  if (!value)
    take_as_unset (w, q->name);
  if (operator== '+') {
    if (is_set)
      expand (w, word, q->rest_end, is_quoted, false);
  } else if (is_set)
    add_value (w, value, q->subscript, is_quoted);
  else if (operator== '?')
    add_hole (w, q->begin, q->end, is_quoted);
  else {
    if (operator== '=')
      shell_set (w->sh, q->name, shell_expand_text (w->sh, word, q->rest_end, false));
    expand (w, word, q->rest_end, is_quoted, false);
  }
}

/* ${X#pattern}, ${X%pattern}: what of the text stays. */
static char *
trimmed (const char *text, const char *pattern, bool is_front, bool is_long)
{
  gsize n = strlen (text);
  g_autofree char *copy = g_strdup (text);
  if (n > 4096)
    return NULL;
  for (gsize i = 0; i <= n; i++) {
    gsize length = is_long ? n - i : i, at = is_front ? length : n - length;
    char kept = copy[at];
    if (is_front)
      copy[at] = '\0';
    bool fits = fnmatch (pattern, is_front ? copy : copy + at, 0) == 0;
    copy[at] = kept;
    if (fits)
      return is_front ? g_strdup (text + at) : g_strndup (text, at);
  }
  return g_strdup (text);
}

static void
add_trimmed (Words *w, const Parameter *q, bool is_quoted)
{
  const ShellValue *value = shell_value (w->sh, q->name);
  const char *word = q->rest + 1;
  bool is_long = word < q->rest_end && *word == *q->rest;
  g_autofree char *pattern = shell_expand_text (w->sh, word + is_long, q->rest_end, false);
  bool is_plain = value && value->items->len == 1 && !ls_shell_has_hole (pattern)
      && (!ls_shell_has_hole (value->items->pdata[0]) || shell_is_beside (value->items->pdata[0]));
  g_autofree char *text
      = is_plain ? trimmed (value->items->pdata[0], pattern, *q->rest == '#', is_long) : NULL;
  if (text)
    add_text (w, text, is_quoted);
  else
    add_hole (w, q->begin, q->end, is_quoted);
}

/* ${X,,} and ${X^^} */
static void
add_cased (Words *w, const Parameter *q, bool is_quoted)
{
  const ShellValue *value = shell_value (w->sh, q->name);
  bool is_plain = value && value->items->len == 1 && !ls_shell_has_hole (value->items->pdata[0]);
  const char *text = is_plain ? value->items->pdata[0] : "";
  g_autofree char *cased = *q->rest == ',' ? g_ascii_strdown (text, -1) : g_ascii_strup (text, -1);
  if (is_plain)
    add_text (w, cased, is_quoted);
  else
    add_hole (w, q->begin, q->end, is_quoted);
}

static void
add_indexed (Words *w, const Parameter *q, bool is_quoted)
{
  const ShellValue *value = shell_value (w->sh, q->name);
  if (!value)
    add_hole (w, q->begin, q->end, is_quoted);
  else if (q->subscript == '0' && q->index > 0)
    add_text (w, q->index < value->items->len ? value->items->pdata[q->index] : "", is_quoted);
  else
    add_value (w, value, q->subscript, is_quoted);
}

/* ${#X[@]}, ${#X} */
static void
add_length (Words *w, Parameter *q, const char *p, const char *end, bool is_quoted)
{
  read_parameter (q, p, end);
  const ShellValue *value = shell_value (w->sh, q->name);
  char text[24];
  if (!value || q->subscript == '?'
      || (value->items->len > 0 && ls_shell_has_hole (value->items->pdata[0]))) {
    add_hole (w, q->begin, q->end, is_quoted);
    return;
  }
  bool counts = q->subscript == '@' || q->subscript == '*';
  gsize n = counts ? value->items->len : value->items->len > 0 ? strlen (value->items->pdata[0]) : 0;
  g_snprintf (text, sizeof text, "%" G_GSIZE_FORMAT, n);
  add_text (w, text, is_quoted);
}

static void
add_braced (Words *w, const char *p, const char *end, bool is_quoted)
{
  Parameter q = { .begin = p, .end = end };
  const char *inner = p + 2, *inner_end = end - 1;
  if (*inner == '#' && inner + 1 < inner_end) {
    add_length (w, &q, inner + 1, inner_end, is_quoted);
    return;
  }
  read_parameter (&q, inner, inner_end);
  gsize n = (gsize) (q.rest_end - q.rest);
  bool is_default
      = n > 0 && (strchr ("-=?+", *q.rest) || (n > 1 && *q.rest == ':' && strchr ("-=?+", q.rest[1])));
  if (q.name[0] == '\0' || q.subscript == '?')
    add_hole (w, p, end, is_quoted);
  else if (is_default)
    add_default (w, &q, is_quoted);
  else if (n == 0)
    add_indexed (w, &q, is_quoted);
  else if (*q.rest == '#' || *q.rest == '%')
    add_trimmed (w, &q, is_quoted);
  else if (n == 2 && strchr (",^", *q.rest) && q.rest[1] == *q.rest)
    add_cased (w, &q, is_quoted);
  else
    add_hole (w, p, end, is_quoted);
}

/* --- what begins with $ or ` -------------------------------------------------------------------- */

static void
add_arithmetic (Words *w, const char *p, const char *end, bool is_quoted)
{
  g_autofree char *text = shell_expand_text (w->sh, p + 3, end - 2, true);
  gint64 value;
  if (!shell_arithmetic (w->sh, text, &value)) {
    add_hole (w, p, end, is_quoted);
    return;
  }
  char digits[24];
  g_snprintf (digits, sizeof digits, "%" G_GINT64_FORMAT, value);
  add_text (w, digits, is_quoted);
}

/* $(command), `command` */
static void
add_output (Words *w, const char *p, const char *end, bool is_quoted)
{
  const char *inner = p + (*p == '`' ? 1 : 2);
  bool is_plain = end - 1 > inner && !(*p == '`' && memchr (inner, '\\', (gsize) (end - inner)));
  const char *counted = is_plain ? shell_counted (inner, (gsize) (end - 1 - inner)) : NULL;
  const ShellValue *count = counted ? shell_value (w->sh, counted) : NULL;
  if (count) {
    add_value (w, count, '\0', is_quoted);
    return;
  }
  g_autofree char *text
      = is_plain && w->sh->output_of ? w->sh->output_of (w->sh, inner, (gsize) (end - 1 - inner)) : NULL;
  if (text)
    add_text (w, text, is_quoted);
  else
    add_hole (w, p, end, is_quoted);
}

static void
add_plain (Words *w, const char *p, const char *end, bool is_quoted)
{
  g_autofree char *name = g_strndup (p + 1, (gsize) (end - p - 1));
  const ShellValue *value = shell_value (w->sh, name);
  if (strcmp (name, "#") == 0 && !value)
    add_text (w, "0", is_quoted);
  else if (value)
    add_value (w, value, strcmp (name, "@") == 0 || strcmp (name, "*") == 0 ? '@' : '\0', is_quoted);
  else
    add_hole (w, p, end, is_quoted);
}

/* Returns what is behind it. */
static const char *
add_expansion (Words *w, const char *p, const char *end, bool is_quoted)
{
  const char *behind = shell_expansion_end (p, end);
  gsize n = behind ? (gsize) (behind - p) : 0;
  if (!behind) {
    add_hole (w, p, end, is_quoted);
    return end;
  }
  if (n == 1)
    add_char (w, '$');
  else if (n >= 5 && p[1] == '(' && p[2] == '(' && behind[-2] == ')')
    add_arithmetic (w, p, behind, is_quoted);
  else if (p[1] == '(' || *p == '`')
    add_output (w, p, behind, is_quoted);
  else if (p[1] == '{')
    add_braced (w, p, behind, is_quoted);
  else if (p[1] == '\'')
    add_hole (w, p, behind, is_quoted);
  else
    add_plain (w, p, behind, is_quoted);
  return behind;
}

/* --- words -------------------------------------------------------------------------------------- */

static const char *
add_quoted (Words *w, const char *p, const char *end)
{
  const char *behind = shell_quote_end (p + 1, end, *p);
  w->has_field = true;
  if (!behind) {
    shell_fail (w->sh, "a quote is not closed");
    return end;
  }
  if (*p == '"')
    expand (w, p + 1, behind - 1, true, false);
  else
    for (p++; p < behind - 1; p++)
      add_char (w, *p);
  return behind;
}

/* A hole of a text that is read again. */
static const char *
add_known_hole (Words *w, const char *p, const char *end)
{
  const char *behind = shell_hole_end (p, end);
  for (; p < behind; p++)
    add_char (w, *p);
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

static void
expand (Words *w, const char *p, const char *end, bool is_quoted, bool is_here)
{
  if (++w->depth > SHELL_MAX_NESTED || !shell_afford (w->sh, (gsize) (end - p)))
    p = end;
  while (p < end && !shell_has_failed (w->sh)) {
    if (*p == '\\')
      p = add_escaped (w, p, end, is_quoted || is_here);
    else if (*p == '$' || *p == '`')
      p = add_expansion (w, p, end, is_quoted || is_here);
    else if (*p == LS_SHELL_HOLE)
      p = add_known_hole (w, p, end);
    else if (*p == '<' && !is_quoted && !is_here && shell_placeholder_end (p, end)) {
      const char *behind = shell_placeholder_end (p, end);
      add_hole (w, p, behind, false);
      p = behind;
    } else if (!is_quoted && !is_here && (*p == '"' || *p == '\''))
      p = add_quoted (w, p, end);
    else if (is_quoted || is_here || !w->fields || !g_ascii_isspace (*p))
      add_char (w, *p++);
    else {
      end_field (w);
      p++;
    }
  }
  w->depth--;
}

void
shell_expand (LsShell *sh, const char *p, const char *end, GPtrArray *fields)
{
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

void
shell_split (const char *text, GPtrArray *words)
{
  for (const char *p = text; *p;) {
    bool is_in_hole = false;
    while (g_ascii_isspace (*p))
      p++;
    const char *begin = p;
    for (; *p && (is_in_hole || !g_ascii_isspace (*p)); p++)
      is_in_hole = *p == LS_SHELL_HOLE || (is_in_hole && *p != LS_SHELL_HOLE_END);
    if (p > begin)
      g_ptr_array_add (words, g_strndup (begin, (gsize) (p - begin)));
  }
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
  g_autofree char *command = g_strndup (text, n);
  g_strchomp (command);
  const char *behind = strrchr (command, '|');
  g_autofree char *last = g_strstrip (g_strdup (behind ? behind + 1 : ""));
  if (strcmp (last, "wc -l") != 0)
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
