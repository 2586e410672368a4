/* data/shell/shell_expand.c — words of a shell script: where they end, what they expand to, and expressions:
 * arithmetic, conditions of [ ... ] and [[ ... ]]. */
#include "data/shell/shell_parts.h"

#include <fnmatch.h>
#include <regex.h>
#include <string.h>

#define NAME_LETTERS G_CSET_DIGITS G_CSET_A_2_Z G_CSET_a_2_z "_"
#define MAX_COUNT    10000 /* of "{1..N}" */
#define MAX_UNSET    1000  /* names that are noted as not set */

/* --- where a word ends --------------------------------------------------------------------------- */

const char *
shell_find (const char *p, const char *end, char c)
{
  const char *at = memchr (p, c, (size_t) (end - p));
  return at ? at : end;
}

/* Letters, digits and a few signs between < and >, the first and the last no blank. "<in>out" is none. */
const char *
shell_placeholder_end (const char *p, const char *end)
{
  const char *q = MIN (p + 1 + strspn (p + 1, NAME_LETTERS " -./,:'"), end);
  bool has_blank = shell_find (p, q, ' ') < q;
  bool is_one = q < end && *q == '>' && q > p + 1 && p[1] != ' ' && q[-1] != ' ';
  return is_one && (has_blank || q + 1 == end || g_ascii_isspace (q[1])) ? q + 1 : NULL;
}

static const char *expansion_end (const char *p, const char *end, int depth);

/* Behind the quote that closes what was opened before p; NULL: none does. */
static const char *
quote_end (const char *p, const char *end, char quote, int depth)
{
  while (p && p < end && *p != quote)
    p = *p == '\\' && quote != '\'' ? MIN (p + 2, end)
        : *p == '$' && quote == '"' ? expansion_end (p, end, depth + 1)
                                    : p + 1;
  return p && p < end ? p + 1 : NULL;
}

/* Behind what is quoted, escaped or expanded at p; p itself: nothing is. */
static const char *
opaque_end (const char *p, const char *end, int depth)
{
  if (*p == '\\')
    return MIN (p + 2, end);
  if (*p == LS_SHELL_HOLE)
    return MIN (shell_find (p, end, LS_SHELL_HOLE_END) + 1, end);
  if (*p == '<' && shell_placeholder_end (p, end))
    return shell_placeholder_end (p, end);
  if (*p == '\'' || *p == '"' || *p == '`')
    return quote_end (p + 1, end, *p, depth + 1);
  return *p == '$' ? expansion_end (p, end, depth + 1) : p;
}

const char *
shell_group_end (const char *p, const char *end, const char *brackets, int depth)
{
  if (depth > SHELL_MAX_NESTED)
    return NULL;
  for (int nested = 0; p && p < end;) {
    const char *behind = opaque_end (p, end, depth);
    if (behind != p) {
      p = behind;
      continue;
    }
    if (*p == brackets[1] && nested-- == 0)
      return p + 1;
    nested += *p == brackets[0];
    bool is_comment = *p == '#' && *brackets == '(' && g_ascii_isspace (p[-1]);
    p = is_comment ? shell_find (p, end, '\n') : p + 1;
  }
  return NULL;
}

/* Behind an expansion, p at its '$' or '`'; NULL: it is not closed. */
static const char *
expansion_end (const char *p, const char *end, int depth)
{
  if (depth > SHELL_MAX_NESTED)
    return NULL;
  if (*p == '`')
    return quote_end (p + 1, end, '`', depth);
  char next = p + 1 < end ? p[1] : '\0';
  if (next == '(' || next == '{')
    return shell_group_end (p + 2, end, next == '(' ? "()" : "{}", depth + 1);
  if (next == '\'')
    return quote_end (p + 2, end, '\'', depth);
  const char *name = shell_name_end (p + 1, end);
  if (name > p + 1)
    return name;
  return next != '\0' && strchr ("0123456789@*#?$!-", next) ? p + 2 : p + 1;
}

