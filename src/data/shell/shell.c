#include "data/shell/shell.h"

#include <string.h>

#include "data/shell/shell_parts.h"

#define MAX_DEPTH  64  /* of commands within commands */
#define MAX_SAME   3   /* of a text within itself: what ends it, if anything does, only a run would know */
#define MAX_ROUNDS 256 /* of loops that are run as often as they say, in all */

/* A shell script as it is read: what stands between words, what a word is, where here documents lie. */
typedef struct {
  LsShell *sh;
  const char *begin, *p, *end;
  const char *here_to; /* behind the here documents of this line; NULL: it has none */
} ShellText;

static ShellStatus read_command (ShellText *s);
static ShellStatus read_list (ShellText *s, const char *const *stops);
static void read_text (LsShell *sh, const char *text, gsize n);

/* --- between words ------------------------------------------------------------------------------ */

static bool
is_at (ShellText *s, const char *text)
{
  gsize n = strlen (text);
  return (gsize) (s->end - s->p) >= n && strncmp (s->p, text, n) == 0;
}

/* Blanks, comments, and lines that go on; of comments, those of a batch system are commands: of "#SBATCH
 * --nodes=4" the first word is the line's. */
static void
skip_blanks (ShellText *s)
{
  while (s->p < s->end) {
    if (*s->p == ' ' || *s->p == '\t')
      s->p++;
    else if (is_at (s, "\\\n"))
      s->p += 2;
    else if (*s->p == '#' && (s->p == s->begin || g_ascii_isspace (s->p[-1]) || s->p[-1] == ';')) {
      const char *newline = shell_find (s->p, s->end, '\n');
      g_autoptr (GPtrArray) words = g_ptr_array_new_with_free_func (g_free);
      g_autofree char *line = g_strndup (s->p, (gsize) (newline - s->p));
      char *comment = strstr (line + 1, " #");
      if (comment)
        *comment = '\0';
      shell_split (line, words);
      s->p = newline;
      if (s->sh->mode != SHELL_RUN || words->len < 2
          || !ls_is_one_of (words->pdata[0], "#SBATCH #PBS #BSUB #$") || !shell_afford (s->sh, strlen (line)))
        continue;
      g_ptr_array_add (words, NULL);
      const LsShellCommand command = { (char *const *) words->pdata, words->len - 1, true };
      s->sh->funcs.command (&command, s->sh->data);
    } else
      return;
  }
}

/* All that separates commands, with the here documents of a line, but not the ;; of a case. */
static void
skip_separators (ShellText *s)
{
  for (skip_blanks (s); s->p < s->end; skip_blanks (s)) {
    if (*s->p == '\n') {
      s->p = s->here_to ? s->here_to : s->p + 1;
      s->here_to = NULL;
    } else if (!is_at (s, ";;") && (*s->p == ';' || *s->p == '&'))
      s->p++;
    else
      return;
  }
}

/* The script cannot be read, and why. */
static void
give_up (ShellText *s, const char *why)
{
  shell_fail (s->sh, why);
  s->p = s->end;
}

/* The end of the word that begins here. */
static const char *
next_end (ShellText *s)
{
  const char *end = shell_word_end (s->p, s->end);
  if (!end)
    give_up (s, "a quote or bracket is not closed");
  return end ? end : s->end;
}

/* Whether a word begins here that is this one, not only its beginning. */
static bool
is_word (ShellText *s, const char *word)
{
  if (!is_at (s, word))
    return false;
  const char *behind = s->p + strlen (word);
  return behind >= s->end || g_ascii_isspace (*behind) || strchr (";&|()<>", *behind) || strpbrk (word, ";)");
}

/* The same, and passes over it; or over separators in front too. */
static bool
take (ShellText *s, const char *word)
{
  if (!is_word (s, word))
    return false;
  s->p += strlen (word);
  return true;
}

static bool
take_word (ShellText *s, const char *word)
{
  skip_separators (s);
  return take (s, word);
}

/* --- here documents and redirections -------------------------------------------------------------- */

