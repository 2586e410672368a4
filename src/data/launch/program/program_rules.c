/* data/launch/program/program_rules.c — rules of a map, run over the options of a file. */
#include <math.h>
#include <string.h>

#include <lockstep/error.h>

#include "base/list.h"
#include "data/jobs/job_files.h"
#include "data/launch/program/program_map.h"
#include "strategy/shard.h"
#include "strategy/strategy.h"

/* --- releases ------------------------------------------------------------------------------------------- */

/* Of the options that are given: from which release on, and up to which. */
typedef struct {
  guint first, last;
  const char *first_word, *last_word; /* who says so; NULL: none */
} ReleaseRange;

/* Whether a list of a release, "new" or "last", has an option. */
static bool
lists (const cJSON *release, const char *list, const char *option)
{
  const cJSON *one;
  bool has_it = false;
  cJSON_ArrayForEach (one, cJSON_GetObjectItemCaseSensitive (release, list))
    has_it = has_it || (cJSON_IsString (one) && option_is_listed (one->valuestring, option));

  return has_it;
}

static ReleaseRange
range_of (const LaunchJob *job)
{
  const cJSON *releases = program_section (job->table->map, "releases"), *release;
  ReleaseRange range = { 0, (guint) cJSON_GetArraySize (releases) - 1, NULL, NULL };
  for (guint i = 0; i < job->words->options->len; i++) {
    const LaunchOption *o = job->words->options->pdata[i];
    guint at = 0;
    cJSON_ArrayForEach (release, releases) {
      if (at > range.first && lists (release, "new", o->name)) {
        range.first = at;
        range.first_word = o->written;
      }
      if (at < range.last && lists (release, "last", o->name)) {
        range.last = at;
        range.last_word = o->written;
      }
      at++;
    }
  }
  return range;
}

/* The last up to that one, and not before `first`, which has a profile; else the first behind it. */
static const cJSON *
find_profile (const cJSON *releases, guint first, guint last)
{
  const cJSON *r = cJSON_GetArrayItem (releases, (int) last);
  for (const cJSON *at = r; last >= first; at = at->prev) {
    if (ls_json_text (at, "software"))
      return at;
    if (last-- == 0)
      break;
  }
  while (r->next && !ls_json_text (r, "software"))
    r = r->next;
  return r;
}

static guint
year_of (const cJSON *release)
{
  const cJSON *year = cJSON_GetObjectItemCaseSensitive (release, "year");
  return cJSON_IsNumber (year) ? (guint) CLAMP (year->valuedouble, 0, 9999) : 0;
}

/* Of releases by number: "core 0.15 of 2025". */
static char *
dated (const cJSON *release)
{
  const char *name = ls_json_text (release, "name");
  g_autofree char *year = g_strdup_printf ("%u", year_of (release));
  return strstr (name, year) ? g_strdup (name) : g_strdup_printf ("%s of %s", name, year);
}

/* "of core 0.9 (--moe-token-dispatcher-type) to core 0.15" */
static void
tell_range (LaunchJob *job, const cJSON *releases, const ReleaseRange *range, const cJSON *taken)
{
  const cJSON *first = cJSON_GetArrayItem (releases, (int) range->first),
              *last = cJSON_GetArrayItem (releases, (int) range->last);
  const char *software = ls_json_text (taken, "software");
  LsImport *import = job->import;
  if (range->first > range->last) {
    import_infer (import, "software %s: no release of %s has both %s (%s on) and %s (up to %s)", software,
                  import->made.program, range->first_word, ls_json_text (first, "name"), range->last_word,
                  ls_json_text (last, "name"));
    return;
  }
  g_autofree char *from = dated (first), *to = dated (last);
  GString *said = g_string_new (NULL);
  import->made.first_year = year_of (first);
  import->made.last_year = year_of (last);
  g_string_append_printf (said, "its options are those of %s", from);
  if (range->first_word)
    g_string_append_printf (said, " (%s)", range->first_word);
  if (range->last > range->first)
    g_string_append_printf (said, " to %s", to);
  if (range->last_word && g_strcmp0 (range->last_word, range->first_word) != 0)
    g_string_append_printf (said, " (%s)", range->last_word);
  import_infer (import, "software %s: %s%s%s", software, said->str,
                taken == last ? "" : "; the nearest that is known is ",
                taken == last ? "" : ls_json_text (taken, "name"));
  g_string_free (said, TRUE);
}

/* { "release": NAME }: software is the last release that has all options, and told is which have: a range,
 * with the options that bound it. Where no release has all, it is the last with the one that went first. A
 * table without releases has the release of the oldest option, or NAME. */
