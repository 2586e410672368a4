/* What else a job is told by: arguments that a log prints or a file has in place of a command's, files that
 * options name, and numbers that a test measured. */
#include <math.h>
#include <string.h>

#include <lockstep/error.h>

#include "base/order.h"
#include "data/launch/launch_script.h"
#include "data/launch/program/program_map.h"
#include "data/launch/yaml_config.h"
#include "data/shell/shell.h"

/* --- options ------------------------------------------------------------------------------------------- */

/* { "adds": { option: value } }: options behind those that stand there, as a file says them; true: it is
 * on. */
void
program_add_options (ProgramRun *run, ProgramAct *a)
{
  launch_words_add_value (run->words, a->name, cJSON_IsTrue (a->what) ? NULL : program_act_text (run, a));
}

/* { "elsewhere": text }: another file says more of the model, of which what is not given is not as by
 * default. */
void
program_leave_more (ProgramRun *run, ProgramAct *a)
{
  run->job->is_part = run->job->import->may_have_more = true;
  import_unknown (run->job->import, "%s", program_act_text (run, a));
}

/* { "in_file": option }: its value is what the file of that name has, as JSON, where it is here. */
void
program_take_file (ProgramRun *run, ProgramAct *a)
{
  const char *option = program_act_text (run, a), *name = launch_words_text (run->words, option);
  gsize n;
  g_autofree char *text = name ? launch_file_of (run->files, name, &n) : NULL,
                  *json = text ? megatron_formats_text (text, n, name) : NULL;
  if (json)
    launch_words_add_by (run->words, false, option, json);
}

/* { "arguments": option, "lifts": mappings, "says": text }: the YAML that it names, members of whose mappings
 * are its own, is all that the program is told; the text is told of each other option, "each". */
void
program_take_arguments (ProgramRun *run, ProgramAct *a)
{
  LaunchJob *job = run->job;
  const LaunchWords *own = job->words;
  g_autofree char *option = program_option (run->map, a->what->valuestring);
  g_auto (GStrv) lifts = g_strsplit (program_member (a->rule, "lifts"), " ", -1);
  cJSON *tree = launch_words_find (own, option)
      ? yaml_config_of_name (run->files, launch_words_text (own, option), job->import, run->diags)
      : cJSON_CreateObject ();
  if (!tree) {
    run->is_refused = true;
    return;
  }
  for (char **part = lifts; *part; part++)
    yaml_config_lift (tree, *part);
  for (guint i = 0; i < own->options->len; i++) {
    const LaunchOption *o = own->options->pdata[i];
    program_set_each (run, o->written);
    g_autofree char *text = program_fill (run, program_member (a->rule, "says"));
    if (!o->is_default && !option_fits (option, o->name))
      import_unknown (job->import, "%s", text);
  }
  launch_words_free (run->made);
  run->made = yaml_config_words (tree);
  job->words = run->words = run->made;
  job->is_dump = true;
}

/* Options of the job: "all", those with "valued" keys, or "other" ones than its program's. */
static ProgramValue
f_options (ProgramRun *run, const ProgramArgument *a)
{
  guint n = 0;
  for (guint i = 0; i < run->words->options->len; i++) {
    const LaunchOption *o = run->words->options->pdata[i];
    const OptionRow *row = option_find (&run->map->table, o->name);
    n += *a[0].word == 'v' ? option_is_valued (row) : *a[0].word == 'a' || !row;
  }
  return program_number (n);
}

/* --- the configuration of DeepSpeed's engine ------------------------------------------------------------ */

/* Not what begins with one of these. */
static LaunchWords *
words_but (const LaunchWords *all, const char *but)
{
  LaunchWords *words = launch_words_new ();
  g_auto (GStrv) starts = g_strsplit (but, " ", -1);
  for (guint i = 0; i < all->options->len; i++) {
    const LaunchOption *o = all->options->pdata[i];
    bool is_left_out = false;
    for (char **start = starts; *start; start++)
      is_left_out |= g_str_has_prefix (o->name, *start);
    if (!is_left_out)
      launch_words_add_renamed (words, o->name, o);
  }
  return words;
}

/* { "engine": the name of a file }: by which DeepSpeed's engine shards, offloads, reduces and clips, where it
 * is here. */