/* The lines up to the delimiter; where those of the command go on. NULL: they are not asked for. */
static char *
take_here (ShellText *s)
{
  bool has_tabs = is_at (s, "<<-");
  s->p += has_tabs ? 3 : 2;
  skip_blanks (s);
  const char *begin = s->p;
  s->p = next_end (s);
  g_autofree char *delimiter = g_strndup (begin, (gsize) (s->p - begin));
  bool is_literal = strpbrk (delimiter, "'\"\\") != NULL;
  g_strstrip (g_strdelimit (delimiter, "'\"\\", ' '));
  const char *from = s->here_to ? s->here_to : MIN (shell_find (s->p, s->end, '\n') + 1, s->end);
  for (const char *line = from; line < s->end && !s->sh->fault; line = s->here_to) {
    const char *line_end = shell_find (line, s->end, '\n'), *text = line;
    s->here_to = MIN (line_end + 1, s->end);
    while (has_tabs && text < line_end && *text == '\t')
      text++;
    if ((gsize) (line_end - text) == strlen (delimiter) && g_str_has_prefix (text, delimiter))
      return s->sh->mode == SHELL_SKIPPED ? NULL
          : is_literal                    ? g_strndup (from, (gsize) (line - from))
                                          : shell_expand_text (s->sh, from, line, true);
  }
  give_up (s, "a here document has no end");
  return NULL;
}

/* Passes over "> file", "2>&1", "<(command)", and notes what that is for a command. */
static void
take_redirection (ShellText *s, ShellStreams *streams)
{
  const char *mark = s->p;
  bool is_word = is_at (s, "<<<"), is_error = mark > s->begin && mark[-1] == '2',
       is_output = is_at (s, ">") && !is_at (s, ">&") && !is_error;
  s->sh->out.is_lost = s->sh->out.is_lost || (is_at (s, ">&") && !is_error);
  if (is_at (s, "<<") && !is_word) {
    char *text = take_here (s);
    if (text) {
      g_free (streams->here);
      streams->here = text;
    }
    return;
  }
  s->p = MIN (s->p + strspn (s->p, "<>&|"), s->end);
  skip_blanks (s);
  const char *begin = s->p;
  bool is_group = s->p < s->end && *s->p == '(' && !is_word;
  s->p = is_group ? shell_group_end (s->p + 1, s->end, "()", 0) : next_end (s);
  if (!s->p)
    give_up (s, "a bracket is not closed");
  char **text = is_word ? &streams->here : is_output ? &streams->target : NULL;
  if (is_output)
    streams->is_appended = mark + 1 < s->end && mark[1] == '>';
  if (text && begin < s->p && !s->sh->fault && !(is_word && s->sh->mode == SHELL_SKIPPED)) {
    g_free (*text);
    *text = shell_expand_text (s->sh, begin, s->p, false);
  }
}

static bool
is_redirection (ShellText *s)
{
  bool is_input = is_at (s, "<") && !shell_placeholder_end (s->p, s->end);
  return is_input || is_at (s, ">") || is_at (s, "&>");
}

/* --- words -------------------------------------------------------------------------------------- */

/* Over a word; what stands there instead is passed over too. */
static void
pass_word (ShellText *s, const char *end)
{
  s->p = MIN (MAX (end, s->p + 1), s->end);
}

/* Appends the fields of words up to one of these characters. */
static void
read_words (ShellText *s, const char *ends, GPtrArray *fields)
{
  for (skip_blanks (s); s->p < s->end && !strchr (ends, *s->p) && !s->sh->fault; skip_blanks (s)) {
    const char *end = next_end (s);
    if (s->sh->mode != SHELL_SKIPPED)
      shell_expand (s->sh, s->p, end, fields);
    pass_word (s, end);
  }
}

/* --- assignments -------------------------------------------------------------------------------- */

/* What a command says of the variables that it names. */
typedef struct {
  bool is_one, exports, is_local, is_map;
} Declaration;