const char *
shell_name_end (const char *p, const char *end)
{
  return g_ascii_isdigit (*p) ? p : MIN (p + strspn (p, NAME_LETTERS), end);
}

const char *
shell_assignment_value (const char *p, const char *end)
{
  const char *q = shell_name_end (p, end);
  if (q > p && q < end && *q == '[')
    q = shell_group_end (q + 1, end, "[]", 0);
  if (!q || q == p)
    return NULL;
  q += q < end && *q == '+';
  return q < end && *q == '=' ? q + 1 : NULL;
}

const char *
shell_word_end (const char *p, const char *end)
{
  const char *value = shell_assignment_value (p, end);
  while (p && p < end && !g_ascii_isspace (*p)) {
    if (p == value && *p == '(')
      return shell_group_end (p + 1, end, "()", 0);
    const char *behind = opaque_end (p, end, 0);
    if (behind == p && strchr (";|&<>()", *p))
      return p;
    p = behind == p ? p + 1 : behind;
  }
  return p;
}

/* --- what words expand to -------------------------------------------------------------------------- */

typedef struct {
  LsShell *sh;
  GPtrArray *fields; /* NULL: all goes into one text */
  GString *field;
  bool has_field, is_void; /* is_void: "$@" or its kin was there, and has no items */
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
      add_literal (w, text, text + 1);
  }
  w->has_field = w->has_field || is_quoted;
}

static void
add_hole (Words *w, const char *p, const char *end, const char *note, bool is_quoted)
{
  g_autofree char *name = g_strdelimit (g_strndup (p, (gsize) MIN (end - p, 60)), "\001\002\n\t", ' '),
                  *noted = g_strconcat (name, note, NULL), *hole = shell_hole (noted);
  add_text (w, hole, is_quoted);
}

/* --- ${...} ------------------------------------------------------------------------------------- */

/* "NAME[subscript]operator word", as cut up. */
typedef struct {
  char name[64];
  const ShellValue *value; /* NULL: nobody set it */
  char subscript;          /* '@', '*', '0' a number, '\0' none, '?' what cannot be followed */
  guint index;
  const char *rest, *rest_end;
} Parameter;

/* In its brackets stands a key of a map, all, or a place, from the end too. */
static void
read_subscript (const Words *w, Parameter *q, const char *p, const char *end)
{
  g_autofree char *text = shell_expand_text (w->sh, p, end, false),
                  *name = g_strdup_printf ("%s[%s]", q->name, text);
  bool is_all = ls_is_one_of (text, "@ *"), is_map = q->value && q->value->is_map;
  gint64 n = q->value ? q->value->items->len : 0, index = 0;
  bool is_place
      = !is_all && !is_map && shell_arithmetic (w->sh, text, &index) && index >= -n && index <= G_MAXUINT16;
  q->subscript = is_all && !is_map ? *text : is_place ? '0' : is_map && !is_all ? '\0' : '?';
  q->index = is_place ? (guint) (index + (index < 0 ? n : 0)) : 0;
  if (is_map)
    q->value = shell_value (w->sh, name);
}

/* A name, the number of an argument, or all of these. */
static Parameter
read_parameter (const Words *w, const char *p, const char *end)
{
  const char *name_end = shell_name_end (p, end), *digits_end = MIN (p + strspn (p, G_CSET_DIGITS), end);
  const char *mark_end = p + (p < end && strchr ("@*#", *p));
  Parameter q = { .rest = MAX (MAX (name_end, digits_end), mark_end), .rest_end = end };
  if ((gsize) (q.rest - p) < sizeof q.name)
    memcpy (q.name, p, (gsize) (q.rest - p));
  const guint64 place = g_ascii_strtoull (q.name, NULL, 10);
  q.value = shell_value (w->sh, place > 0 || ls_is_one_of (q.name, "@ * #") ? "@" : q.name);
  q.subscript = place > 0 ? '0' : ls_is_one_of (q.name, "@ *") ? *q.name : '\0';
  if (place > 0) {
    q.value = q.value && place <= q.value->items->len ? q.value : NULL;
    q.index = (guint) place - 1;
  }
  if (q.rest == end || *q.rest != '[')
    return q;
  const char *close = shell_group_end (q.rest + 1, end, "[]", 0);
  read_subscript (w, &q, q.rest + 1, close ? close - 1 : end);
  q.rest = close ? close : end;
  return q;
}