void
program_read_engine (ProgramRun *run, ProgramAct *a)
{
  const char *name = program_act_value (run, a)->text;
  gsize n;
  g_autofree char *text = name ? launch_file_of (run->files, name, &n) : NULL;
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  LaunchWords *read = launch_words_new ();
  if (text && launch_words_add_json (read, text, n, name, none)) {
    launch_words_free (run->deepspeed);
    run->deepspeed = g_steal_pointer (&read);
  }
  launch_words_free (read);
}

/* { "engine_but": what of that file is said elsewhere }: keys of ours by the rest. */
void
program_run_engine (ProgramRun *run, ProgramAct *a)
{
  if (!run->deepspeed)
    return;
  g_autoptr (LaunchWords) words = words_but (run->deepspeed, a->what->valuestring);
  LsImport *import = run->job->import;
  LaunchJob engine = { .import = import, .words = words };
  const OptionTable *table = import->table;
  program_doors->run_map ("deepspeed", "engine", &(ProgramWith) { NULL }, &engine, NULL, NULL);
  import->table = table;
}

PROGRAM_NUMBER (f_has_engine, run->deepspeed != NULL)
PROGRAM_NUMBER (f_engine_says, run->deepspeed &&launch_words_find (run->deepspeed, a->word))

/* None where the file leaves it open, too. */
static ProgramValue
f_of_engine (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = run->deepspeed ? launch_words_text (run->deepspeed, a->word) : NULL;
  return program_text (text && !ls_shell_has_hole (text) ? text : NULL);
}

/* --- a log --------------------------------------------------------------------------------------------- */

/* ------------------------ arguments ------------------------
 *       num_layers ...................................... 64
 *     -------------------- end of arguments --------------------- */

/* Behind what launchers put in front of a line: "0: ", "[default0]:". */
static const char *
skip_prefix (const char *line, const char *end)
{
  while (line < end && g_ascii_isspace (*line))
    line++;
  const char *p = line;
  while (p < end && !g_ascii_isspace (*p) && *p != ':')
    p++;
  if (p >= end || *p != ':')
    return line;
  for (p++; p < end && g_ascii_isspace (*p); p++)
    ;
  return p;
}

/* "  num_layers ....... 64", "  long_name_without_dots  False". */
static void
read_argument (LaunchWords *words, const char *line, const char *end)
{
  const char *name = skip_prefix (line, end), *p = name;
  while (p < end && (g_ascii_isalnum (*p) || *p == '_'))
    p++;
  const char *value = p;
  while (value < end && strchr (" .", *value))
    value++;
  if (p == name || value == p)
    return;
  g_autofree char *key = g_strndup (name, (gsize) (p - name)),
                  *text = g_strstrip (g_strndup (value, (gsize) (end - value)));
  launch_words_add_value (words, key, text);
}

void
program_add_printed (LaunchWords *words, const char *text, const cJSON *of)
{
  const char *head = strstr (text, reads_text (of, "prints"));
  for (const char *p = head ? log_line_end (head) : NULL; p && *p == '\n';) {
    const char *end = log_line_end (++p);
    if (reads_text (of, "ends") && g_strstr_len (p, end - p, reads_text (of, "ends")))
      return;
    read_argument (words, p, end);
    p = end;
  }
}

/* The number behind the first such text of a log, on its line; none: there is none. */
static ProgramValue
f_number_behind (ProgramRun *run, const ProgramArgument *a)
{
  const char *line = run->text && a[0].value.text ? strstr (run->text, a[0].value.text) : NULL;
  return program_number (
      line ? log_number_behind (line, (gsize) (log_line_end (line) - line), a[0].value.text) : NAN);
}

/* Behind a string or a comment that begins at p; p: none does. */
static const char *
behind_text (const char *p)
{
  if (*p == '#' || (p[0] == '/' && p[1] == '/'))
    return p + strcspn (p, "\n");
  if (p[0] == '/' && p[1] == '*') {
    const char *end = strstr (p, "*/");
    return end ? end + 2 : p + strlen (p);
  }
  if (*p != '"')
    return p;
  for (p++; *p && *p != '"'; p++)
    p += p[0] == '\\' && p[1];
  return p + (*p == '"');
}

/* Whether an object of JSON, or of a template of it, has such a member itself, and not another one in it. */
static bool
has_member (const char *text, const char *name)
{
  g_autofree char *key = g_strdup_printf ("\"%s\"", name);
  int depth = 0;
  for (const char *p = text; *p;) {
    if (depth == 1 && g_str_has_prefix (p, key))
      return true;
    const char *next = behind_text (p);
    depth += next == p ? (*p == '{' || *p == '[') - (*p == '}' || *p == ']') : 0;
    p = next == p ? p + 1 : next;
  }
  return false;
}