static void
take_release (ProgramRun *run, ProgramAct *a)
{
  LaunchJob *job = run->job;
  const char *until = NULL, *word = NULL;
  const cJSON *releases = program_section (job->table->map, "releases");
  if (releases) {
    ReleaseRange range = range_of (job);
    const cJSON *taken = find_profile (releases, MIN (range.first, range.last), range.last);
    import_set_software (job->import, ls_json_text (taken, "software"));
    tell_range (job, releases, &range, taken);
    return;
  }
  for (guint i = 0; i < job->words->options->len; i++) {
    const LaunchOption *o = job->words->options->pdata[i];
    const OptionRow *row = option_find (job->table, o->name);
    if (row && row->until && (!until || strcmp (row->until, until) < 0)) {
      until = row->until;
      word = o->written;
    }
  }
  import_set_software (job->import, until ? until : a->text);
  if (until)
    import_infer (job->import, "software %s: %s is an option of its time", until, word);
  else
    import_infer (job->import, "software %s: no option says an earlier release", a->text);
}

/* --- what rules do ------------------------------------------------------------------------------------- */

/* { "let": { "name": expression } } */
static void
let (ProgramRun *run, ProgramAct *a)
{
  program_let (run, a->name, program_value_of (run, a->what));
}

/* { "table": { "text": value }, "of": expression, "gives": name }: what "of" is in the table; none: it is not
 * there. */
static void
look_up (ProgramRun *run, ProgramAct *a)
{
  g_auto (ProgramValue) of = program_value_at (run, a->rule, "of");
  const cJSON *node = of.text ? cJSON_GetObjectItemCaseSensitive (a->what, of.text) : NULL;
  program_let (run, ls_json_text (a->rule, "gives"), node ? program_value_of (run, node) : program_none ());
}

/* { "list": expression, "of": n, "gives": name }: its values for each `index` below n, between commas. */
static void
make_list (ProgramRun *run, ProgramAct *a)
{
  guint64 n = program_whole_at (run, a->rule, "of");
  GString *list = g_string_new (NULL);
  for (guint64 i = 0; i < MIN (n, LS_MAX_CHUNKS); i++) {
    program_let (run, "index", program_number ((double) i));
    g_auto (ProgramValue) v = program_value_of (run, a->what);
    g_autofree char *text = program_value_text (&v);
    g_string_append_printf (list, "%s%s", i > 0 ? "," : "", text);
  }
  program_let (run, ls_json_text (a->rule, "gives"), program_taken (g_string_free (list, FALSE)));
}

/* What says it: "by"; else of a number of the model its key, of all else a rule of the program. A value that
 * is none sets nothing. */
static void
set_key (ProgramRun *run, ProgramAct *a)
{
  bool is_model = strcmp (a->action, "model") == 0;
  const char *by = ls_json_text (a->rule, "by"), *text = program_act_text (run, a);
  g_autofree char *option = by ? program_fill (run, by) : NULL;
  const char *who = option ? option : is_model && !a->value.text ? a->name : "--";
  if (program_value_is_none (&a->value))
    return;
  import_set (run->job->import, is_model ? ls_model_fields : ls_strategy_fields, a->name, text, who);
  if (is_model && option && !ls_field_find (ls_model_fields, option)
      && !import_has_option (run->job->import, option)) /* it is as the program has it */
    g_hash_table_add (run->job->import->model_by_rule,
                      (gpointer) ls_field_find_value (ls_model_fields, a->name)->key);
}

/* Of a key that is neither set nor left open. */
static void
set_default (ProgramRun *run, ProgramAct *a)
{
  const char *text = program_act_text (run, a);
  if (!import_has (run->job->import, ls_strategy_fields, a->name)
      && !g_hash_table_contains (run->job->open, a->name))
    import_set (run->job->import, ls_strategy_fields, a->name, text, a->name);
}

/* { "usual": { "layers": 32 } }: keys of the model that nothing sets, which is told, as "why" says or as the
 * default of the program. */
static void
set_usual (ProgramRun *run, ProgramAct *a)
{
  LsImport *import = run->job->import;
  const char *text = program_act_text (run, a);
  if (import_has (import, ls_model_fields, a->name))
    return;
  import_set (import, ls_model_fields, a->name, text, "--");
  program_tell_default (run, a);
}

/* { "renames": { option: name } }: an option by the name that it has today, unless that is there too. */
static void
rename_option (ProgramRun *run, ProgramAct *a)
{
  const LaunchOption *old = launch_words_find (run->words, a->name);
  if (old && !launch_words_find (run->words, a->what->valuestring))
    launch_words_add_renamed (run->words, a->what->valuestring, old);
}

/* { "tells": { option: text } }: of each that is there, "option: text" is told as unknown. */
static void
tell (ProgramRun *run, ProgramAct *a)
{
  if (option_is_there (run->job, a->name))
    import_unknown (run->job->import, "%s: %s", a->name, cJSON_GetStringValue (a->what));
}

static void
leave_open (ProgramRun *run, ProgramAct *a)
{
  g_autofree char *text = program_fill (run, ls_json_text (a->rule, "says"));
  import_open (run->job->import, program_act_text (run, a), "%s", text);
}

/* { "expects": option, "words": "a b", "taken": "a" }: a text that is none of the words, in any case, is told
 * to be taken as that. */
static void
expect (ProgramRun *run, ProgramAct *a)
{
  const char *name = program_act_text (run, a), *text = option_text (run->job, name);
  g_autofree char *small = text ? g_ascii_strdown (text, -1) : NULL,
                  *known = g_ascii_strdown (ls_json_text (a->rule, "words"), -1);
  if (small && !ls_is_one_of (small, known))
    import_unknown (run->job->import, "%s %s: assumed to be %s", name, text, ls_json_text (a->rule, "taken"));
}