/* The one item that it means; NULL: it means all, and there are none or several. "": there is no such one. A
 * hole at the end may be more than one. */
static const char *
item_of (const Parameter *q)
{
  const GPtrArray *items = q->value->items;
  bool is_all = q->subscript == '@' || q->subscript == '*';
  if (is_all && items->len != 1)
    return NULL;
  const char *last = items->len > 0 ? items->pdata[items->len - 1] : "";
  return q->index < items->len ? items->pdata[q->index] : ls_shell_has_hole (last) ? last : "";
}

/* Between the items of "${X[*]}" stands the first character of IFS, if any. */
static void
add_value (Words *w, const Parameter *q, bool is_quoted)
{
  const ShellValue *ifs = is_quoted ? shell_value (w->sh, "IFS") : NULL;
  const char joint = ifs && ifs->items->len > 0 ? *(const char *) ifs->items->pdata[0] : ' ',
             *item = item_of (q);
  w->is_void = w->is_void || (q->subscript == '@' && q->value->items->len == 0);
  if (item)
    add_text (w, item, is_quoted);
  for (guint i = 0; !item && i < q->value->items->len; i++) {
    if (i > 0 && w->fields && (q->subscript == '@' || !is_quoted))
      end_field (w);
    else if (i > 0 && joint != 0)
      add_literal (w, &joint, &joint + 1);
    add_text (w, q->value->items->pdata[i], is_quoted);
  }
}

/* Takes the text; NULL: what stands from p on is a hole. */
static void
add_known (Words *w, char *text, const char *p, const char *end, bool is_quoted)
{
  g_autofree char *own = text;
  if (own)
    add_text (w, own, is_quoted);
  else
    add_hole (w, p, end, "", is_quoted);
}

/* The script asks for it, and nobody set it. */
static void
note_unset (LsShell *sh, const char *name)
{
  if (g_hash_table_size (sh->unset) < MAX_UNSET)
    g_hash_table_add (sh->unset, g_strdup (name));
}

/* ${X:-word} and its kin. */
static void
add_default (Words *w, const Parameter *q, const char *p, const char *end, bool is_quoted)
{
  const char *word = q->rest + (*q->rest == ':' ? 2 : 1), mark = word[-1],
             *item = q->value ? item_of (q) : NULL;
  bool is_empty = item ? *item == '\0' : q->value && q->value->items->len == 0,
       is_set = q->value && !(*q->rest == ':' && is_empty);
  if (!q->value && w->sh->mode != SHELL_SKIPPED)
    note_unset (w->sh, q->name);
  if (mark == '?' && !is_set)
    add_hole (w, p, end, "", is_quoted);
  else if (mark != '+' && is_set)
    add_value (w, q, is_quoted);
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
  const char mark = *q->rest, *word = q->rest + 1, *item = q->value ? item_of (q) : NULL;
  const bool is_front = mark == '#', cuts = is_front || mark == '%',
             is_double = word < q->rest_end && *word == mark;
  if (!item || (!cuts && !(is_double && word + 1 == q->rest_end && strchr (",^", mark))))
    return NULL;
  g_autofree char *pattern
      = cuts ? shell_expand_text (w->sh, word + is_double, q->rest_end, false) : g_strdup ("");
  const gsize n = strlen (item);
  if (ls_shell_has_hole (pattern) || n > 4096
      || (ls_shell_has_hole (item) && !(cuts && shell_is_beside (item))))
    return NULL;
  for (gsize i = 0; i <= n && cuts; i++) {
    const gsize length = is_double ? n - i : i, at = is_front ? length : n - length;
    g_autofree char *part = is_front ? g_strndup (item, at) : g_strdup (item + at);
    if (fnmatch (pattern, part, 0) == 0)
      return is_front ? g_strdup (item + at) : g_strndup (item, at);
  }
  return cuts ? g_strdup (item) : mark == ',' ? g_ascii_strdown (item, -1) : g_ascii_strup (item, -1);
}

