/* Files that wrap a launch script, such as objects of Kubernetes: rules of a map write the script that stands
 * for what they start. How many machines there are, and what each has, is said by a command in front, which
 * starters.json counts by:
 *
 *     kubernetes-pods --nodes=16 --gpus-per-node=4
 *
 * Values that a tool puts in before the file is used ("$NUM_NODES" of envsubst,
 * "{{workflow.parameters.gpus}}" of Argo) are variables of the script, NUM_NODES and gpus. */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/program/program_map.h"
#include "data/launch/yaml_config.h"
#include "data/text/yaml.h"

#define MAX_DOCUMENTS   256
#define NAME_CHARACTERS G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_"

struct ProgramScript {
  GString *text;
  GHashTable *own;  /* variables of the container whose command is written */
  GHashTable *done; /* what is written once: texts */
  GPtrArray *told;
  guint n_commands;
};

/* --- values that are put in --- */

/* "{{ .Values.workload.gpus }}" as "${gpus}", "$(NAME)" as "${NAME}" where the container has it, unlike
 * $(date). own: NULL: what it has is not known. */
static gboolean
put_variable (const GMatchInfo *match, GString *out, gpointer own)
{
  g_autofree char *whole = g_match_info_fetch (match, 0), *last = g_match_info_fetch (match, 1),
                  *name = g_match_info_fetch (match, 2);
  bool is_template = *whole == '{';
  if (is_template)
    g_string_append_printf (out, "${%s}", *last ? g_strdelimit (last, "-", '_') : "template");
  else if (own ? g_hash_table_contains (own, name) : !g_ascii_isdigit (*name))
    g_string_append_printf (out, "${%s}", name);
  else
    g_string_append (out, whole);
  return FALSE;
}

/* Appends a text as a word in double quotes, in which values that are put in are variables, and "$(NAME)" is
 * the container's; or, a text of a shell, in single quotes. */
static void
add_word (GString *script, const char *text, bool is_script, GHashTable *own)
{
  static const char put_in[] = "\\{\\{(?s:.*?)([\\w-]*\\w)?[ \\t-]*\\}\\}|\\$\\((\\w+)\\)";
  g_autoptr (GRegex) regex = g_regex_new (put_in, G_REGEX_RAW, 0, NULL);
  g_autofree char *filled
      = g_regex_replace_eval (regex, text, -1, 0, 0, put_variable, is_script ? own : NULL, NULL);
  char quote = is_script ? '\'' : '"';
  g_string_append_c (script, quote);
  for (const char *p = filled ? filled : text; *p; p++) {
    bool is_variable = p[0] == '$'
        && (g_ascii_isalpha (p[1]) || p[1] == '_' || p[1] == '{' || g_str_has_prefix (p, "$(("));
    if (!is_script && strchr ("\"\\`$", *p) && !is_variable)
      g_string_append_c (script, '\\');
    g_string_append (script, is_script && *p == '\'' ? "'\\''" : (char[]) { *p, '\0' });
  }
  g_string_append_c (script, quote);
}

/* A text as a word of a shell. */
static ProgramValue
f_quoted (ProgramRun *run, const ProgramArgument *a)
{
  g_autofree char *text = program_value_text (&a->value);
  GString *word = g_string_new (NULL);
  add_word (word, text, false, NULL);
  return program_taken (g_string_free (word, FALSE));
}

static bool
is_count (const char *text)
{
  return *text && strspn (text, G_CSET_DIGITS) == strlen (text) && strlen (text) < 8;
}

/* What a shell takes the product of two texts for: "2" times "$NODES" is "$((2*$NODES))". */
static ProgramValue
f_times (ProgramRun *run, const ProgramArgument *a)
{
  g_autofree char *x = program_value_text (&a[0].value), *y = program_value_text (&a[1].value);
  if (is_count (x) && is_count (y))
    return program_taken (g_strdup_printf ("%" G_GUINT64_FORMAT,
                                           g_ascii_strtoull (x, NULL, 10) * g_ascii_strtoull (y, NULL, 10)));
  return program_taken (strcmp (x, "1") == 0       ? g_steal_pointer (&y)
                            : strcmp (y, "1") == 0 ? g_steal_pointer (&x)
                                                   : g_strdup_printf ("$((%s*%s))", x, y));
}

/* How many commands rules wrote. */
PROGRAM_NUMBER (f_commands, run->wraps ? run->wraps->n_commands : 0)

const ProgramFunction program_wrap_functions[] = {
  { "quoted", "v", f_quoted, true },
  { "times", "vv", f_times, true },
  { "commands", "", f_commands, true },
  { NULL },
};

/* --- what rules write --- */

/* { "write": template }: a line. */
void
program_write_line (ProgramRun *run, ProgramAct *a)
{
  g_string_append_printf (run->wraps->text, "%s\n", program_act_text (run, a));
}

/* { "tell": template }: of the file, once. */
void
program_tell_once (ProgramRun *run, ProgramAct *a)
{
  const char *text = program_act_text (run, a);
  if (!g_ptr_array_find_with_equal_func (run->wraps->told, text, g_str_equal, NULL))
    g_ptr_array_add (run->wraps->told, g_strdup (text));
}

/* { "export": name, "as": value } of processes; { "variable": name, "as": value }: of the script, which may
 * be given. */