/* What rows of the model, or of the strategy, say `otherwise`. */
static void
set_otherwise (ProgramRun *run, ProgramAct *a)
{
  option_set_defaults (run->job,
                       strcmp (a->what->valuestring, "model") == 0 ? OPTION_MODEL : OPTION_STRATEGY);
}

/* Ranks have pieces of the matrices that it needs: Megatron-LM's alone deal out whole ones. */
static bool
lacks_matrices (const LsStrategy *s, const char *ours)
{
  bool is_cut = ls_dp_traits (s->dp_kind)->is_fsdp
      || (s->dp_kind == LS_DP_DEEPSPEED && s->zero_stage != LS_ZERO_AUTO && s->zero_stage > 0);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsOptimizerKind) kind
      = is_cut && !ls_optimizer_is_adam (ours) ? ls_optimizer_load (ours, diags) : NULL;
  return kind && (ls_optimizer_needs (kind) & LS_NEEDS_MATRICES);
}

/* { "optimizer": expression, "momentum": of SGD, "by": option }: by its name in the program, behind what says
 * how data parallelism cuts it. One that is not known here is told as unknown; none: nothing is said. */
static void
set_optimizer (ProgramRun *run, ProgramAct *a)
{
  g_auto (ProgramValue) momentum = program_value_at (run, a->rule, "momentum");
  const ProgramMap *map = program_doors->map_get ("optimizers");
  const char *theirs = program_act_value (run, a)->text, *by = ls_json_text (a->rule, "by"),
             *ours = !theirs                    ? NULL
      : g_ascii_strcasecmp (theirs, "sgd") == 0 ? (momentum.number > 0 ? "sgd-momentum" : "sgd")
      : map ? cJSON_GetStringValue (cJSON_GetObjectItem (program_section (map, "tables"), theirs))
            : NULL;
  LsImport *import = run->job->import;
  by = by ? by : "--";
  if (!theirs)
    return;
  if (!ours)
    import_unknown (import, "%s %s: memory and time are those of Adam", by, theirs);
  else if (lacks_matrices (&import->strategy, ours))
    import_unknown (
        import,
        "%s %s: how it works on shards of matrices is not known here; memory and time are those of "
        "Adam",
        by, theirs);
  else if (import->strategy.memory.offload != LS_OFFLOAD_NONE && !ls_optimizer_is_adam (ours))
    import_unknown (import, "%s %s: on the host memory and time are those of Adam", by, theirs);
  else
    import_set (import, ls_strategy_fields, "optimizer", ours, by);
  if (ours && g_ascii_strncasecmp (theirs, "paged", 5) == 0)
    import_infer (import, "%s %s: its pages stay on the GPU", by, theirs);
}

/* { "called": expression }: what the program is called. */
static void
set_name (ProgramRun *run, ProgramAct *a)
{
  if (program_act_value (run, a)->text)
    run->job->import->made.program = g_intern_string (a->value.text);
}

/* { "copies": expression, "times": expression }: of the model, and micro-batches of each in a step, which set
 * GPUs and the batch of a step; copies 0: not known, GPUs neither. */
static void
set_batch (ProgramRun *run, ProgramAct *a)
{
  LsImport *import = run->job->import;
  const LsStrategy *s = &import->strategy;
  guint64 copies = program_whole (program_act_value (run, a)),
          times = program_whole_at (run, a->rule, "times"), of_model = (guint64) s->tp * s->pp * s->cp;
  if (import_is_given (import, "gpus"))
    copies = s->gpus / of_model;
  if (copies > 0 && copies * of_model <= G_MAXUINT32)
    import_set_strategy_count (import, "gpus", copies * of_model, "*");
  if (copies > 0 && times > 0 && import_has (import, ls_strategy_fields, "micro_batch")
      && !import_has (import, ls_strategy_fields, "global_batch")) {
    import_set_strategy_count (import, "global_batch", copies * times * s->micro_batch, "--");
    import_follows_gpus (import, "global_batch");
  }
}

/* { "word": name, "decides": KEY }: a variable of the file says a key of the strategy. { "notes": option }:
 * one that another file gives, as what `by` of rules behind names. */
static void
note_word (ProgramRun *run, ProgramAct *a)
{
  import_note_word (run->job->import, program_act_text (run, a), ls_json_text (a->rule, "decides"));
}

static void
set_gpus (ProgramRun *run, ProgramAct *a)
{
  run->job->gpus = program_whole (program_act_value (run, a));
}

/* { "model_file": true }: a model's own file behind the first, ours or the config.json of Hugging Face;
 * 'first': the one behind it has to be such, of which notes are told. */
