#include "data/shell/shell.h"

#include <string.h>

#include "data/shell/shell_parts.h"

#define MAX_DEPTH  64  /* of texts within texts, and blocks within blocks */
#define MAX_SAME   3   /* of a text within itself: what ends it, if anything does, only a run would know */
#define MAX_ROUNDS 256 /* of loops that are run as often as they say, in all */

static ShellStatus read_command (ShellText *s);
static ShellStatus read_list (ShellText *s, const char *const *stops);
static void read_text (LsShell *sh, const char *text, gsize n);

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
  for (shell_skip_blanks (s); s->p < s->end && !strchr (ends, *s->p) && !s->is_bad && !s->sh->fault;
       shell_skip_blanks (s)) {
    const char *end = shell_next_end (s);
    if (s->sh->mode != SHELL_SKIPPED)
      shell_expand (s->sh, s->p, end, fields);
    pass_word (s, end);
  }
}

/* --- assignments -------------------------------------------------------------------------------- */

static bool
is_declaration (const GPtrArray *words)
{
  return words->len > 0 && ls_shell_is_one (words->pdata[0], "export declare local readonly typeset");
}

/* Whether the names in a command are exported: "export A", "declare -x A". */
static bool
is_export (const GPtrArray *words)
{
  bool has_flag = words->len > 0 && strcmp (words->pdata[0], "export") == 0;
  for (guint i = 1; i < words->len; i++)
    has_flag = has_flag || (*(char *) words->pdata[i] == '-' && strchr (words->pdata[i], 'x'));
  return has_flag && is_declaration (words);
}

/* Whether a command declares variables of the function that is read. */
static bool
is_local (LsShell *sh, GPtrArray *words)
{
  return sh->locals && words->len > 0 && ls_shell_is_one (words->pdata[0], "local declare typeset")
      && !g_ptr_array_find_with_equal_func (words, "-g", g_str_equal, NULL);
}

/* They are as they were once the function is over; what is not set is none until then. */
static void
make_local (LsShell *sh, const char *name)
{
  if (!g_hash_table_contains (sh->locals, name))
    shell_keep (sh, sh->locals, name, ls_shell_exports (sh, name));
}

/* Exports those that stand there without a value; of any command, those that are set in front of it. */
static void
export_names (LsShell *sh, GPtrArray *words, GHashTable *in_front)
{
  GHashTableIter iter;
  gpointer name;
  for (g_hash_table_iter_init (&iter, in_front);
       words->len > 0 && g_hash_table_iter_next (&iter, &name, NULL);)
    shell_export (sh, name);
  for (guint i = 1; i < words->len; i++)
    if (*(const char *) words->pdata[i] != '-' && is_export (words))
      shell_export (sh, words->pdata[i]);
    else if (*(const char *) words->pdata[i] != '-' && is_local (sh, words)) {
      make_local (sh, words->pdata[i]);
      shell_unset (sh, words->pdata[i]);
    }
}

/* "A=1" up to end, in a command whose words begin with these; none: in front of it. */
static void
assign_in_command (LsShell *sh, const char *p, const char *end, GPtrArray *words, GHashTable *in_front)
{
  const char *value = shell_assignment_value (p, end), *name_end = shell_name_end (p, end);
  g_autofree char *name = g_strndup (p, (gsize) (name_end - p));
  bool exports = is_export (words) || sh->exports_all, is_appended = value[-2] == '+',
       is_array = value < end && *value == '(';
  if (words->len == 0 && !g_hash_table_contains (in_front, name))
    shell_keep (sh, in_front, name, exports || ls_shell_exports (sh, name));
  if (is_local (sh, words))
    make_local (sh, name);
  if (*name_end == '[')
    shell_set_element (sh, p, value, shell_expand_text (sh, value, end, false), is_appended);
  else {
    GPtrArray *items = g_ptr_array_new_with_free_func (g_free);
    ShellText array = { sh, value + 1, value + 1, end - 1, NULL, false, true };
    if (is_array)
      read_words (&array, "", items);
    else
      g_ptr_array_add (items, shell_expand_text (sh, value, end, false));
    const ShellValue *old = is_appended ? shell_value (sh, name) : NULL;
    shell_assign (sh, name, items, is_array || (old && old->is_array), is_appended);
  }
  if (exports)
    shell_export (sh, name);
}

/* --- simple commands ------------------------------------------------------------------------------ */