/* ${#X[@]}, ${#X}, $#; NULL: it is not known. */
static char *
length_of (const Parameter *q)
{
  const GPtrArray *items = q->value ? q->value->items : NULL;
  if (!items && *q->name == '#')
    return g_strdup ("0"); /* nobody hands words to the script */
  if (!items || q->subscript == '?' || (items->len > 0 && ls_shell_has_hole (items->pdata[0])))
    return NULL;
  bool counts = q->subscript == '@' || q->subscript == '*' || *q->name == '#';
  return g_strdup_printf ("%" G_GSIZE_FORMAT, counts ? items->len : strlen (item_of (q)));
}

/* $X, ${X}, ${X[1]}. A form that is not read, as "${X/a/b}" and "${X:1:2}", is named so, if what it is made
 * of is known. */
static void
add_parameter (Words *w, const char *p, const char *end, bool is_quoted)
{
  const bool is_braced = p[1] == '{';
  const char *inner = p + 1 + is_braced, *inner_end = end - is_braced;
  const bool is_length = *inner == '#' && inner + 1 < inner_end;
  const Parameter q = read_parameter (w, inner + is_length, inner_end);
  const char *mark = q.rest + (*q.rest == ':');
  const bool is_whole = q.rest == q.rest_end;
  if (is_length || (*q.name == '#' && is_whole))
    add_known (w, length_of (&q), p, end, is_quoted);
  else if (*q.name == '\0' || q.subscript == '?' || (is_whole && !q.value))
    add_hole (w, p, end, "", is_quoted);
  else if (is_whole)
    add_value (w, &q, is_quoted);
  else if (mark < q.rest_end && strchr ("-=?+", *mark))
    add_default (w, &q, p, end, is_quoted);
  else if (q.value && !strchr ("#%,^", *q.rest))
    add_hole (w, p, end, LS_SHELL_UNREAD, is_quoted);
  else
    add_known (w, altered (w, &q), p, end, is_quoted);
}

/* --- what begins with $ or ` -------------------------------------------------------------------- */

/* The variable of the batch system that says what a $(command) counts of the job's nodes or GPUs, as
 * "nvidia-smi -L | wc -l" and "sort -u $PBS_NODEFILE | wc -l"; NULL: it counts something else. */
static const char *
counted_by (const char *command)
{
  static const struct {
    const char *pattern, *variable;
  } counts[] = {
    { "nvidia-smi.* (-L|--list-gpus)", "SLURM_GPUS_ON_NODE" },
    { "scontrol.*hostname", "SLURM_NNODES" },
    { "(sort -u|uniq).*PBS_NODEFILE|PBS_NODEFILE.*(sort -u|uniq)", "PBS_NUM_NODES" },
    { "(echo|cat).*SKYPILOT_NODE_IPS", "SKYPILOT_NUM_NODES" },
  };
  static const char others[] = "grep|awk|head|tail|;|&&|\\|\\||<<";
  const GRegexCompileFlags flags = G_REGEX_RAW | G_REGEX_DOTALL;
  if (!g_regex_match_simple ("\\|[ \t\n]*wc -l\\s*\\z", command, flags, 0)
      || g_regex_match_simple (others, command, flags, 0))
    return NULL;
  for (guint i = 0; i < G_N_ELEMENTS (counts); i++)
    if (g_regex_match_simple (counts[i].pattern, command, flags, 0))
      return counts[i].variable;
  return NULL;
}