static void
read_model_file (ProgramRun *run, ProgramAct *a)
{
  LsImport *import = run->job->import;
  bool is_first = cJSON_IsString (a->what);
  const guint n = is_first ? MIN (2, run->files->n) : run->files->n;
  for (guint i = 1; i < n && !run->is_refused; i++) {
    const ImportFile *file = &run->files->files[i];
    g_autoptr (LsDiagList) none = ls_diag_list_new ();
    g_autoptr (GPtrArray) notes = is_first ? g_ptr_array_new_with_free_func (g_free) : NULL;
    bool is_json = is_first || file->text[strspn (file->text, " \t\r\n")] == '{';
    g_autoptr (LsJsonDoc) doc
        = is_json ? ls_json_doc_parse (file->text, file->n, file->path, is_first ? run->diags : none) : NULL;
    bool is_model = doc && (is_first || ls_is_hf_config (doc) || strstr (file->text, "lockstep.model/"));
    LsModel m;
    run->is_refused = is_model ? !ls_model_read (doc, &m, notes, run->diags) : is_first;
    if (!is_model || run->is_refused)
      continue;
    import_model (import, &m, file->path);
    import_use_file (file);
    for (guint k = 0; notes && k < notes->len; k++)
      import_infer (import, "%s: %s", file->path, (const char *) notes->pdata[k]);
    ls_model_clear (&m);
  }
}

/* "lacking": the files are not all of a job. */
static void
refuse (ProgramRun *run, ProgramAct *a)
{
  bool is_lacking = strcmp (a->action, "lacking") == 0;
  const char *said = ls_json_text (a->rule, "hint");
  g_autofree char *hint = said ? program_fill (run, said) : NULL;
  ls_file_diag (run->diags, is_lacking ? LS_ERROR_INPUT : LS_ERROR_UNSUPPORTED, run->path, hint, "%s",
                program_act_text (run, a));
  run->is_refused = true;
}

/* A job that learns from something else than the next token. */
static void
refuse_task (ProgramRun *run, ProgramAct *a)
{
  import_refuse_task (run->path, run->diags, "%s", program_act_text (run, a));
  run->is_refused = true;
}

/* { "read": true }, not within a rule: what options say by themselves, of the other program's where they
 * become those. Without such a rule that is before all. */
static void
read_options (ProgramRun *run, ProgramAct *a)
{
  LaunchJob *job = run->says && !run->map->has_beside ? &run->other : run->job;
  g_hash_table_unref (run->job->open);
  job->gpus = run->job->gpus;
  option_read_all (job);
  run->job->open = run->other.open = job->open;
  run->is_read = true;
}

/* { "stages_conflict": text }: what a file says of its stages and the layers of each does not fit their
 * number: a conflict, or, where one of these was given beside the file, left out and said so. */
static void
stages_conflict (ProgramRun *run, ProgramAct *a)
{
  static const char *const stages[] = { "pp", "vpp", "layers_per_chunk", "schedule" };
  bool is_given = false;
  for (guint i = 0; i < G_N_ELEMENTS (stages); i++)
    is_given = is_given || import_is_given (run->job->import, stages[i]);
  if (is_given)
    import_infer (run->job->import, "stages as given together with the file; left out: %s", a->text);
  else
    import_conflict (run->job->import, "%s", a->text);
}

/* { "forget": KEY }: what other options of the job make idle is not said, unless it was given. */
static void
forget (ProgramRun *run, ProgramAct *a)
{
  if (!import_is_given (run->job->import, a->text))
    g_hash_table_remove (run->job->import->strategy_said, a->text);
}

/* { "fixed": KEY }: it stays as it is, as one that the user gave. */
static void
fix (ProgramRun *run, ProgramAct *a)
{
  const LsField *f = ls_field_find (ls_strategy_fields, a->what->valuestring);
  if (f)
    g_hash_table_add (run->job->import->given, (gpointer) f->key);
}

/* What a member is: an expression, a text with expressions in braces, a text, an option, a key of ours, a
 * program, one that reads the job, a map, a name, a list of rules; the others are objects of
 * values, of options with values, of cases with options of the other program, and those whose members are
 * acted on one after the other: of values, of keys of ours, of names, of options of the other program, of
 * these with options, of paths, of options with names that they have today, and of options with values or
 * texts. */
typedef enum {
  AS_VALUE,
  AS_TEMPLATE,
  AS_TEXT,
  AS_OPTION,
  AS_KEY,
  AS_TABLE,
  AS_READER,
  AS_MAP,
  AS_LET,
  AS_RULES,
  AS_VALUES,
  AS_BASE,
  AS_CASES,
  AS_MEMBERS,
  AS_MODEL,
  AS_STRATEGY,
  AS_LETS,
  AS_THEIRS,
  AS_THEIR_OPTIONS,
  AS_PATHS,
  AS_RENAMED,
  AS_OPTION_VALUES,
  AS_OPTION_TEXTS
} As;

/* Which maps have such rules: those whose options become another program's, or name what is beside it; those
 * that are not around a Trainer, which see no files; those that unwrap files, alone, or too. */
enum { OF_JOBS = 0, OF_OTHER = 1, OF_FILES = 2, OF_WRAPPERS = 4, OF_ALL = 8 };