void
program_write_variable (ProgramRun *run, ProgramAct *a)
{
  const char *said = program_act_text (run, a);
  g_auto (ProgramValue) v = program_value_at (run, a->rule, "as");
  g_autofree char *text = program_value_text (&v);
  bool is_exported = strcmp (a->action, "export") == 0,
       is_name = *said && (!is_exported || !g_ascii_isdigit (*said))
      && !(is_exported ? said[strspn (said, NAME_CHARACTERS)] : strpbrk (said, " ${}()'\"") != NULL);
  GString *script = run->wraps->text;
  if (is_exported)
    g_hash_table_add (run->wraps->own, g_strdup (said));
  if (is_name && !program_value_is_none (&v)) {
    g_string_append_printf (script, is_exported ? "export %s=" : "%s=${%s:-", said, said);
    add_word (script, text, false, NULL);
    g_string_append (script, is_exported ? "\n" : "}\n");
  }
}

/* { "command": "command args" }: the words of these members, one behind the other. */
void
program_write_command (ProgramRun *run, ProgramAct *a)
{
  g_autoptr (GPtrArray) words = g_ptr_array_new_with_free_func (g_free);
  g_auto (GStrv) paths = g_strsplit (a->what->valuestring, " ", -1);
  for (char **path = paths; *path; path++) {
    const cJSON *list = yaml_config_find (run->tree, *path);
    for (const cJSON *one = cJSON_IsString (list) || !list ? list : list->child; one; one = one->next) {
      char *text = cJSON_IsNull (one) ? NULL : launch_scalar_text (one);
      if (text)
        g_ptr_array_add (words, text);
      if (one == list)
        break;
    }
  }
  guint at = ls_shell_text_of ((char *const *) words->pdata, words->len);
  for (guint i = 0; i < words->len; i++) {
    if (i > 0)
      g_string_append_c (run->wraps->text, ' ');
    add_word (run->wraps->text, words->pdata[i], at > 0 && i == at, run->wraps->own);
  }
  g_string_append (run->wraps->text, words->len > 0 ? "\n" : "");
  run->wraps->n_commands += words->len > 0;
}

/* { "container": rules }: what they write is there once, if there is a command in it. */
void
program_write_once (ProgramRun *run, ProgramAct *a)
{
  struct ProgramScript *s = run->wraps;
  guint n = s->n_commands;
  GString *above = s->text;
  s->text = g_string_new (NULL);
  g_hash_table_remove_all (s->own);
  run->is_refused |= !program_doors->run_rules (run, a->what);
  if (s->n_commands > n && g_hash_table_add (s->done, g_strdup (s->text->str)))
    g_string_append (above, s->text->str);
  g_string_free (s->text, TRUE);
  s->text = above;
}

/* --- files --- */

/* Those that are YAML, between lines "---"; why the others are not is told. */
static cJSON *
documents_of (const ImportFile *file, LsDiagList *why)
{
  g_auto (GStrv) texts = g_regex_split_simple ("(?:\\A---|^---(?=\\s|$))[^\\n]*", file->text,
                                               G_REGEX_MULTILINE | G_REGEX_RAW, 0);
  cJSON *all = cJSON_CreateArray ();
  for (guint i = 0; texts[i] && i < MAX_DOCUMENTS; i++) {
    bool is_front = i == 0 && !*texts[i]; /* of a file that begins with such a line */
    cJSON *tree = is_front ? NULL : ls_yaml_parse (texts[i], strlen (texts[i]), file->path, NULL, why);
    if (tree)
      cJSON_AddItemToArray (all, tree);
  }
  return all;
}

/* Rules of a file that the map unwraps; whether it wrote a script. */
static bool
unwrap (ProgramRun *run, const cJSON *rules, GPtrArray *told, const LsDiagList *why, ImportFile *file)
{
  g_autoptr (GHashTable) own = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
                         done = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  struct ProgramScript script = { g_string_new ("#!/bin/bash\n"), own, done, told, 0 };
  g_autofree char *wrong = ls_diag_list_n (why) > 0 ? ls_diag_list_format (why) : g_strdup ("");
  program_let (run, "wrong", program_text (g_strchomp (wrong)));
  run->wraps = &script;
  bool ok = program_doors->run_rules (run, rules);
  if (ok)
    import_set_text (file, script.text);
  else
    g_string_free (script.text, TRUE);
  return ok;
}

bool
program_unwrap (const char *name, ImportFile *file, GPtrArray *told, LsDiagList *diags)
{
  const ProgramMap *map = program_doors->map_get (name);
  const cJSON *wrap = program_section (map, "unwraps");
  ProgramRun run = { .map = map, .path = file->path, .text = file->text, .diags = diags };
  if (!wrap || strlen (file->text) != file->n || !program_holds (&run, ls_json_text (wrap, "when"))) {
    program_run_clear (&run);
    return true;
  }
  g_autoptr (LsDiagList) why = ls_diag_list_new ();
  cJSON *all = cJSON_IsTrue (cJSON_GetObjectItemCaseSensitive (wrap, "documents"))
      ? documents_of (file, why)
      : cJSON_Duplicate (yaml_config_tree (file), true);
  const char *fits = ls_json_text (wrap, "fits");
  run.tree = run.root = all;
  bool ok = !all || (fits && !program_holds (&run, fits))
      || unwrap (&run, cJSON_GetObjectItemCaseSensitive (wrap, "rules"), told, why, file);
  program_run_clear (&run);
  cJSON_Delete (all);
  return ok;
}