static Declaration
declaration_of (const LsShell *sh, const GPtrArray *words)
{
  const char *name = words->len > 0 ? words->pdata[0] : "", *word;
  Declaration d = { .is_one = ls_is_one_of (name, "export declare local readonly typeset"),
                    .exports = strcmp (name, "export") == 0,
                    .is_local = sh->locals && ls_is_one_of (name, "local declare typeset") };
  for (guint i = 1; d.is_one && i < words->len && *(word = words->pdata[i]) == '-'; i++) {
    d.exports = d.exports || strchr (word, 'x');
    d.is_map = d.is_map || strchr (word, 'A');
    d.is_local = d.is_local && !strchr (word, 'g');
  }
  return d;
}

/* A variable of a declaration is as it was once the function is over; what has no value is not set until
 * then. */
static void
declare_name (LsShell *sh, Declaration d, const char *name, bool has_value)
{
  if (d.is_local && (has_value || !d.exports))
    shell_keep (sh, sh->locals, name);
  if (d.is_local && !has_value && !d.exports)
    shell_unset (sh, name);
  if (d.is_map)
    shell_declare_map (sh, name);
  if (d.exports)
    shell_export (sh, name);
}

/* Of a declaration those that stand there without a value; of any command, those that are set in front of it
 * are exported. */
static void
declare_names (LsShell *sh, const GPtrArray *words, GHashTable *in_front)
{
  const Declaration d = declaration_of (sh, words);
  GHashTableIter iter;
  gpointer name;
  for (g_hash_table_iter_init (&iter, in_front);
       words->len > 0 && g_hash_table_iter_next (&iter, &name, NULL);)
    shell_export (sh, name);
  for (guint i = 1; d.is_one && i < words->len; i++)
    if (*(const char *) words->pdata[i] != '-')
      declare_name (sh, d, words->pdata[i], false);
}

/* "A=1" up to end, in a command whose words begin with these; none: in front of it. */
static void
assign_in_command (LsShell *sh, const char *p, const char *end, GPtrArray *words, GHashTable *in_front)
{
  const char *value = shell_assignment_value (p, end), *name_end = shell_name_end (p, end);
  g_autofree char *name = g_strndup (p, (gsize) (name_end - p));
  Declaration d = declaration_of (sh, words);
  bool is_appended = value[-2] == '+', is_array = value < end && *value == '(';
  if (words->len == 0)
    shell_keep (sh, in_front, name);
  d.exports = d.exports || sh->exports_all;
  declare_name (sh, d, name, true);
  if (*name_end == '[')
    shell_set_element (sh, p, value, shell_expand_text (sh, value, end, false), is_appended);
  else {
    GPtrArray *items = g_ptr_array_new_with_free_func (g_free);
    ShellText array = { sh, value + 1, value + 1, end - 1, NULL };
    if (is_array)
      read_words (&array, "", items);
    else
      g_ptr_array_add (items, shell_expand_text (sh, value, end, false));
    const ShellValue *old = is_appended ? shell_value (sh, name) : NULL;
    shell_assign (sh, name, items, is_array || (old && old->is_array), is_appended);
  }
}

/* --- simple commands ------------------------------------------------------------------------------ */

/* A word of a command, or an assignment in front of it; the "2" of "2>&1" is neither. */
static void
read_word (ShellText *s, GPtrArray *words, GHashTable *in_front)
{
  const char *end = next_end (s);
  const gsize n_digits = strspn (s->p, G_CSET_DIGITS);
  bool is_skipped = s->sh->mode == SHELL_SKIPPED || s->sh->leaves != SHELL_STAYS,
       is_descriptor = n_digits > 0 && s->p + n_digits == end && end < s->end && (*end == '<' || *end == '>'),
       assigns
      = (words->len == 0 || declaration_of (s->sh, words).is_one) && shell_assignment_value (s->p, end);
  if (!is_descriptor && !s->sh->fault && !is_skipped) {
    if (assigns)
      assign_in_command (s->sh, s->p, end, words, in_front);
    else
      shell_expand (s->sh, s->p, end, words);
  }
  pass_word (s, end);
}