static const struct {
  const char *key;
  As as;              /* what its member is */
  ProgramAction *act; /* NULL: one of those below is called with what it says; or rules are within it */
  guint maps;         /* OF_ ... */
  const char *more;   /* members that it has besides, "NAME=LETTER", or "NAME?LETTER", which it may lack */
  /* What follows, is not simulated, matters to nothing, contradicts itself. */
  void (*report) (LsImport *import, const char *format, ...) G_GNUC_PRINTF (2, 3);
  void (*set_text) (LsImport *import, const char *text); /* not of a value that is none */
  void (*set_count) (LsImport *import, guint64 n);
} actions[] = {
  { "let", AS_LETS, let, OF_ALL },
  { "table", AS_VALUES, look_up, OF_ALL, "of=v gives=l" },
  { "list", AS_VALUE, make_list, OF_JOBS, "of=v gives=l" },
  { "take", AS_VALUE, program_take_part },
  { "lift", AS_TEXT, program_lift },
  { "put", AS_MEMBERS, program_put },
  { "put_text", AS_MEMBERS, program_put },
  { "put_said", AS_VALUE, program_put_said, OF_JOBS, "switches?v" },
  { "put_pairs", AS_TEXT, program_put_pairs },
  { "lay_files", AS_TEMPLATE, program_lay_files, OF_JOBS, "hint?x" },
  { "lies_on", AS_VALUE, program_lie_on },
  { "configures", AS_MAP, program_configure, OF_JOBS, "told?V" },
  { "drop", AS_TEXT, program_drop_members },
  { "part", AS_TEXT, program_run_part, OF_ALL, "of_map?m own?v but?x told?V" },
  { "lacks", AS_TEMPLATE, program_lack, OF_JOBS, "says=t" },
  { "note", AS_TEMPLATE, program_note },
  { "release", AS_TEXT, take_release },
  { "stages_conflict", AS_TEMPLATE, stages_conflict },
  { "model", AS_MODEL, set_key, OF_JOBS, "by?t" },
  { "strategy", AS_STRATEGY, set_key, OF_JOBS, "by?t" },
  { "default", AS_STRATEGY, set_default },
  { "usual", AS_MODEL, set_usual, OF_JOBS, "why?x" },
  { "assumes", AS_OPTION_VALUES, program_assume },
  { "renames", AS_RENAMED, rename_option },
  { "tells", AS_OPTION_TEXTS, tell },
  { "base", AS_BASE, program_base, OF_JOBS, "said?v" },
  { "translate", AS_TABLE, program_translate, OF_OTHER | OF_FILES },
  { "say", AS_THEIRS, program_say, OF_OTHER, "said?v" },
  { "say_option", AS_THEIR_OPTIONS, program_say_option, OF_OTHER },
  { "say_usual", AS_THEIRS, program_assume, OF_OTHER },
  { "say_default", AS_THEIRS, program_assume, OF_OTHER, "unless?x why?x" },
  { "switch", AS_OPTION, program_switch, OF_OTHER, "cases=c" },
  { "deepspeed", AS_VALUE, program_deepspeed, OF_OTHER | OF_FILES, "at?x" },
  { "python", AS_VALUE, program_python, OF_OTHER | OF_FILES, "name=x to=x" },
  { "read_as", AS_READER, program_read_as, OF_OTHER | OF_FILES, "told?V" },
  { "beside", AS_TABLE, program_beside, OF_JOBS, "file=v gives=l template?v" },
  { "fill", AS_THEIRS, program_fill_open, OF_JOBS, "said?v" },
  { "notes", AS_TEXT, note_word },
  { "called", AS_VALUE, set_name },
  { "move", AS_PATHS, program_move },
  { "inferred", AS_TEMPLATE, .report = import_infer },
  { "unknown", AS_TEMPLATE, .report = import_unknown },
  { "ignored", AS_TEMPLATE, .report = import_ignore },
  { "conflict", AS_TEMPLATE, .report = import_conflict },
  { "open", AS_KEY, leave_open, OF_JOBS, "says=t" },
  { "expects", AS_OPTION, expect, OF_JOBS, "words=x taken=x" },
  { "optimizer", AS_VALUE, set_optimizer, OF_JOBS, "by?x momentum?v" },
  { "software", AS_VALUE, .set_text = import_set_software },
  { "positions", AS_VALUE, .set_count = import_positions },
  { "model_of_name", AS_VALUE, .set_text = import_model_of_name },
  { "copies", AS_VALUE, set_batch, OF_JOBS, "times=v" },
  { "follows_gpus", AS_KEY, .set_text = import_follows_gpus },
  { "word", AS_TEMPLATE, note_word, OF_JOBS, "decides=k" },
  { "adds", AS_OPTION_VALUES, program_add_options },
  { "elsewhere", AS_TEMPLATE, program_leave_more },
  { "in_file", AS_OPTION, program_take_file },
  { "arguments", AS_TEXT, program_take_arguments, OF_JOBS, "lifts=x says=x" },
  { "golden", AS_TEXT, program_take_golden, OF_JOBS, "bytes=x" },
  { "gpus", AS_VALUE, set_gpus },
  { "otherwise", AS_TEXT, set_otherwise },
  { "forget", AS_KEY, forget },
  { "unset", AS_TEXT, program_unset },
  { "fixed", AS_KEY, fix },
  { "model_file", AS_VALUE, read_model_file, OF_FILES },
  { "read", AS_VALUE, read_options, OF_FILES },
  { "refuse", AS_TEMPLATE, refuse, OF_ALL, "hint?t" },
  { "lacking", AS_TEMPLATE, refuse, OF_ALL, "hint?t" },
  { "refuse_task", AS_TEMPLATE, refuse_task },
  { "write", AS_TEMPLATE, program_write_line, OF_WRAPPERS },
  { "tell", AS_TEMPLATE, program_tell_once, OF_WRAPPERS },
  { "export", AS_VALUE, program_write_variable, OF_WRAPPERS, "as=v" },
  { "variable", AS_VALUE, program_write_variable, OF_WRAPPERS, "as=v" },
  { "command", AS_TEXT, program_write_command, OF_WRAPPERS },
  { "container", AS_RULES, program_write_once, OF_WRAPPERS },
  { "rules", AS_RULES, NULL, OF_ALL, "else?r" },
};

