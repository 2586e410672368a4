/* data/shell/shell_command.c — what a simple command sets, exports, or hands on. */
#include "data/shell/shell_parts.h"

#include <string.h>

/* --- assignments -------------------------------------------------------------------------------- */

/* The elements between the brackets of an array. */
static void
read_elements (LsShell *sh, const char *p, const char *end, GPtrArray *items)
{
  while (p < end && !shell_has_failed (sh)) {
    const char *newline = memchr (p, '\n', (size_t) (end - p));
    const char *behind = shell_word_end (p, end);
    if (*p == '#')
      p = newline ? newline : end;
    else if (g_ascii_isspace (*p) || behind == p)
      p++;
    else if (*p == '\\' && p + 1 < end && p[1] == '\n')
      p += 2;
    else {
      shell_expand (sh, p, behind ? behind : end, items);
      p = behind ? behind : end;
    }
  }
}

void
shell_perform_assignment (LsShell *sh, const char *p, const char *end)
{
  const char *value = shell_assignment_value (p, end), *name_end = shell_name_end (p, end);
  g_autofree char *name = g_strndup (p, (gsize) (name_end - p));
  bool is_appended = value[-2] == '+', is_array = value < end && *value == '(';
  if (*name_end == '[')
    return; /* an element of an array */
  GPtrArray *items = g_ptr_array_new_with_free_func (g_free);
  if (is_array)
    read_elements (sh, value + 1, end - 1, items);
  else
    g_ptr_array_add (items, shell_expand_text (sh, value, end, false));
  const ShellValue *old = is_appended ? shell_value (sh, name) : NULL;
  shell_assign (sh, name, items, is_array || (is_appended && old && old->is_array), is_appended);
}

/* --- texts that commands hand on ----------------------------------------------------------------- */

const char *
ls_shell_base_of (const char *word)
{
  const char *slash = strrchr (word, '/');
  return slash ? slash + 1 : word;
}

static bool
is_one_of (const char *word, const char *const *names)
{
  return g_strv_contains (names, ls_shell_base_of (word));
}

static const char *const shells[] = { "bash", "sh", "zsh", "dash", NULL };
static const char *const writers[] = { "cat", "tee", NULL };
static const char *const submitters[]
    = { "sbatch", "bash", "sh", "srun", "qsub", "bsub", "salloc", "mpirun", "mpiexec", NULL };

/* Reads a text as what the command in front of it starts: a shell of its own. */
static void
read_inner (LsShell *sh, GPtrArray *words, guint n_outer, const char *text)
{
  guint n_before = sh->outer->len;
  bool had_left = sh->has_left;
  for (guint i = 0; i < n_outer; i++)
    g_ptr_array_add (sh->outer, words->pdata[i]);
  sh->read (sh, text, strlen (text));
  g_ptr_array_set_size (sh->outer, (gint) n_before);
  sh->has_left = had_left;
}

guint
ls_shell_text_of (char *const *words, guint n)
{
  for (guint i = 1; n > 0 && is_one_of (words[0], shells) && i + 1 < n && *words[i] == '-'; i++)
    if (words[i][1] != '-' && strchr (words[i], 'c'))
      return i + 1;
  return 0;
}

/* Of a launcher that takes its command as one word, "bcprun -p 8 -c 'python train.py ...'" (NVIDIA's Base
 * Command). What Python has behind -c is no command. */
static bool
is_command_in_word (const GPtrArray *words, guint i)
{
  static const char *const options[] = { "-c", "--cmd", "--command", "--commandline", "--wrap", NULL };
  for (guint k = 0; k < i; k++)
    if (g_str_has_prefix (ls_shell_base_of (words->pdata[k]), "python"))
      return false;
  return i > 0 && g_strv_contains (options, words->pdata[i]) && strpbrk (words->pdata[i + 1], " \t\n");
}

/* Where the text behind "bash ... -c" is, or what else is a command; 0: nowhere. */
static guint
find_inner (const GPtrArray *words)
{
  for (guint i = 0, at; i + 1 < words->len; i++)
    if ((at = ls_shell_text_of ((char *const *) words->pdata + i, words->len - i)) > 0)
      return i + at;
  for (guint i = 0; i + 1 < words->len && strcmp (ls_shell_base_of (words->pdata[0]), "xpk") != 0; i++)
    if (is_command_in_word (words, i))
      return i + 1;
  return 0;
}