/* Whether a file of the job, by its place, or the one that is looked at, is an object of JSON with one of
 * these members; no names: with any. */
static ProgramValue
f_object_has (ProgramRun *run, const ProgramArgument *a)
{
  const guint i = (guint) fmax (0, a[0].value.number);
  const char *all = !run->files ? run->text
      : i < run->files->n       ? run->files->files[i].text
                                : "",
             *text = all ? all + strspn (all, " \t\r\n") : "";
  g_auto (GStrv) names = g_strsplit (a[1].value.text ? a[1].value.text : "", " ", -1);
  bool is_object = strchr ("{/#", *text) && *text && !g_str_has_prefix (text, "#!"), has_one = !*names;
  for (char **name = names; *name && is_object && !has_one; name++)
    has_one = has_member (text, *name);
  return program_number (is_object && has_one);
}

/* Whether a file that is looked at is a configuration of a program around a Trainer. */
static ProgramValue
f_is_around (ProgramRun *run, const ProgramArgument *a)
{
  return program_number (run->looked && hf_is_around (run->looked));
}

/* --- a test -------------------------------------------------------------------------------------------- */

#define MAX_VALUES 1000000

/* The numbers of a metric, in order; text "nan" is none. */
static GArray *
values_of (const cJSON *root, const char *metric)
{
  GArray *values = g_array_new (FALSE, FALSE, sizeof (double));
  const cJSON *all
      = cJSON_GetObjectItemCaseSensitive (cJSON_GetObjectItemCaseSensitive (root, metric), "values"),
      *one;
  cJSON_ArrayForEach (one, all)
  {
    double value
        = cJSON_IsString (one) ? g_ascii_strtod (one->valuestring, NULL) : cJSON_GetNumberValue (one);
    if (isfinite (value) && value > 0 && values->len < MAX_VALUES)
      g_array_append_val (values, value);
  }
  return values;
}

/* The median of the later half. */
static void
measure (const cJSON *root, const char *seconds, const char *allocated, LsImport *import)
{
  LsImportMeasured *m = &import->measured;
  g_autoptr (GArray) times = values_of (root, seconds), bytes = values_of (root, allocated);
  m->n_lines = times->len;
  if (times->len > 1)
    g_array_remove_range (times, 0, times->len / 2);
  m->n_steady = times->len;
  g_array_sort (times, ls_compare_doubles);
  if (times->len > 0) {
    m->step_s = g_array_index (times, double, times->len / 2);
    import_infer (import, "measured.iteration_s: the median of the last %u of %u golden values", m->n_steady,
                  m->n_lines);
  }
  for (guint i = 0; i < bytes->len; i++)
    m->allocated_bytes = MAX (m->allocated_bytes, g_array_index (bytes, double, i));
}

/* { "golden": metric, "bytes": metric }: files behind the first have values of these by the number of the
 * iteration, { "iteration-time": { "values": { "5": 3.80, ... } }, ... }. */
void
program_take_golden (ProgramRun *run, ProgramAct *a)
{
  for (guint i = 1; i < run->files->n && !run->is_refused; i++) {
    const ImportFile *file = &run->files->files[i];
    cJSON *root = cJSON_ParseWithLength (file->text, file->n);
    import_use_file (file);
    if (root && cJSON_HasObjectItem (root, a->what->valuestring))
      measure (root, a->what->valuestring, program_member (a->rule, "bytes"), run->job->import);
    else {
      ls_diag_add (run->diags, LS_ERROR_INPUT, file->path, 0, 0, NULL, NULL, NULL,
                   "these are no golden values of such a test");
      run->is_refused = true;
    }
    cJSON_Delete (root);
  }
}

/* --- the table ----------------------------------------------------------------------------------------- */

const ProgramFunction program_file_functions[] = {
  { "options", "w", f_options },
  { "has_engine", "", f_has_engine },
  { "engine_says", "w", f_engine_says },
  { "of_engine", "w", f_of_engine },
  { "number_behind", "v", f_number_behind },
  { "object_has", "vv", f_object_has, true },
  { "is_around", "", f_is_around, true },
  { NULL },
};