/* Which action a rule has, and the member of it; *ret_what NULL: none. */
static guint
action_of (const cJSON *rule, const cJSON **ret_what)
{
  guint i = 0;
  while (i < G_N_ELEMENTS (actions) && !(*ret_what = cJSON_GetObjectItemCaseSensitive (rule, actions[i].key)))
    i++;
  return i;
}

/* --- running -------------------------------------------------------------------------------------------- */

/* To a function that takes what it says. */
static void
pass_on (ProgramRun *run, guint action, ProgramAct *a)
{
  LsImport *import = run->job->import;
  const char *text = a->text ? a->text : program_act_value (run, a)->text;
  if (actions[action].report)
    actions[action].report (import, "%s", text);
  else if (actions[action].set_count)
    actions[action].set_count (import, program_whole (&a->value));
  else if (text)
    actions[action].set_text (import, text);
}

static void
act_on (ProgramRun *run, guint action, const cJSON *rule, const cJSON *what)
{
  As as = actions[action].as;
  bool is_option = as == AS_OPTION_VALUES || as == AS_OPTION_TEXTS;
  const char *text = cJSON_GetStringValue (what);
  g_autofree char *option = is_option ? program_option (run->map, what->string) : NULL;
  ProgramAct a = { .rule = rule,
                   .what = what,
                   .action = actions[action].key,
                   .name = option ? option : what->string,
                   .text = !text                                   ? NULL
                       : as == AS_TEMPLATE                         ? program_fill (run, text)
                       : as == AS_OPTION || as == AS_THEIR_OPTIONS ? program_option_of (run, text)
                       : as != AS_VALUE && as < AS_RULES           ? g_strdup (text)
                                                                   : NULL,
                   .value = program_none () };
  if (actions[action].act)
    actions[action].act (run, &a);
  else
    pass_on (run, action, &a);
  g_free (a.text);
  program_value_clear (&a.value);
}

static bool
act (ProgramRun *run, const cJSON *rule, bool is_its)
{
  const cJSON *what = NULL, *one;
  guint i = action_of (rule, &what);
  bool is_rules = what && !actions[i].act && actions[i].as == AS_RULES;
  if (!what || (!is_its && !is_rules))
    return true;
  if (is_rules)
    return program_doors->run_rules (run, is_its ? what : cJSON_GetObjectItemCaseSensitive (rule, "else"));
  if (actions[i].as < AS_MEMBERS)
    act_on (run, i, rule, what);
  else
    cJSON_ArrayForEach (one, what)
      act_on (run, i, rule, one);

  return !run->is_refused;
}

static bool
holds (ProgramRun *run, const cJSON *rule)
{
  const char *when = ls_json_text (rule, "when");
  return !when || program_holds (run, when);
}

/* "each" is a text. */
void
program_set_each (ProgramRun *run, const char *text)
{
  program_let (run, "each", program_text (text));
}

/* For each option of the job that the pattern fits, or, "once", the first of which the rule holds; "each" is
 * its name. */
static bool
run_each (ProgramRun *run, const cJSON *rule, const char *pattern)
{
  const GPtrArray *options = run->job->words->options;
  for (guint i = 0; i < options->len; i++) {
    const LaunchOption *o = options->pdata[i];
    if (!option_fits (pattern, o->name))
      continue;
    program_set_each (run, o->name);
    bool is_its = holds (run, rule);
    if (!act (run, rule, is_its))
      return false;
    if (is_its && cJSON_HasObjectItem (rule, "once"))
      return true;
  }
  return true;
}

/* Once for each of these options, which have blanks between, or for each word of the value of an expression,
 * between commas and blanks; "each" is it. */
static bool
run_words (ProgramRun *run, const cJSON *rule, const char *options, const char *expression)
{
  g_auto (ProgramValue) text = options ? program_text (options) : program_eval (run, expression);
  g_auto (GStrv) words = g_strsplit_set (text.text ? text.text : "", ", ", -1);
  bool ok = true;
  for (char **word = words; *word && ok; word++) {
    g_autofree char *one = options ? program_option (run->map, *word) : g_strdup (*word);
    program_set_each (run, one);
    ok = !**word || act (run, rule, holds (run, rule));
  }
  return ok;
}