/* What XPK starts on the machines of a cluster ("xpk workload create --command=..."); NULL: it is not XPK. */
static const char *
find_workload (const GPtrArray *words)
{
  static const char option[] = "--command";
  if (strcmp (ls_shell_base_of (words->pdata[0]), "xpk") != 0)
    return NULL;
  for (guint i = 1; i < words->len; i++) {
    const char *word = words->pdata[i];
    if (g_str_has_prefix (word, option) && word[strlen (option)] == '=')
      return word + strlen (option) + 1;
    if (strcmp (word, option) == 0 && i + 1 < words->len)
      return words->pdata[i + 1];
  }
  return NULL;
}

/* Newly allocated; NULL: it is not known. */
static char *
path_of (const LsShell *sh, const char *name)
{
  const ShellValue *value = shell_value (sh, name);
  return value ? g_strdup (value->items->pdata[0]) : NULL;
}

static void
read_source (LsShell *sh, const char *path, bool is_started, GPtrArray *words, guint n_outer)
{
  bool can_ask = sh->funcs.source && !ls_shell_has_hole (ls_shell_base_of (path));
  g_autofree char *text = can_ask ? sh->funcs.source (path, is_started, sh->data) : NULL;
  if (!text)
    return;
  g_autofree char *script = path_of (sh, "0"), *source = path_of (sh, "BASH_SOURCE");
  const char *own = shell_is_beside (path) ? path : NULL;
  if (is_started)
    shell_set_path (sh, "0", own);
  shell_set_path (sh, "BASH_SOURCE", own);
  read_inner (sh, words, n_outer, text);
  shell_set_path (sh, "0", script);
  shell_set_path (sh, "BASH_SOURCE", source);
}

static bool
is_script (const char *word)
{
  return g_str_has_suffix (word, ".sh") || g_str_has_suffix (word, ".sbatch");
}

/* What stands behind the first word, as one text. */
static char *
rest_of (const GPtrArray *words)
{
  GString *text = g_string_new (NULL);
  for (guint i = 1; i < words->len; i++)
    g_string_append_printf (text, "%s%s", i > 1 ? " " : "", (char *) words->pdata[i]);
  return g_string_free (text, FALSE);
}

static void
read_eval (LsShell *sh, GPtrArray *words)
{
  g_autofree char *text = rest_of (words);
  if (shell_afford (sh, strlen (text)))
    sh->read (sh, text, strlen (text));
}

/* --- functions ---------------------------------------------------------------------------------- */

static void
set_positional (LsShell *sh, const GPtrArray *words)
{
  GPtrArray *all = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 1; i < words->len; i++) {
    char name[16];
    g_snprintf (name, sizeof name, "%u", i);
    shell_set (sh, name, g_strdup (words->pdata[i]));
    g_ptr_array_add (all, g_strdup (words->pdata[i]));
  }
  shell_assign (sh, "@", all, true, false);
}

/* "1" to "99", and "@" as 0. */
static const char *
positional_name (char *text, gsize n, guint i)
{
  if (i == 0)
    return "@";
  g_snprintf (text, n, "%u", i);
  return text;
}

/* Those that were there, while a function or a script has others. */
typedef struct {
  ShellValue *values[100];
} Positional;

static void
keep_positional (LsShell *sh, Positional *kept)
{
  char text[16];
  for (guint i = 0; i < G_N_ELEMENTS (kept->values); i++) {
    gpointer key, value = NULL;
    if (g_hash_table_steal_extended (sh->values, positional_name (text, sizeof text, i), &key, &value))
      g_free (key);
    kept->values[i] = value;
  }
}

static void
restore_positional (LsShell *sh, Positional *kept)
{
  char text[16];
  for (guint i = 0; i < G_N_ELEMENTS (kept->values); i++) {
    const char *name = positional_name (text, sizeof text, i);
    if (kept->values[i])
      g_hash_table_replace (sh->values, g_strdup (name), kept->values[i]);
    else
      g_hash_table_remove (sh->values, name);
  }
}