static ShellStatus
read_simple (ShellText *s)
{
  g_autoptr (GPtrArray) words = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GHashTable) in_front = shell_kept_new ();
  ShellStreams streams = { 0 };
  ShellStatus status = SHELL_DONE;
  const char *begin = s->p;
  for (skip_blanks (s); s->p < s->end && !strchr ("\n;|)(", *s->p) && !s->sh->fault; skip_blanks (s)) {
    if (*s->p == '&' && !is_at (s, "&>"))
      break;
    if (is_redirection (s))
      take_redirection (s, &streams);
    else
      read_word (s, words, in_front);
  }
  if (s->p == begin && s->p < s->end)
    s->p++; /* a bracket out of place */
  bool is_skipped = s->sh->mode == SHELL_SKIPPED || s->sh->leaves != SHELL_STAYS;
  if (words->len == 0 && !is_skipped && g_hash_table_size (in_front) == 0)
    s->sh->out.is_lost = true;
  declare_names (s->sh, words, in_front);
  if (words->len > 0 && !is_skipped && !declaration_of (s->sh, words).is_one && !s->sh->fault) {
    status = shell_run (s->sh, words, &streams);
    shell_set_back (s->sh, in_front);
  }
  g_free (streams.here);
  g_free (streams.target);
  return status;
}

/* --- conditions --------------------------------------------------------------------------------- */

/* [[ ... ]], with what stands in it. */
static ShellStatus
read_test (ShellText *s)
{
  g_autoptr (GPtrArray) words = g_ptr_array_new_with_free_func (g_free);
  for (s->p += 2; s->p < s->end && !s->sh->fault && !is_word (s, "]]");) {
    const char *begin = s->p, *end = next_end (s);
    s->p = end > begin ? end : begin + (is_at (s, "&&") || is_at (s, "||") ? 2 : 1);
    if (!g_ascii_isspace (*begin))
      g_ptr_array_add (words,
                       s->sh->mode == SHELL_SKIPPED ? g_strdup ("")
                                                    : shell_expand_text (s->sh, begin, s->p, false));
  }
  s->p = MIN (s->p + 2, s->end);
  return shell_test (s->sh, (char *const *) words->pdata, words->len, true);
}

/* What stands in (( )), expanded, newly allocated; "" if it is not closed. */
static char *
read_double_brackets (ShellText *s)
{
  const char *end = shell_group_end (s->p + 1, s->end, "()", 0);
  const char *begin = s->p + 2;
  s->p = end;
  if (!end)
    give_up (s, "a bracket is not closed");
  return end ? shell_expand_text (s->sh, begin, MAX (end - 2, begin), true) : g_strdup ("");
}

/* --- blocks --------------------------------------------------------------------------------------- */

/* Of what is run if a condition ends as wanted, by SHELL_YES or SHELL_NO. */
static ShellMode
mode_if (ShellStatus condition, ShellStatus wanted)
{
  bool is_open = condition != SHELL_YES && condition != SHELL_NO;
  return is_open ? SHELL_MAYBE : condition == wanted ? SHELL_RUN : SHELL_SKIPPED;
}

/* Reads commands up to a word, and over it. */
static ShellStatus
read_up_to (ShellText *s, const char *stop)
{
  ShellStatus status = read_list (s, (const char *const[]) { stop, NULL });
  take_word (s, stop);
  return status;
}

static void
read_if (ShellText *s)
{
  ShellMode rest = s->sh->mode;
  do {
    s->sh->mode = rest;
    ShellStatus condition = read_up_to (s, "then");
    shell_enter (s->sh, mode_if (condition, SHELL_YES));
    read_list (s, (const char *const[]) { "elif", "else", "fi", NULL });
    rest = MIN (rest, mode_if (condition, SHELL_NO));
  } while (take_word (s, "elif"));
  s->sh->mode = rest;
  take_word (s, "else");
  read_up_to (s, "fi");
}

static void
read_while (ShellText *s)
{
  shell_enter (s->sh, SHELL_MAYBE);
  shell_enter (s->sh, read_up_to (s, "do") == SHELL_NO ? SHELL_SKIPPED : SHELL_MAYBE);
  read_up_to (s, "done");
}