/* $(command), `command` */
static void
add_output (Words *w, const char *p, const char *end, bool is_quoted)
{
  const char *inner = p + (*p == '`' ? 1 : 2);
  const gsize n = (gsize) (end - 1 - inner);
  bool is_plain = end - 1 > inner && !(*p == '`' && memchr (inner, '\\', n));
  g_autofree char *command = is_plain ? g_strndup (inner, n) : NULL;
  const char *counted = is_plain ? counted_by (command) : NULL;
  const Parameter count = { .value = counted ? shell_value (w->sh, counted) : NULL };
  if (count.value)
    add_value (w, &count, is_quoted);
  else
    add_known (w, is_plain ? shell_output_of (w->sh, command) : NULL, p, end, is_quoted);
}

/* Returns what is behind it. */
static const char *
add_expansion (Words *w, const char *p, const char *end, bool is_quoted)
{
  const char *behind = expansion_end (p, end, 0);
  const gsize n = behind ? (gsize) (behind - p) : 0;
  if (n == 1)
    add_literal (w, p, behind);
  else if (n >= 5 && p[1] == '(' && p[2] == '(' && behind[-2] == ')') {
    g_autofree char *text = shell_expand_text (w->sh, p + 3, behind - 2, true);
    gint64 value;
    bool is_known = shell_arithmetic (w->sh, text, &value);
    add_known (w, is_known ? g_strdup_printf ("%" G_GINT64_FORMAT, value) : NULL, p, behind, is_quoted);
  } else if (n > 0 && (p[1] == '(' || *p == '`'))
    add_output (w, p, behind, is_quoted);
  else if (n > 0)
    add_parameter (w, p, behind, is_quoted);
  else
    add_hole (w, p, end, "", is_quoted);
  return behind ? behind : end;
}

/* --- words -------------------------------------------------------------------------------------- */

static const char *
add_quoted (Words *w, const char *p, const char *end)
{
  const char *behind = quote_end (p + 1, end, *p, 0);
  const bool had_field = w->has_field;
  const gsize length = w->field->len;
  w->is_void = false;
  w->has_field = true;
  if (!behind)
    return end;
  if (*p == '"')
    expand (w, p + 1, behind - 1, true, false);
  else
    add_literal (w, p + 1, behind - 1);
  if (w->is_void && w->field->len == length)
    w->has_field = had_field;
  return behind;
}