static void
call (LsShell *sh, const char *body, const GPtrArray *words)
{
  g_autofree char *text = g_strdup (body);
  Positional kept;
  keep_positional (sh, &kept);
  set_positional (sh, words);
  sh->read (sh, text, strlen (text));
  restore_positional (sh, &kept);
}

/* A script that is started with arguments, "bash x.sh 1 2" and "./x.sh 1 2". */
static void
read_script (LsShell *sh, GPtrArray *words)
{
  for (guint i = 0; i < words->len; i++)
    if (is_script (words->pdata[i])) {
      g_autoptr (GPtrArray) own = g_ptr_array_new ();
      for (guint k = i; k < words->len; k++)
        g_ptr_array_add (own, words->pdata[k]);
      Positional kept;
      keep_positional (sh, &kept);
      set_positional (sh, own);
      read_source (sh, words->pdata[i], true, words, i);
      restore_positional (sh, &kept);
      return;
    }
}

/* Of read: where its names begin, behind options, of which these have a word of their own. */
static guint
find_names (const GPtrArray *words)
{
  guint i = 1;
  for (; i < words->len && *(const char *) words->pdata[i] == '-'; i++) {
    const char *option = words->pdata[i];
    i += option[1] && strchr ("adinNptu", option[strlen (option) - 1]) != NULL;
  }
  return i;
}

/* "read -r A B <<< TEXT": a word each, the rest to the last; "read -d '' A <<END": all of the document. */
static void
read_names (LsShell *sh, const GPtrArray *words, const char *text)
{
  const ShellValue *ifs = shell_value (sh, "IFS");
  const char *cuts = ifs && ifs->items->len == 1 ? ifs->items->pdata[0] : " \t\n";
  for (guint i = find_names (words); i < words->len; i++) {
    gsize n = i + 1 < words->len && !ls_shell_has_hole (text) ? strcspn (text, cuts) : strlen (text);
    shell_set (sh, words->pdata[i], g_strndup (text, n));
    text += n == strlen (text) && ls_shell_has_hole (text) ? 0 : n + (text[n] != '\0');
  }
}

/* --- commands ----------------------------------------------------------------------------------- */

static void
hand_over (LsShell *sh, GPtrArray *words)
{
  g_autoptr (GPtrArray) all = g_ptr_array_new ();
  g_ptr_array_extend (all, sh->outer, NULL, NULL);
  g_ptr_array_extend (all, words, NULL, NULL);
  g_ptr_array_add (all, NULL);
  bool is_certain = sh->mode == SHELL_RUN && !sh->is_in_maybe;
  const LsShellCommand command = { (char *const *) all->pdata, all->len - 1, is_certain };
  sh->funcs.command (&command, sh->data);
}

static ShellStatus
run_test (LsShell *sh, const GPtrArray *words)
{
  guint n = words->len - 1;
  if (strcmp (words->pdata[0], "[") == 0 && n > 0 && strcmp (words->pdata[n], "]") == 0)
    n--;
  return shell_test (sh, (char *const *) words->pdata + 1, n, false);
}

/* A script that ends with an error launches nothing: its user sees to it that it goes on. */
static void
leave (LsShell *sh, const GPtrArray *words)
{
  bool is_error = words->len > 1 && strcmp (words->pdata[1], "0") != 0;
  if (sh->mode == SHELL_RUN && !is_error)
    sh->has_left = true;
}

static ShellStatus
run_let (LsShell *sh, const GPtrArray *words)
{
  ShellStatus status = SHELL_UNKNOWN;
  for (guint i = 1; i < words->len; i++) {
    gint64 value;
    bool is_known = shell_set_arithmetic (sh, words->pdata[i], &value);
    status = !is_known ? SHELL_UNKNOWN : value != 0 ? SHELL_YES : SHELL_NO;
  }
  return status;
}

static void
unset_all (LsShell *sh, const GPtrArray *words)
{
  for (guint i = 1; i < words->len; i++)
    shell_unset (sh, words->pdata[i]);
}

/* torchrun and its kin start any program then. */
static bool
has_no_python (const GPtrArray *words)
{
  for (guint i = 1; i < words->len; i++)
    if (strcmp (words->pdata[i], "--no-python") == 0 || strcmp (words->pdata[i], "--no_python") == 0)
      return true;
  return false;
}