/* A word of a command, or an assignment in front of it; the "2" of "2>&1" is neither. */
static void
read_word (ShellText *s, GPtrArray *words, GHashTable *in_front, bool *ret_has_begun)
{
  const char *end = shell_next_end (s);
  const gsize n_digits = strspn (s->p, G_CSET_DIGITS);
  bool is_skipped = s->sh->mode == SHELL_SKIPPED || s->sh->has_left,
       is_descriptor = n_digits > 0 && s->p + n_digits == end && end < s->end && (*end == '<' || *end == '>'),
       assigns = (!*ret_has_begun || is_declaration (words)) && shell_assignment_value (s->p, end);
  if (!is_descriptor && !s->is_bad && !is_skipped) {
    if (assigns)
      assign_in_command (s->sh, s->p, end, words, in_front);
    else
      shell_expand (s->sh, s->p, end, words);
  }
  *ret_has_begun = *ret_has_begun || !assigns;
  pass_word (s, end);
}

static bool
has_ended (ShellText *s)
{
  return s->p >= s->end || strchr ("\n;|)(", *s->p) || (*s->p == '&' && !shell_is_at (s, "&>"));
}

static ShellStatus
read_simple (ShellText *s)
{
  g_autoptr (GPtrArray) words = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GHashTable) in_front = shell_kept_new ();
  ShellStreams streams = { 0 };
  ShellStatus status = SHELL_DONE;
  bool has_begun = false;
  const char *begin = s->p;
  for (shell_skip_blanks (s); !has_ended (s) && !s->sh->fault; shell_skip_blanks (s)) {
    const char *before = streams.here;
    if (shell_is_redirection (s))
      shell_take_redirection (s, &streams);
    if (streams.here == before && !has_ended (s) && !shell_is_redirection (s))
      read_word (s, words, in_front, &has_begun);
  }
  if (s->p == begin && s->p < s->end)
    s->p++; /* a bracket out of place */
  bool is_skipped = s->sh->mode == SHELL_SKIPPED || s->sh->has_left;
  if (words->len == 0 && !is_skipped && !(s->sh->out.joint >= 0 && g_str_has_prefix (begin, "IFS=")))
    s->sh->out.is_lost = s->sh->out.is_lost || s->sh->out.text;
  export_names (s->sh, words, in_front);
  if (words->len > 0 && !is_skipped && !is_declaration (words) && !s->sh->fault) {
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

/* What stands in (( )), expanded, newly allocated; NULL: it is not closed. */
static char *
read_double_brackets (ShellText *s)
{
  const char *end = shell_group_end (s->p + 1, s->end, "()", 0);
  if (!end) {
    shell_give_up (s, "a bracket is not closed");
    return NULL;
  }
  const char *begin = s->p + 2;
  s->p = end;
  return shell_expand_text (s->sh, begin, MAX (end - 2, begin), true);
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
  shell_take_word (s, stop);
  return status;
}

static ShellStatus
read_if (ShellText *s)
{
  ShellMode outer = s->sh->mode, rest = outer;
  do {
    s->sh->mode = rest;
    ShellStatus condition = read_up_to (s, "then");
    shell_enter (s->sh, mode_if (condition, SHELL_YES));
    read_list (s, (const char *const[]) { "elif", "else", "fi", NULL });
    rest = MIN (rest, mode_if (condition, SHELL_NO));
  } while (shell_take_word (s, "elif"));
  s->sh->mode = rest;
  if (shell_take_word (s, "else"))
    read_up_to (s, "fi");
  else
    shell_take_word (s, "fi");
  s->sh->mode = outer;
  return SHELL_DONE;
}

static ShellStatus
read_while (ShellText *s)
{
  ShellMode outer = shell_enter (s->sh, SHELL_MAYBE);
  if (read_up_to (s, "do") == SHELL_NO)
    s->sh->mode = SHELL_SKIPPED;
  read_up_to (s, "done");
  s->sh->mode = outer;
  return SHELL_DONE;
}

/* Whether a word fits one of "a|b", up to the bracket. */
static ShellStatus
read_patterns (ShellText *s, const char *word)
{
  ShellStatus found = SHELL_NO;
  if (shell_is_at (s, "("))
    s->p++;
  while (s->p < s->end && *s->p != ')' && !s->is_bad) {
    shell_skip_blanks (s);
    const char *end = shell_next_end (s);
    g_autofree char *pattern = shell_expand_text (s->sh, s->p, end, false);
    const char *words[] = { word, "==", pattern };
    if (end > s->p && found != SHELL_YES)
      found = shell_test (s->sh, (char *const *) words, 3, true);
    s->p = MIN (MAX (end, s->p) + (end < s->end && *end != ')'), s->end);
  }
  s->p = MIN (s->p + 1, s->end);
  return found;
}

static ShellStatus
read_case (ShellText *s)
{
  shell_skip_blanks (s);
  const char *end = shell_next_end (s);
  ShellMode outer = s->sh->mode, rest = outer;
  g_autofree char *word = shell_expand_text (s->sh, s->p, end, false);
  s->p = end;
  shell_take_word (s, "in");
  for (shell_skip_separators (s); s->p < s->end && !shell_is_word (s, "esac") && !s->is_bad;
       shell_skip_separators (s)) {
    s->sh->mode = rest;
    const char *begin = s->p;
    ShellStatus fits = read_patterns (s, word);
    shell_enter (s->sh, mode_if (fits, SHELL_YES));
    read_list (s, (const char *const[]) { ";;", "esac", NULL });
    rest = MIN (rest, mode_if (fits, SHELL_NO));
    shell_skip_separators (s);
    if (shell_is_at (s, ";;"))
      s->p += 2;
    if (s->p == begin)
      s->p++;
  }
  shell_take_word (s, "esac");
  s->sh->mode = outer;
  return SHELL_DONE;
}

/* What a shell of its own sets, or that it ends, is of no account behind it. */
static ShellStatus
read_group (ShellText *s)
{
  if (*s->p++ == '{')
    return read_up_to (s, "}");
  g_autoptr (GHashTable) kept = shell_keep_all (s->sh);
  bool had_left = s->sh->has_left;
  ShellStatus status = read_up_to (s, ")");
  s->sh->has_left = had_left;
  shell_set_all_back (s->sh, kept);
  return status;
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

/* How often it goes round, if its body leaves the count alone; 0: not known, or never. */
static guint
count_rounds (LsShell *sh, char *const *parts)
{
  gint64 value;
  guint n = 0;
  if (sh->mode != SHELL_RUN || shell_set_arithmetic (sh, parts[0]) == SHELL_UNKNOWN)
    return 0;
  bool is_known;
  while ((is_known = shell_arithmetic (sh, parts[1], &value)) && value != 0 && n <= MAX_ROUNDS) {
    n++;
    if (shell_set_arithmetic (sh, parts[2]) == SHELL_UNKNOWN)
      return 0;
  }
  return is_known && n <= MAX_ROUNDS ? n : 0;
}

/* Sets what round i of a loop is of: a word, or a count by its parts. */
static void
begin_round (ShellText *s, const char *name, const GPtrArray *words, char *const *parts, guint i)
{
  if (!words)
    shell_set_arithmetic (s->sh, parts[i > 0 ? 2 : 0]);
  else if (*name)
    shell_set (s->sh, name, g_strdup (words->pdata[i]));
}

/* Behind "for" or "select". */
static ShellStatus
read_for (ShellText *s)
{
  shell_skip_blanks (s);
  ShellMode outer = s->sh->mode;
  const char *name_end = shell_name_end (s->p, s->end);
  g_autofree char *name = g_strndup (s->p, (gsize) (name_end - s->p));
  g_autoptr (GPtrArray) words = NULL;
  g_auto (GStrv) parts = NULL;
  s->p = name_end;
  if (shell_is_at (s, "((")) { /* "((i = 0; i < N; i++))" */
    g_autofree char *text = read_double_brackets (s);
    parts = g_strsplit (text ? text : "", ";", -1);
    if (g_strv_length (parts) != 3)
      g_clear_pointer (&parts, g_strfreev);
  } else { /* none, where the script does not say them all */
    words = g_ptr_array_new_with_free_func (g_free);
    shell_skip_blanks (s);
    shell_take (s, "in");
    read_words (s, "\n;|)(&", words);
  }
  for (guint i = 0; words && i < words->len; i++)
    if (ls_shell_has_hole (words->pdata[i]))
      g_ptr_array_set_size (words, 0);
  shell_skip_separators (s);
  shell_take_word (s, "do");
  const guint n = words ? words->len : parts ? count_rounds (s->sh, parts) : 0;
  const char *begin = s->p;
  if (n > 0 && outer == SHELL_RUN && !s->is_bad && can_repeat (s, n)) {
    for (guint i = 0; i < n && !s->sh->fault && !s->is_bad; i++) {
      s->p = begin;
      begin_round (s, name, words, parts, i);
      read_up_to (s, "done");
      s->sh->has_left = s->sh->has_left && !s->sh->continues;
      s->sh->continues = false;
    }
    if (parts)
      begin_round (s, name, NULL, parts, n);
  } else {
    shell_enter (s->sh, SHELL_MAYBE);
    if (*name)
      shell_set (s->sh, name, g_strdup ("?"));
    if (parts)
      shell_set_arithmetic (s->sh, parts[0]);
    read_up_to (s, "done");
  }
  s->sh->mode = outer;
  return SHELL_DONE;
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
static ShellStatus
read_function (ShellText *s)
{
  shell_skip_blanks (s);
  const char *head_end = function_head_end (s), *name_end = shell_name_end (s->p, s->end);
  g_autofree char *name = g_strndup (s->p, (gsize) (name_end - s->p));
  s->p = MAX (name_end, head_end);
  shell_skip_separators (s);
  const char *body = s->p;
  ShellMode outer = shell_enter (s->sh, SHELL_SKIPPED);
  read_command (s);
  s->sh->mode = outer;
  if (shell_afford (s->sh, (gsize) (s->p - body)))
    g_hash_table_replace (s->sh->functions, g_steal_pointer (&name), g_strndup (body, (gsize) (s->p - body)));
  return SHELL_DONE;
}

/* --- lists ---------------------------------------------------------------------------------------- */

static ShellStatus
read_block (ShellText *s)
{
  static const struct {
    const char *word;
    ShellStatus (*read) (ShellText *s);
  } blocks[]
      = { { "if", read_if },      { "while", read_while }, { "until", read_while },      { "for", read_for },
          { "select", read_for }, { "case", read_case },   { "function", read_function } };
  for (guint i = 0; i < G_N_ELEMENTS (blocks); i++)
    if (shell_take (s, blocks[i].word))
      return blocks[i].read (s);
  if (shell_is_word (s, "[["))
    return read_test (s);
  if (shell_is_at (s, "((")) {
    g_autofree char *text = read_double_brackets (s);
    return text ? shell_set_arithmetic (s->sh, text) : SHELL_UNKNOWN;
  }
  if (shell_is_at (s, "(") || shell_is_word (s, "{"))
    return read_group (s);
  return function_head_end (s) > s->p ? read_function (s) : read_simple (s);
}

static ShellStatus
read_command (ShellText *s)
{
  bool is_negated = false;
  shell_skip_blanks (s);
  for (; shell_take (s, "!") || shell_take (s, "time"); shell_skip_blanks (s))
    is_negated = !is_negated;
  if (++s->sh->depth > MAX_DEPTH)
    shell_give_up (s, "blocks or texts are nested too deep");
  ShellStatus status = s->is_bad ? SHELL_UNKNOWN : read_block (s);
  s->sh->depth--;
  if (!is_negated || status == SHELL_UNKNOWN)
    return status;
  return status == SHELL_NO ? SHELL_YES : SHELL_NO;
}

static ShellStatus
read_pipeline (ShellText *s)
{
  ShellStatus status = read_command (s);
  for (shell_skip_blanks (s); shell_is_at (s, "|") && !shell_is_at (s, "||"); shell_skip_blanks (s)) {
    s->p += shell_is_at (s, "|&") ? 2 : 1;
    s->sh->out.is_lost = s->sh->out.is_lost || s->sh->out.text;
    while (shell_skip_blanks (s), s->p < s->end && *s->p == '\n')
      shell_skip_newline (s);
    read_command (s);
    status = SHELL_DONE;
  }
  while (s->p < s->end && shell_is_redirection (s)) {
    ShellStreams streams = { 0 }; /* of a block */
    shell_take_redirection (s, &streams);
    g_free (streams.here);
    g_free (streams.target);
    s->sh->out.is_lost = s->sh->out.is_lost || s->sh->out.text;
    shell_skip_blanks (s);
  }
  return status;
}

static ShellStatus
read_and_or (ShellText *s)
{
  ShellMode outer = s->sh->mode;
  ShellStatus status = read_pipeline (s);
  for (shell_skip_blanks (s); shell_is_at (s, "&&") || shell_is_at (s, "||"); shell_skip_blanks (s)) {
    bool is_and = shell_is_at (s, "&&");
    s->p += 2;
    while (shell_skip_blanks (s), s->p < s->end && *s->p == '\n')
      shell_skip_newline (s);
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
  for (shell_skip_separators (s); s->p < s->end && !s->is_bad && !s->sh->fault; shell_skip_separators (s)) {
    const char *begin = s->p;
    for (const char *const *stop = stops; stop && *stop; stop++)
      if (shell_is_word (s, *stop))
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
  ShellText s = { sh, text, text, text + n, NULL, false, false };
  guint n_same = 0;
  for (guint i = 0; i < sh->texts->len; i++)
    n_same += strcmp (sh->texts->pdata[i], text) == 0;
  if (n_same >= MAX_SAME)
    return;
  g_ptr_array_add (sh->texts, (gpointer) text);
  if (++sh->depth > MAX_DEPTH)
    shell_give_up (&s, "blocks or texts are nested too deep");
  else
    read_list (&s, NULL);
  sh->depth--;
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
  sh->out.joint = -1;
  shell_set_place (sh, path, true);
  read_text (sh, copy, length);
  return g_strdup (sh->fault);
}