/* Once for each node from one on, or for that alone, which is the tree meanwhile; "each" is its name. Not at
 * all where there is none. */
static bool
run_nodes (ProgramRun *run, const cJSON *rule, const cJSON *first, bool is_each)
{
  const cJSON *tree = run->tree;
  bool ok = true;
  for (const cJSON *one = first; one && ok; one = is_each ? one->next : NULL) {
    run->tree = one;
    program_set_each (run, one->string ? one->string : "");
    ok = act (run, rule, holds (run, rule));
  }
  run->tree = tree;
  return ok;
}

bool
program_run_rules (ProgramRun *run, const cJSON *rules)
{
  const cJSON *rule;
  cJSON_ArrayForEach (rule, rules) {
    const char *each = ls_json_text (rule, "each"), *options = ls_json_text (rule, "for"),
               *words = ls_json_text (rule, "each_of"), *members = ls_json_text (rule, "each_at"),
               *inside = ls_json_text (rule, "inside"), *json = ls_json_text (rule, "in_json");
    g_auto (ProgramValue) text = json ? program_eval (run, json) : program_none ();
    g_autoptr (cJSON) tree = text.text ? cJSON_Parse (text.text) : NULL;
    const cJSON *node = json ? tree
        : members || inside  ? program_node (run, members ? members : inside)
                             : NULL;
    bool is_each = members && (cJSON_IsObject (node) || cJSON_IsArray (node));
    bool ok = each                  ? run_each (run, rule, each)
        : json || members || inside ? run_nodes (run, rule, is_each ? node->child : node, is_each)
        : options || words          ? run_words (run, rule, options, words)
                                    : act (run, rule, holds (run, rule));
    if (!ok)
      return false;
  }
  return true;
}

/* --- looking at rules that run for nobody --------------------------------------------------------------- */

/* A name that rules behind may use. */
static void
name_value (ProgramRun *run, const char *name)
{
  program_let (run, name, program_none ());
}

static void
check_option (ProgramRun *run, const cJSON *node, const char *name)
{
  if (!program_names_option (run, name))
    ls_json_complain (run->check, node, "there is no option %s among the options", name);
}

static void
check_keys (ProgramRun *run, const cJSON *object, As as)
{
  const cJSON *one;
  cJSON_ArrayForEach (one, object) {
    bool is_model = as == AS_MODEL, is_theirs = as == AS_THEIRS || as == AS_THEIR_OPTIONS,
         has_option = as == AS_THEIR_OPTIONS || as == AS_RENAMED;
    bool is_known = is_model ? ls_field_find_value (ls_model_fields, one->string) != NULL
        : as == AS_STRATEGY  ? ls_field_find (ls_strategy_fields, one->string) != NULL
                             : true;
    if (!is_known)
      ls_json_complain (run->check, one, "there is no such key of a %s", is_model ? "model" : "strategy");
    if (is_theirs && run->theirs && !option_find (run->theirs, one->string))
      ls_json_complain (run->check, one, "there is no option %s of that program", one->string);
    if (as == AS_CASES && cJSON_IsObject (one))
      check_keys (run, one, AS_THEIRS);
    else if (as == AS_OPTION_VALUES || as == AS_OPTION_TEXTS || as == AS_BASE)
      check_option (run, one, one->string);
    if ((has_option || as == AS_PATHS) && !cJSON_IsString (one))
      ls_json_complain (run->check, one, "expected %s", has_option ? "an option" : "a path");
    else if (has_option)
      check_option (run, one, one->valuestring);
    else if (cJSON_IsString (one) && as != AS_OPTION_TEXTS && as != AS_PATHS)
      program_check_text (run, one, false);
    if (as == AS_LETS)
      name_value (run, one->string);
  }
}

/* Options of a command that names no configuration may become those of one. */
static void
check_name (ProgramRun *run, const cJSON *node, As as)
{
  const char *name = node->valuestring;
  bool is_there = g_strcmp0 (name, run->map->name) == 0 || program_table_find (name) != NULL
      || (as == AS_MAP && program_doors->map_get (name))
      || (as == AS_TABLE && run->theirs && strcmp (name, PROGRAM_CONFIGURATION) == 0);
  if (!is_there)
    ls_json_complain (run->check, node, "there is no program of that name");
}

/* A part of its own is looked at where rules run it, but not within itself. */
static void
check_part (ProgramRun *run, const cJSON *rule, const char *name)
{
  const cJSON *part = program_entry (run->map, "parts", name);
  if (ls_json_text (rule, "of_map") || !run->parts)
    return;
  if (!part)
    ls_json_complain (run->check, rule, "there is no part of that name");
  else if (g_hash_table_lookup (run->parts, name) == NULL) {
    g_hash_table_insert (run->parts, part->string, part->string);
    program_check_rules (run, part);
    g_hash_table_insert (run->parts, part->string, NULL);
  }
}