static void
run_program (LsShell *sh, GPtrArray *words, const char *here)
{
  guint inner = find_inner (words);
  const char *workload = find_workload (words);
  if (inner > 0)
    read_inner (sh, words, inner, words->pdata[inner]);
  else if (workload) {
    hand_over (sh, words); /* which says where it runs */
    read_inner (sh, words, 0, workload);
  } else if (here && is_one_of (words->pdata[0], submitters))
    read_inner (sh, words, words->len, here);
  else
    hand_over (sh, words);
  bool starts_script
      = is_one_of (words->pdata[0], submitters) || is_script (words->pdata[0]) || has_no_python (words);
  if (inner == 0 && !here && starts_script)
    read_script (sh, words);
}

/* Whether a command in $(...) is one that is run for what it does, not for what it prints. */
static bool
starts_program (const GPtrArray *words)
{
  static const char *const printers[]
      = { "echo", "expr", "cat", "dirname", "basename", "readlink", "realpath", "cd", NULL };
  bool submits = is_one_of (words->pdata[0], submitters), prints = is_one_of (words->pdata[0], printers);
  for (guint i = 0; i < words->len && !prints; i++)
    if (g_str_has_suffix (words->pdata[i], ".py") || (submits && is_script (words->pdata[i])))
      return true;
  return false;
}

/* "LOG=$(torchrun train.py ...)", "ID=$(sbatch --parsable job.sh)": what it prints is not known. */
static void
run_for_output (LsShell *sh, GPtrArray *words)
{
  GString *output = sh->output;
  sh->output = NULL;
  sh->is_lost = false;
  run_program (sh, words, NULL);
  sh->output = output;
  sh->is_lost = true;
}

/* "cat <<END > FILE", "tee FILE <<END", "echo '{...}' > FILE". */
static void
write_file (LsShell *sh, const GPtrArray *words, const char *here, const char *target, bool is_appended)
{
  const char *name = words->pdata[0], *file = target;
  bool is_echo = strcmp (name, "echo") == 0, writes = is_echo || (here && is_one_of (name, writers));
  g_autofree char *said = is_echo ? rest_of (words) : g_strdup (""),
                  *text = g_strconcat (here ? here : "", said, NULL);
  if (here && strcmp (name, "tee") == 0 && words->len == 2)
    file = words->pdata[1];
  if (writes && file && sh->funcs.write && shell_afford (sh, strlen (text)))
    sh->funcs.write (file, text, is_appended, sh->data);
}

/* "set -a", "set +o allexport": whether what is set is exported. */
static void
set_options (LsShell *sh, const GPtrArray *words)
{
  for (guint i = 1; i < words->len; i++) {
    const char *word = words->pdata[i], *next = i + 1 < words->len ? words->pdata[i + 1] : "";
    bool is_flag = (*word == '-' || *word == '+') && word[1] != '-',
         is_it
        = is_flag && (strchr (word + 1, 'a') || (strchr (word + 1, 'o') && strcmp (next, "allexport") == 0));
    if (is_it && sh->mode == SHELL_RUN)
      sh->exports_all = *word == '-';
    if (!is_flag)
      break;
    i += strchr (word + 1, 'o') != NULL;
  }
}