/* Whether a word fits one of "a|b", up to the bracket. */
static ShellStatus
read_patterns (ShellText *s, const char *word)
{
  ShellStatus found = SHELL_NO;
  if (is_at (s, "("))
    s->p++;
  while (s->p < s->end && *s->p != ')' && !s->sh->fault) {
    skip_blanks (s);
    const char *end = next_end (s);
    g_autofree char *pattern = shell_expand_text (s->sh, s->p, end, false);
    const char *words[] = { word, "==", pattern };
    if (end > s->p && found != SHELL_YES)
      found = shell_test (s->sh, (char *const *) words, 3, true);
    s->p = MIN (MAX (end, s->p) + (end < s->end && *end != ')'), s->end);
  }
  s->p = MIN (s->p + 1, s->end);
  return found;
}

static void
read_case (ShellText *s)
{
  skip_blanks (s);
  const char *end = next_end (s);
  ShellMode rest = s->sh->mode;
  g_autofree char *word = shell_expand_text (s->sh, s->p, end, false);
  s->p = end;
  take_word (s, "in");
  for (skip_separators (s); s->p < s->end && !is_word (s, "esac") && !s->sh->fault; skip_separators (s)) {
    s->sh->mode = rest;
    const char *begin = s->p;
    ShellStatus fits = read_patterns (s, word);
    shell_enter (s->sh, mode_if (fits, SHELL_YES));
    read_list (s, (const char *const[]) { ";;", "esac", NULL });
    rest = MIN (rest, mode_if (fits, SHELL_NO));
    skip_separators (s);
    if (is_at (s, ";;"))
      s->p += 2;
    if (s->p == begin)
      s->p++;
  }
  take_word (s, "esac");
}

/* --- loops ---------------------------------------------------------------------------------------- */

/* Whether a loop can be run as often as it says: nothing leaves it before, and loops are short. */
static bool
can_repeat (ShellText *s, guint n)
{
  const char *begin = s->p;
  ShellMode mode = shell_enter (s->sh, SHELL_SKIPPED);
  read_up_to (s, "done");
  g_autofree char *body = g_strndup (begin, (gsize) (s->p - begin));
  s->sh->mode = mode;
  s->p = begin;
  if (strstr (body, "break") || n > MAX_ROUNDS - s->sh->n_rounds)
    return false;
  s->sh->n_rounds += n;
  return true;
}

/* What the variable of "((i = 0; i < N; i++))" is in each round, and behind the last one, if the body leaves
 * it alone; none: that is not known. */
static GPtrArray *
read_rounds (ShellText *s, char **ret_name)
{
  g_autofree char *text = read_double_brackets (s);
  g_auto (GStrv) parts = g_strsplit (*text ? text : " ", ";", -1);
  GPtrArray *values = g_ptr_array_new_with_free_func (g_free);
  const char *name = parts[0] + strspn (parts[0], " \t");
  gint64 goes_on = 1;
  g_free (*ret_name);
  *ret_name = g_strndup (name, (gsize) (shell_name_end (name, name + strlen (name)) - name));
  bool is_known = g_strv_length (parts) == 3 && s->sh->mode == SHELL_RUN
      && shell_set_arithmetic (s->sh, parts[0]) != SHELL_UNKNOWN;
  while (is_known && goes_on != 0 && values->len <= MAX_ROUNDS) {
    const ShellValue *value = shell_value (s->sh, *ret_name);
    is_known = value && shell_arithmetic (s->sh, parts[1], &goes_on);
    if (is_known)
      g_ptr_array_add (values, g_strdup (value->items->pdata[0]));
    is_known = is_known && (goes_on == 0 || shell_set_arithmetic (s->sh, parts[2]) != SHELL_UNKNOWN);
  }
  if (goes_on != 0 || !is_known)
    g_ptr_array_set_size (values, 0);
  return values;
}