static void
check_member (ProgramRun *run, const cJSON *node, As as)
{
  bool is_list = as == AS_RULES, is_object = as >= AS_VALUES,
       is_text = !is_list && !is_object && as != AS_VALUE;
  if ((is_list && !cJSON_IsArray (node)) || (is_object && !cJSON_IsObject (node))
      || (is_text && !cJSON_IsString (node)))
    ls_json_complain (run->check, node, "expected %s",
                      is_list         ? "a list"
                          : is_object ? "an object"
                                      : "a text");
  else if (is_list)
    program_check_rules (run, node);
  else if (is_object)
    check_keys (run, node, as);
  else if (as == AS_OPTION)
    check_option (run, node, node->valuestring);
  else if (as == AS_KEY) {
    if (!ls_field_find (ls_strategy_fields, node->valuestring)
        && !ls_field_find_value (ls_model_fields, node->valuestring))
      ls_json_complain (run->check, node, "there is no such key of a strategy or a model");
  } else if (as == AS_TABLE || as == AS_READER || as == AS_MAP)
    check_name (run, node, as);
  else if (as == AS_LET)
    name_value (run, node->valuestring);
  else if (cJSON_IsString (node) && (as == AS_VALUE || as == AS_TEMPLATE))
    program_check_text (run, node, as == AS_TEMPLATE);
}

/* What "NAME=LETTER NAME?LETTER" has for a member of a rule; -1: nothing. members NULL: there are none. */
static gint
as_of (const char *members, const char *key)
{
  static const char letters[] = "vtxokTRmlrV c";
  const gsize n = strlen (key);
  for (const char *p = members; p && *p; p += *p == ' ') {
    if (strncmp (p, key, n) == 0 && (p[n] == '=' || p[n] == '?'))
      return (gint) (strchr (letters, p[n + 1]) - letters);
    p += strcspn (p, " ");
  }
  return -1;
}

/* Of a rule that is run once for each of several. */
static void
check_loop (ProgramRun *run, const cJSON *rule)
{
  const char *each = ls_json_text (rule, "each"), *options = ls_json_text (rule, "for");
  g_auto (GStrv) names = program_words (options, " ");
  if (each || options || ls_json_text (rule, "each_of") || ls_json_text (rule, "each_at"))
    name_value (run, "each");
  if (each)
    g_hash_table_add (run->named, g_strdup (each));
  for (char **name = names; *name; name++)
    check_option (run, cJSON_GetObjectItemCaseSensitive (rule, "for"), *name);
}

/* That maps of this kind have such rules. */
static void
check_action (ProgramRun *run, const cJSON *rule, guint action)
{
  const ProgramMap *map = run->map;
  guint maps = actions[action].maps;
  if (!(maps & OF_ALL) && !program_section (map, "unwraps") != !(maps & OF_WRAPPERS))
    ls_json_complain (run->check, rule, "a map that unwraps files, and no other, has such rules");
  if (maps & OF_OTHER && !map->is_dialect && !map->has_beside)
    ls_json_complain (run->check, rule, "its options become those of no other program");
  if (maps & OF_FILES && program_section (map, "around"))
    ls_json_complain (run->check, rule, "what is around a Trainer has no such rules");
}

static void
check_rule (ProgramRun *run, const cJSON *rule)
{
  static const char of_any[] = "when?v each_of?v once?v each?x for?x each_at?x inside?x in_json?v";
  const cJSON *what = NULL, *one;
  guint action = action_of (rule, &what);
  if (!what) {
    ls_json_complain (run->check, rule,
                      "a rule without an action: expected one of \"model\", \"strategy\", \"let\" ...");
    return;
  }
  check_action (run, rule, action);
  check_loop (run, rule);
  if (actions[action].act == make_list)
    name_value (run, "index");
  g_auto (GStrv) members = program_words (actions[action].more, " ");
  for (char **member = members; *member; member++) {
    char *mark = *member + strcspn (*member, "=?");
    bool is_free = *mark == '?';
    *mark = '\0';
    if (!is_free && !cJSON_GetObjectItemCaseSensitive (rule, *member))
      ls_json_complain (run->check, rule, "missing key \"%s\"", *member);
  }
  if (actions[action].act == program_run_part)
    check_part (run, rule, ls_json_text (rule, "part"));
  cJSON_ArrayForEach (one, rule) {
    gint as = strcmp (one->string, actions[action].key) == 0
        ? (gint) actions[action].as
        : MAX (as_of (actions[action].more, one->string), as_of (of_any, one->string));
    if (as >= 0)
      check_member (run, one, (As) as);
    else if (!g_str_has_prefix (one->string, "x-"))
      ls_json_complain (run->check, one, "\"%s\" has no such key \"%s\"", actions[action].key, one->string);
  }
}

void
program_check_rules (ProgramRun *run, const cJSON *rules)
{
  const cJSON *rule;
  cJSON_ArrayForEach (rule, rules)
    if (cJSON_IsObject (rule))
      check_rule (run, rule);
    else
      ls_json_complain (run->check, rule, "expected an object");
}