ShellStatus
shell_run (LsShell *sh, GPtrArray *words, const char *here, const char *target, bool is_appended)
{
  static const char *const silent[] = { "echo", "printf", "cd", "mkdir", "set", "shift", "rm", NULL };
  const char *name = words->pdata[0];
  const char *body = g_hash_table_lookup (sh->functions, name);
  if (!shell_afford (sh, 64))
    return SHELL_UNKNOWN;
  if (!sh->output)
    write_file (sh, words, here, target, is_appended);
  if (strcmp (name, "[") == 0 || strcmp (name, "test") == 0)
    return run_test (sh, words);
  if (strcmp (name, "true") == 0 || strcmp (name, ":") == 0)
    return SHELL_YES;
  if (strcmp (name, "false") == 0)
    return SHELL_NO;
  if (sh->output && !body && !here && starts_program (words)) {
    run_for_output (sh, words);
    return SHELL_UNKNOWN;
  }
  if (sh->output && !body && strcmp (name, "exit") != 0)
    return shell_print (sh, words, here, target);
  if (strcmp (name, "exit") == 0 || strcmp (name, "return") == 0)
    leave (sh, words);
  else if (strcmp (name, "continue") == 0)
    sh->has_left = sh->continues = sh->mode == SHELL_RUN;
  else if (strcmp (name, "set") == 0)
    set_options (sh, words);
  else if (strcmp (name, "unset") == 0)
    unset_all (sh, words);
  else if (strcmp (name, "read") == 0 && here)
    read_names (sh, words, here);
  else if (strcmp (name, "let") == 0)
    return run_let (sh, words);
  else if (strcmp (name, "printf") == 0)
    shell_set_printed (sh, words);
  else if (strcmp (name, "eval") == 0)
    read_eval (sh, words);
  else if ((strcmp (name, "source") == 0 || strcmp (name, ".") == 0) && words->len > 1)
    read_source (sh, words->pdata[1], false, words, 0);
  else if (body)
    call (sh, body, words);
  else if (!g_strv_contains (silent, name))
    run_program (sh, words, here);
  return SHELL_DONE;
}

/* --- which variables processes see ----------------------------------------------------------------- */

bool
shell_is_declaration (const GPtrArray *words)
{
  static const char *const all[] = { "export", "declare", "local", "readonly", "typeset", NULL };
  return words->len > 0 && g_strv_contains (all, words->pdata[0]);
}

/* Whether the names in a command are exported: "export A", "declare -x A". */
static bool
is_export (const GPtrArray *words)
{
  bool has_flag = false;
  for (guint i = 1; i < words->len; i++) {
    const char *word = words->pdata[i];
    has_flag = has_flag || (*word == '-' && strchr (word, 'x'));
  }
  return words->len > 0 && shell_is_declaration (words)
      && (has_flag || strcmp (words->pdata[0], "export") == 0);
}

void
shell_export_names (LsShell *sh, const GPtrArray *words, GHashTable *in_front)
{
  GHashTableIter iter;
  gpointer name;
  for (g_hash_table_iter_init (&iter, in_front);
       words->len > 0 && g_hash_table_iter_next (&iter, &name, NULL);)
    shell_export (sh, name);
  for (guint i = 1; i < words->len && is_export (words); i++)
    if (*(const char *) words->pdata[i] != '-')
      shell_export (sh, words->pdata[i]);
}

/* --- what is set in front of a command ----------------------------------------------------------------- */

/* What a variable was before. */
typedef struct {
  ShellValue *value; /* NULL: it was not set */
  bool is_exported;
} Before;

static void
before_free (gpointer data)
{
  Before *before = data;
  if (before->value)
    shell_value_free (before->value);
  g_free (before);
}

GHashTable *
shell_in_front_new (void)
{
  return g_hash_table_new_full (g_str_hash, g_str_equal, g_free, before_free);
}

void
shell_assign_in_command (LsShell *sh, const char *p, const char *end, const GPtrArray *words,
                         GHashTable *in_front)
{
  const char *name_end = shell_name_end (p, end);
  g_autofree char *name = g_strndup (p, (gsize) (name_end - p));
  bool exports = is_export (words) || sh->exports_all;
  if (words->len == 0 && !g_hash_table_contains (in_front, name)) {
    Before *before = g_new (Before, 1);
    *before = (Before) { shell_value_copy (g_hash_table_lookup (sh->values, name)),
                         exports || ls_shell_exports (sh, name) };
    g_hash_table_insert (in_front, g_strdup (name), before);
  }
  shell_perform_assignment (sh, p, end);
  if (exports)
    shell_export (sh, name);
}

void
shell_set_back (LsShell *sh, GHashTable *in_front)
{
  GHashTableIter iter;
  gpointer name, data;
  for (g_hash_table_iter_init (&iter, in_front); g_hash_table_iter_next (&iter, &name, &data);) {
    Before *before = data;
    if (!before->is_exported)
      g_hash_table_remove (sh->exported, name);
    if (before->value)
      g_hash_table_replace (sh->values, g_strdup (name), g_steal_pointer (&before->value));
    else
      g_hash_table_remove (sh->values, name);
  }
}