/* Behind "for" or "select". */
static void
read_for (ShellText *s)
{
  skip_blanks (s);
  const char *name_end = shell_name_end (s->p, s->end);
  g_autofree char *name = g_strndup (s->p, (gsize) (name_end - s->p));
  s->p = name_end;
  const bool is_counted = is_at (s, "((");
  g_autoptr (GPtrArray) words = is_counted ? read_rounds (s, &name) : g_ptr_array_new_with_free_func (g_free);
  skip_blanks (s);
  take (s, "in");
  if (!is_counted)
    read_words (s, "\n;|)(&", words);
  for (guint i = 0; i < words->len; i++)
    if (ls_shell_has_hole (words->pdata[i])) /* not all of them are said */
      g_ptr_array_set_size (words, 0);
  skip_separators (s);
  take_word (s, "do");
  const guint n = words->len - (is_counted && words->len > 0);
  const char *begin = s->p;
  bool is_run = n > 0 && s->sh->mode == SHELL_RUN && !s->sh->fault && can_repeat (s, n);
  for (guint i = 0; is_run && i < n && !s->sh->fault; i++) {
    s->p = begin;
    if (*name)
      shell_set (s->sh, name, g_strdup (words->pdata[i]));
    read_up_to (s, "done");
    if (s->sh->leaves == SHELL_LEAVES_ROUND)
      s->sh->leaves = SHELL_STAYS;
  }
  if (is_run && is_counted)
    shell_set (s->sh, name, g_strdup (words->pdata[n]));
  if (is_run)
    return;
  shell_enter (s->sh, SHELL_MAYBE);
  if (*name)
    shell_set (s->sh, name, g_strdup ("?"));
  read_up_to (s, "done");
}

/* --- functions ------------------------------------------------------------------------------------ */

/* Behind "NAME ()", p unchanged: no function begins here. */
static const char *
function_head_end (ShellText *s)
{
  const char *q = shell_name_end (s->p, s->end);
  if (q == s->p)
    return s->p;
  while (q < s->end && *q == ' ')
    q++;
  return s->end - q > 2 && q[0] == '(' && q[1] == ')' ? q + 2 : s->p;
}

/* Of a name that begins here; its body is read where it is called. */
static void
read_function (ShellText *s)
{
  skip_blanks (s);
  const char *head_end = function_head_end (s), *name_end = shell_name_end (s->p, s->end);
  g_autofree char *name = g_strndup (s->p, (gsize) (name_end - s->p));
  s->p = MAX (name_end, head_end);
  skip_separators (s);
  const char *body = s->p;
  shell_enter (s->sh, SHELL_SKIPPED);
  read_command (s);
  if (shell_afford (s->sh, (gsize) (s->p - body)))
    g_hash_table_replace (s->sh->functions, g_steal_pointer (&name), g_strndup (body, (gsize) (s->p - body)));
}

/* --- lists ---------------------------------------------------------------------------------------- */

static ShellStatus
read_block (ShellText *s)
{
  static const struct {
    const char *word;
    void (*read) (ShellText *s);
  } blocks[]
      = { { "if", read_if },      { "while", read_while }, { "until", read_while },      { "for", read_for },
          { "select", read_for }, { "case", read_case },   { "function", read_function } };
  const ShellMode outer = s->sh->mode;
  void (*read) (ShellText * s) = function_head_end (s) > s->p ? read_function : NULL;
  for (guint i = 0; i < G_N_ELEMENTS (blocks) && !read; i++)
    read = take (s, blocks[i].word) ? blocks[i].read : NULL;
  if (read) {
    read (s);
    s->sh->mode = outer;
    return SHELL_DONE;
  }
  if (is_word (s, "[["))
    return read_test (s);
  if (is_at (s, "((")) {
    g_autofree char *text = read_double_brackets (s);
    return shell_set_arithmetic (s->sh, text);
  }
  if (take (s, "{"))
    return read_up_to (s, "}");
  if (!is_at (s, "("))
    return read_simple (s);
  s->p++;
  /* what a shell of its own sets, or that it ends, is of no account behind it */
  const ShellOutside outside = shell_begin_own (s->sh);
  ShellStatus status = read_up_to (s, ")");
  shell_end_own (s->sh, outside);
  return status;
}