/* What stands at p. Returns what is behind it. */
static const char *
add_next (Words *w, const char *p, const char *end, bool is_quoted, bool is_here)
{
  const bool is_plain = !is_quoted && !is_here;
  const char *placeholder_end = *p == '<' && is_plain ? shell_placeholder_end (p, end) : NULL;
  if (*p == '\\') { /* outside of quotes any character stands for itself, inside only some */
    const bool is_kept = p + 1 < end && !is_plain && !strchr ("$`\"\\", p[1]);
    return p + 1 >= end ? end : p[1] == '\n' ? p + 2 : add_literal (w, is_kept ? p : p + 1, p + 2);
  }
  if (*p == '$' || *p == '`')
    return add_expansion (w, p, end, !is_plain);
  if (is_plain && (*p == '"' || *p == '\''))
    return add_quoted (w, p, end);
  if (*p == LS_SHELL_HOLE) /* of a text that is read again */
    return add_literal (w, p, MIN (shell_find (p, end, LS_SHELL_HOLE_END) + 1, end));
  if (placeholder_end)
    add_hole (w, p, placeholder_end, "", false);
  else if (is_plain && w->fields && g_ascii_isspace (*p))
    end_field (w);
  else
    add_literal (w, p, p + 1);
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

/* Appends the words that "a{1..3}b" and "a{x,y}b" stand for, in front of all else; false: it is no such word,
 * or has quotes, expansions or braces within braces. */
static bool
expand_braces (LsShell *sh, const char *p, const char *end, GPtrArray *fields)
{
  static const char form[] = "^([^{'\"\\\\`]*)\\{([^{}'\"\\\\`]*)\\}([^{'\"\\\\`]*)\\z";
  const gsize n = (gsize) (end - p);
  if (!memchr (p, '{', n) || memchr (p, '$', n))
    return false;
  g_autofree char *word = g_strndup (p, n);
  g_auto (GStrv) part = g_regex_split_simple (form, word, G_REGEX_RAW, 0);
  const char *dots = g_strv_length (part) == 5 ? strpbrk (part[2], ",.") : NULL;
  g_auto (GStrv) items = g_strsplit (dots ? part[2] : "", dots && *dots == ',' ? "," : "..", -1);
  gint64 from, to;
  bool is_list = dots && *dots == ',',
       is_range = dots && !is_list && g_strv_length (items) == 2
      && g_ascii_string_to_signed (items[0], 10, -MAX_COUNT, MAX_COUNT, &from, NULL)
      && g_ascii_string_to_signed (items[1], 10, -MAX_COUNT, MAX_COUNT, &to, NULL);
  for (guint i = 0; is_list && items[i] && shell_afford (sh, n); i++)
    g_ptr_array_add (fields, g_strconcat (part[1], items[i], part[3], NULL));
  for (gint64 i = 0; is_range && i <= ABS (to - from) && shell_afford (sh, n); i++)
    g_ptr_array_add (
        fields,
        g_strdup_printf ("%s%" G_GINT64_FORMAT "%s", part[1], to < from ? from - i : from + i, part[3]));
  return is_list || is_range;
}

void
shell_expand (LsShell *sh, const char *p, const char *end, GPtrArray *fields)
{
  if (expand_braces (sh, p, end, fields))
    return;
  Words w = { .sh = sh, .fields = fields, .field = g_string_new (NULL) };
  expand (&w, p, end, false, false);
  end_field (&w);
  g_string_free (w.field, TRUE);
}

char *
shell_expand_text (LsShell *sh, const char *p, const char *end, bool is_here)
{
  Words w = { .sh = sh, .field = g_string_new (NULL) };
  expand (&w, p, end, false, is_here);
  return g_string_free (w.field, FALSE);
}

/* --- arithmetic -------------------------------------------------------------------------------------- */

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

/* Of two numbers; a comparison is what holds of it. */
enum { LESS = 1, EQUAL = 2, GREATER = 4 };

/* In the order in which they are looked for: longer ones first. */
static const struct {
  const char *text;
  int level;
  char sign;
} operators[] = {
  { "**", 12, '^' },
  { "<=", 6, LESS | EQUAL },
  { ">=", 6, GREATER | EQUAL },
  { "==", 5, EQUAL },
  { "!=", 5, LESS | GREATER },
  { "&&", 3, '&' },
  { "||", 2, '|' },
  { "*", 10, '*' },
  { "/", 10, '/' },
  { "%", 10, '%' },
  { "+", 9, '+' },
  { "-", 9, '-' },
  { "<", 6, LESS },
  { ">", 6, GREATER },
  { "?", 1, '?' },
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
                       : (sign
                         & (a < b       ? LESS
                                 : a > b ? GREATER
                                         : EQUAL))
            != 0;
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
  int n_nested; /* brackets and signs, in all */
} Test;

static ShellStatus either (Test *t, bool is_and);

static ShellStatus
negated (ShellStatus s)
{
  return s <= SHELL_YES ? !s : SHELL_UNKNOWN;
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
  const char *name = word + strspn (word, "\001${"), *rest = name + strspn (name, NAME_LETTERS);
  if (!ls_shell_has_hole (word))
    return *word == '\0';
  if (word[1] != '$' || rest == name || !ls_is_one_of (rest, "\002 }\002"))
    return word[0] != LS_SHELL_HOLE ? SHELL_NO : SHELL_UNKNOWN;
  g_autofree char *own = g_strndup (name, (gsize) (rest - name));
  note_unset (t->sh, own);
  return SHELL_YES;
}

static ShellStatus
equal (Test *t, const char *a, const char *b)
{
  if (*a == '\0' || *b == '\0')
    return is_empty (t, *b == '\0' ? a : b);
  if (ls_shell_has_hole (a) || ls_shell_has_hole (b))
    return SHELL_UNKNOWN;
  if (t->has_patterns && strlen (a) + strlen (b) < 4096)
    return fnmatch (b, a, 0) == 0;
  return strcmp (a, b) == 0;
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
} comparisons[] = { { "-eq", EQUAL },   { "-ne", LESS | GREATER },
                    { "-lt", LESS },    { "-le", LESS | EQUAL },
                    { "-gt", GREATER }, { "-ge", GREATER | EQUAL },
                    { "=", 0 },         { "==", 0 },
                    { "!=", 0 },        { "=~", 0 },
                    { "<", 0 },         { ">", 0 },
                    { "-nt", 0 },       { "-ot", 0 },
                    { "-ef", 0 } };

static ShellStatus
binary (Test *t, const char *a, guint row, const char *b)
{
  const char *mark = comparisons[row].text;
  gint64 x, y;
  regex_t regex;
  if (comparisons[row].sign != 0 && number_of (t, a, &x) && number_of (t, b, &y))
    return apply (comparisons[row].sign, x, y, &x) && x != 0;
  if (ls_is_one_of (mark, "= =="))
    return equal (t, a, b);
  if (strcmp (mark, "!=") == 0)
    return negated (equal (t, a, b));
  if (strcmp (mark, "=~") != 0 || ls_shell_has_hole (a) || ls_shell_has_hole (b)
      || strlen (a) + strlen (b) > 256 || strpbrk (b, "{\\")
      || regcomp (&regex, b, REG_EXTENDED | REG_NOSUB) != 0)
    return SHELL_UNKNOWN;
  bool is_found = regexec (&regex, a, 0, NULL, 0) == 0;
  regfree (&regex);
  return is_found;
}

static ShellStatus
primary (Test *t)
{
  if (t->at >= t->n || t->n_nested > 2 * SHELL_MAX_NESTED)
    return SHELL_UNKNOWN;
  t->n_nested += ls_is_one_of (t->words[t->at], "! (");
  if (take_word (t, "!"))
    return negated (primary (t));
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

/* Conditions with "||" between, or, is_and, with "&&". */
static ShellStatus
either (Test *t, bool is_and)
{
  const ShellStatus decisive = !is_and;
  ShellStatus s = is_and ? primary (t) : either (t, true);
  while (take_word (t, is_and ? "-a" : "-o") || take_word (t, is_and ? "&&" : "||")) {
    ShellStatus next = is_and ? primary (t) : either (t, true);
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
  static const char form[] = "^[ \t]*([A-Za-z_]\\w*)[ \t]*(?:(\\+\\+|--)[ \t]*|([-+*/%]?)=(?!=)(.*))\\z";
  g_auto (GStrv) part = g_regex_split_simple (form, text, G_REGEX_RAW | G_REGEX_DOTALL, 0);
  const bool sets = g_strv_length (part) > 1, is_step = sets && *part[2];
  const char *name = sets ? part[1] : "";
  g_autofree char *sum = !sets ? g_strdup (text)
      : is_step                ? g_strdup_printf ("%s %c 1", name, *part[2])
      : *part[3]               ? g_strdup_printf ("%s %s (%s)", name, part[3], part[4])
                               : g_strdup (part[4]),
                  *what = g_strdup_printf ("$((%s))", name);
  gint64 value = 0;
  bool is_known = shell_arithmetic (sh, sum, &value);
  if (sets)
    shell_set (sh, name, is_known ? g_strdup_printf ("%" G_GINT64_FORMAT, value) : shell_hole (what));
  return is_known ? value != 0 : SHELL_UNKNOWN;
}