static ShellStatus
read_command (ShellText *s)
{
  bool is_negated = false;
  skip_blanks (s);
  for (bool is_time; (is_time = take (s, "time")) || take (s, "!"); skip_blanks (s))
    is_negated = is_negated == is_time;
  if (++s->sh->depth > MAX_DEPTH)
    give_up (s, "blocks or texts are nested too deep");
  ShellStatus status = s->sh->fault ? SHELL_UNKNOWN : read_block (s);
  s->sh->depth--;
  if (!is_negated || status == SHELL_UNKNOWN)
    return status;
  return status == SHELL_NO ? SHELL_YES : SHELL_NO;
}

static ShellStatus
read_pipeline (ShellText *s)
{
  ShellStatus status = read_command (s);
  for (skip_blanks (s); is_at (s, "|") && !is_at (s, "||"); skip_blanks (s)) {
    s->p += is_at (s, "|&") ? 2 : 1;
    s->sh->out.is_lost = true;
    skip_separators (s);
    read_command (s);
    status = SHELL_DONE;
  }
  while (s->p < s->end && is_redirection (s)) {
    ShellStreams streams = { 0 }; /* of a block */
    take_redirection (s, &streams);
    g_free (streams.here);
    g_free (streams.target);
    s->sh->out.is_lost = true;
    skip_blanks (s);
  }
  return status;
}

static ShellStatus
read_and_or (ShellText *s)
{
  ShellMode outer = s->sh->mode;
  ShellStatus status = read_pipeline (s);
  for (skip_blanks (s); is_at (s, "&&") || is_at (s, "||"); skip_blanks (s)) {
    bool is_and = is_at (s, "&&");
    s->p += 2;
    skip_separators (s);
    ShellStatus taken = status == SHELL_DONE ? SHELL_YES : status;
    shell_enter (s->sh, mode_if (taken, is_and ? SHELL_YES : SHELL_NO));
    bool is_read = s->sh->mode != SHELL_SKIPPED;
    ShellStatus next = read_pipeline (s);
    s->sh->mode = outer;
    if (status == SHELL_UNKNOWN)
      continue;
    status = is_read ? next : status;
  }
  return status;
}

/* Reads commands up to one of these words; NULL: all. */
static ShellStatus
read_list (ShellText *s, const char *const *stops)
{
  ShellStatus status = SHELL_YES;
  for (skip_separators (s); s->p < s->end && !s->sh->fault; skip_separators (s)) {
    const char *begin = s->p;
    for (const char *const *stop = stops; stop && *stop; stop++)
      if (is_word (s, *stop))
        return status;
    status = read_and_or (s);
    if (s->p == begin)
      s->p++; /* a word out of place, such as "fi" or ";;" */
  }
  return status;
}

/* Unless it is being read as often as that: a function that calls itself, an eval of itself. */
static void
read_text (LsShell *sh, const char *text, gsize n)
{
  ShellText s = { sh, text, text, text + n, NULL };
  guint n_same = 0;
  for (guint i = 0; i < sh->texts->len; i++)
    n_same += strcmp (sh->texts->pdata[i], text) == 0;
  if (n_same >= MAX_SAME)
    return;
  g_ptr_array_add (sh->texts, (gpointer) text);
  read_list (&s, NULL);
  g_ptr_array_set_size (sh->texts, (gint) sh->texts->len - 1);
}

/* Without carriage returns; other control characters, of which some mark holes, are blanks. */
char *
ls_shell_read (LsShell *sh, const char *name, const char *text, gsize n)
{
  g_autofree char *path = g_strconcat (LS_SHELL_FOLDER, "/", name, NULL);
  if (!shell_afford (sh, n))
    return g_strdup (sh->fault);
  g_autofree char *copy = g_malloc (n + 1);
  gsize length = 0;
  for (gsize i = 0; i < n; i++)
    if (text[i] != '\r')
      copy[length++] = g_ascii_iscntrl (text[i]) && text[i] != '\n' && text[i] != '\t' ? ' ' : text[i];
  copy[length] = '\0';
  sh->read = read_text;
  shell_set_place (sh, "0", path);
  shell_set_place (sh, "BASH_SOURCE", path);
  read_text (sh, copy, length);
  return g_strdup (sh->fault);
}
