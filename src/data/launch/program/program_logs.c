/* data/launch/program/program_logs.c — logs of programs: which lines say which numbers. */
#include <lockstep/error.h>
#include <math.h>
#include <string.h>

#include "base/order.h"
#include "data/jobs/job_files.h"
#include "data/launch/program/program_map.h"
#include "data/text/json_doc.h"

#define N_WARM_UP_LINES 1 /* the first line has what is done once: allocation, compilation, connections */
#define MAX_DIGITS      32
#define GIB             1073741824.0
#define MIB             1048576.0
#define MAX_BYTES       (1e6 * GIB) /* what a rank can hold: a larger number is of something else */

/* --- texts ------------------------------------------------------------------------------------------- */

/* The number behind such words before the end of a line of n bytes, "6,180" and "12.3K" too; NAN: there is
 * none. */
static double
number_behind (const char *line, gsize n, const char *words)
{
  static const char letters[] = "KMBT"; /* at the end of a number */
  const char *p = g_strstr_len (line, (gssize) n, words);
  char digits[MAX_DIGITS + 1], *end = NULL;
  gsize k = 0;
  if (!p)
    return NAN;
  p += strlen (words);
  while (p < line + n && *p == ' ')
    p++;
  for (; p < line + n && k < MAX_DIGITS && (g_ascii_isalnum (*p) || strchr ("+-.,", *p)) && *p; p++)
    if (*p != ',' || !g_ascii_isdigit (p[1]))
      digits[k++] = *p;
  digits[k] = '\0';
  double value = g_ascii_strtod (digits, &end);
  const char *letter = end > digits && *end && end[1] == '\0' ? strchr (letters, *end) : NULL;
  value *= letter ? pow (1000, (double) (letter - letters) + 1) : 1;
  return end > digits && isfinite (value) ? value : NAN;
}

static const char *
line_end (const char *line)
{
  const char *end = strchr (line, '\n');
  return end ? end : line + strlen (line);
}

/* Without what colours it on a terminal. Newly allocated. */
static char *
without_colours (const char *text)
{
  GString *out = g_string_new (NULL);
  for (const char *p = text; *p; p++)
    if (*p != '\033' || p[1] != '[')
      g_string_append_c (out, *p);
    else if (*(p += strcspn (p, "m\n")) == '\0')
      break;
  return g_string_free (out, FALSE);
}

double
log_number (const char *text, const char *words)
{
  const char *line = strstr (text, words);
  return line ? number_behind (line, (gsize) (line_end (line) - line), words) : NAN;
}

const char *
log_object_end (const char *object)
{
  int depth = 0;
  for (const char *p = object; *p; p++) {
    depth += *p == '{' ? 1 : *p == '}' ? -1 : 0;
    if (depth == 0)
      return p + 1;
  }
  return NULL;
}

/* --- marks -------------------------------------------------------------------------------------------- */

bool
program_has_marks (const char *text, gsize n, const char *marks)
{
  g_autofree char *word = g_malloc (strlen (marks) + 1);
  bool has_one = false;
  for (const char *p = marks; true; p++) {
    gsize k = 0;
    for (; *p && !strchr ("; ", *p); p++)
      word[k++] = *p == '~' ? ' ' : *p;
    word[k] = '\0';
    has_one = has_one || (k > 0 && g_strstr_len (text, (gssize) n, word));
    if (*p == '\0' || (*p == ';' && !has_one))
      return has_one;
    has_one = has_one && *p != ';';
  }
}

/* --- what numbers of a line are ----------------------------------------------------------------------- */

/* A line that has one of the first tells that its log is one. */
typedef enum {
  SECONDS,
  STEPS_PER_S,
  SEQUENCES_PER_S,
  TOKENS_RATE,
  MICRO_BATCH,
  GLOBAL_BATCH,
  N_TELLING,
  BATCH = N_TELLING,
  RUN_S,
  RUN_STEPS,
  FLOPS,
  TOKENS,
  ALLOCATED,
  RESERVED,
  N_AMOUNTS
} Amount;

/* Of several rows of one amount the first that a line has holds. TOKENS_RATE: tokens/s of a GPU too, from
 * which the time of a step follows. */
static const struct {
  const char *name;
  Amount amount;
  double unit;
} numbers[] = {
  { "milliseconds", SECONDS, 1e-3 },
  { "seconds", SECONDS, 1 },
  { "steps_per_s", STEPS_PER_S, 1 },
  { "sequences_per_s", SEQUENCES_PER_S, 1 },
  { "step_by_tokens_per_s_per_gpu", TOKENS_RATE, 1 },
  { "batch", BATCH, 1 },
  { "run_s", RUN_S, 1 },
  { "run_steps", RUN_STEPS, 1 },
  { "tflops_per_gpu", FLOPS, 1e12 },
  { "tokens_per_s_per_gpu", TOKENS, 1 },
  { "allocated_mib", ALLOCATED, MIB },
  { "allocated_gib", ALLOCATED, GIB },
  { "reserved_mib", RESERVED, MIB },
  { "reserved_gib", RESERVED, GIB },
  { "micro_batch", MICRO_BATCH, 1 },
  { "global_batch", GLOBAL_BATCH, 1 },
};

static gint
find_number (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    if (strcmp (numbers[i].name, name) == 0)
      return (gint) i;
  return -1;
}

/* --- checking a map ----------------------------------------------------------------------------------- */

/* What is wrong with a member of a kind of lines; NULL: nothing. */
static const char *
wrong_of (const cJSON *member)
{
  static const char *const words[] = { "has", "lacks", "says", NULL };
  bool is_word = g_strv_contains (words, member->string) || g_str_has_prefix (member->string, "x-"),
       is_list = cJSON_IsArray (member) && member->child && !is_word, are_texts = is_list;
  const cJSON *one;
  if (find_number (member->string) < 0 && !is_word)
    return "expected \"has\", \"lacks\", \"says\" or a number that lines of logs say";
  cJSON_ArrayForEach (one, member)
    are_texts = are_texts && cJSON_IsString (one);

  return cJSON_IsString (member) || are_texts
      ? NULL
      : "expected the text in front of the number, or a list of such texts";
}

void
program_check_logs (LsJsonCheck *check, const cJSON *logs)
{
  const cJSON *log, *line, *one;
  cJSON_ArrayForEach (log, logs) {
    const cJSON *lines = cJSON_GetObjectItemCaseSensitive (log, "lines");
    if (!ls_json_text (log, "what") || !cJSON_IsArray (lines))
      ls_json_complain (check, log, "expected \"what\", a text, and \"lines\", a list");
    cJSON_ArrayForEach (line, lines) {
      const char *wrong = NULL;
      if (!ls_json_text (line, "has"))
        ls_json_complain (check, line, "expected \"has\", texts that such a line has");
      else
        for (one = line->child; one && !wrong; one = one->next)
          if ((wrong = wrong_of (one)))
            ls_json_complain (check, one, "%s", wrong);
    }
  }
}

/* A log of a program: numbers of the time of its steps, of memory and batches. */
typedef struct {
  const ProgramMap *map;
  const cJSON *node; /* one of its `logs` */
} Log;

/* --- reading a log ------------------------------------------------------------------------------------ */

/* Adds what the line says to amounts, of which those above 0 are known, behind the first of the texts of each
 * that has one; whether it is of this kind. */
static bool
read_line (const cJSON *kind, const char *line, gsize n, double amounts[N_AMOUNTS])
{
  const char *lacks = ls_json_text (kind, "lacks");
  const cJSON *one;
  if (!program_has_marks (line, n, ls_json_text (kind, "has"))
      || (lacks && program_has_marks (line, n, lacks)))
    return false;
  cJSON_ArrayForEach (one, kind) {
    gint k = find_number (one->string);
    Amount amount = k < 0 ? N_AMOUNTS : numbers[k].amount;
    const cJSON *text = cJSON_IsArray (one) ? one->child : one;
    double value = 0;
    for (; k >= 0 && amounts[amount] == 0 && text && value == 0; text = text == one ? NULL : text->next)
      value = fmax (number_behind (line, n, text->valuestring), 0);
    if (value > 0)
      amounts[amount] = value * numbers[k].unit;
  }
  return true;
}

/* Calls for each line that is of a kind. */
static void
read_lines (const Log *log, const char *text, bool (*take) (const double *amounts, gpointer data),
            gpointer data)
{
  const cJSON *lines = cJSON_GetObjectItemCaseSensitive (log->node, "lines"), *kind;
  g_autofree char *plain = strchr (text, '\033') ? without_colours (text) : NULL;
  bool goes_on = true;
  for (const char *p = plain ? plain : text, *end; *p && goes_on; p = *end ? end + 1 : end) {
    double amounts[N_AMOUNTS] = { 0 };
    bool is_of_kind = false;
    end = line_end (p);
    cJSON_ArrayForEach (kind, lines)
      is_of_kind |= read_line (kind, p, (gsize) (end - p), amounts);

    goes_on = !is_of_kind || take (amounts, data);
  }
}

static bool
is_first (const double *amounts, gpointer is_its)
{
  guint i = 0;
  while (i < N_TELLING && amounts[i] <= 0)
    i++;
  *(bool *) is_its = i < N_TELLING;
  return i == N_TELLING;
}

/* Whether a text is a log of a program: a line says the time of a step, or its batch. What the whole lacks no
 * line has; colours may stand within it. */
static bool
find_log (const char *text, Log *ret_log)
{
  const cJSON *node, *kind;
  bool is_its = false;
  for (const ProgramAsked *a = program_doors->maps (); a->map; a++)
    cJSON_ArrayForEach (node, program_section (program_doors->map_get (a->map), "logs")) {
      bool may_be = false;
      *ret_log = (Log) { program_doors->map_get (a->map), node };
      cJSON_ArrayForEach (kind, cJSON_GetObjectItemCaseSensitive (node, "lines"))
        may_be = may_be || strchr (text, '\033')
            || program_has_marks (text, strlen (text), ls_json_text (kind, "has"));

      if (may_be)
        read_lines (ret_log, text, is_first, &is_its);
      if (is_its)
        return true;
    }
  return false;
}

const char *
import_log_what (const ImportFile *file)
{
  Log log;
  return find_log (file->text, &log) ? ls_json_text (log.node, "what") : NULL;
}

bool
import_is_log_of (const ImportFile *file, const char *map)
{
  Log log;
  return find_log (file->text, &log) && strcmp (log.map->name, map) == 0;
}

/* --- what a log says of its job ----------------------------------------------------------------------- */

/* The whole configuration, if it is printed: behind the first of these texts that is there. What Python
 * prints of a dictionary is made JSON. */
static void
add_printed (ProgramRun *run, const char *text, LaunchWords *words)
{
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  g_auto (GStrv) all = program_words (reads_text (run->file, "prints"), " ");
  const char *start = NULL;
  for (char **head = all; *head && !start; head++)
    start = strstr (text, g_strdelimit (*head, "~", ' '));
  start = start ? strchr (start, '{') : NULL;
  const char *end = start ? log_object_end (start) : NULL;
  g_autoptr (GString) json = g_string_new_len (start, end ? end - start : 0);
  if (json->len > 1 && strchr (json->str, '\'') && !strchr (json->str, '"'))
    g_strdelimit (json->str, "'", '"');
  g_string_replace (json, ": True", ": true", 0);
  g_string_replace (json, ": False", ": false", 0);
  g_string_replace (json, ": None", ": null", 0);
  g_autoptr (LsJsonDoc) doc
      = end ? ls_json_doc_parse_as (json->str, json->len, run->path, LS_JSON_BY_HAND, none) : NULL;
  if (!doc)
    return;
  cJSON *tree = cJSON_Duplicate (ls_json_doc_root (doc), true);
  program_shape (run, tree);
  launch_words_add_tree (words, tree);
  cJSON_Delete (tree);
}

/* "['dp_shard', 'tp'], [4, 2]": names, and the number of each. */
static void
add_pairs (const cJSON *options, const char *line, LaunchWords *words)
{
  const char *first = strstr (line, "['");
  g_auto (GStrv) parts = g_strsplit_set (first ? first : "", "[]", -1);
  if (g_strv_length (parts) < 4)
    return;
  g_auto (GStrv) names = g_strsplit (parts[1], ", ", -1), values = g_strsplit (parts[3], ", ", -1);
  for (guint i = 0; names[i] && i < g_strv_length (values); i++) {
    const char *option = ls_json_text (options, g_strstrip (g_strdelimit (names[i], "'", ' ')));
    if (option && g_ascii_strtoull (values[i], NULL, 10) > 0)
      launch_words_add_value (words, option, values[i]);
  }
}

/* What one kind of lines says: a value, or that which a pattern has in parentheses. */
static void
add_said (const cJSON *kind, const char *line, LaunchWords *words)
{
  const cJSON *one;
  cJSON_ArrayForEach (one, kind) {
    const char *said = cJSON_GetStringValue (one);
    g_autoptr (GMatchInfo) match = NULL;
    g_autoptr (GRegex) pattern
        = said && strchr (said, '(') ? g_regex_new (said, G_REGEX_RAW, G_REGEX_MATCH_DEFAULT, NULL) : NULL;
    g_autofree char *value = pattern && g_regex_match (pattern, line, G_REGEX_MATCH_DEFAULT, &match)
        ? g_match_info_fetch (match, 1)
        : NULL;
    if (strcmp (one->string, "pairs") == 0)
      add_pairs (one, line, words);
    else if (strcmp (one->string, "has") != 0 && (value || (said && !strchr (said, '('))))
      launch_words_add_value (words, one->string, value ? value : said);
  }
}

/* ------------------------ arguments ------------------------
 *       num_layers ...................................... 64
 *     -------------------- end of arguments --------------------- */

/* "  num_layers ....... 64", "  long_name_without_dots  False", with "0: " or "[default0]:" of a launcher in
 * front. */
static void
add_arguments (LaunchWords *words, const char *text, const cJSON *of)
{
  static const char argument[] = "\\A\\s*+(?:[^\\s:]*+:\\s*+)?+([A-Za-z0-9_]++)[ .]++(.*)";
  const char *head = strstr (text, reads_text (of, "prints"));
  g_autoptr (GRegex) pattern = g_regex_new (argument, G_REGEX_RAW | G_REGEX_DOTALL, 0, NULL);
  for (const char *p = head ? line_end (head) : NULL; p && *p == '\n';) {
    const char *end = line_end (++p);
    if (reads_text (of, "ends") && g_strstr_len (p, end - p, reads_text (of, "ends")))
      return;
    g_autoptr (GMatchInfo) match = NULL;
    if (g_regex_match_full (pattern, p, end - p, 0, G_REGEX_MATCH_DEFAULT, &match, NULL)) {
      g_autofree char *name = g_match_info_fetch (match, 1),
                      *value = g_strstrip (g_match_info_fetch (match, 2));
      launch_words_add_value (words, name, value);
    }
    p = end;
  }
}

void
program_log_options (ProgramRun *run, LaunchWords *words)
{
  g_autofree char *text = without_colours (run->text);
  const cJSON *kind;
  if (reads_text (run->file, "ends")) {
    add_arguments (words, text, run->file);
    return;
  }
  add_printed (run, text, words);
  for (const char *p = text, *end; *p; p = *end ? end + 1 : end) {
    end = line_end (p);
    cJSON_ArrayForEach (kind, reads_node (run->file, "lines")) {
      if (!program_has_marks (p, (gsize) (end - p), ls_json_text (kind, "has")))
        continue;
      g_autofree char *line = g_strndup (p, (gsize) (end - p));
      add_said (kind, line, words);
    }
  }
}

/* --- what it measured --------------------------------------------------------------------------------- */

typedef struct {
  double step_s;
  /* 0: the line does not say. Sequences of the step; FLOP/s and tokens/s of a GPU as the log counts them. */
  double batch, flops_per_gpu, tokens_per_s_per_gpu;
} LogStep;

/* Of one member of lines, where they say it; 0: none does. */
static double
median_of (const GArray *steps, gsize member)
{
  g_autoptr (GArray) values = g_array_new (FALSE, FALSE, sizeof (double));
  for (guint i = 0; i < steps->len; i++) {
    double value = G_STRUCT_MEMBER (double, &g_array_index (steps, LogStep, i), member);
    if (value > 0)
      g_array_append_val (values, value);
  }
  return values->len > 0 ? ls_median (&g_array_index (values, double, 0), values->len) : 0;
}

/* What is steady of them. */
static GArray *
steady_of (const GArray *lines, double batch)
{
  GArray *steady = g_array_new (FALSE, FALSE, sizeof (LogStep));
  for (guint i = lines->len > N_WARM_UP_LINES ? N_WARM_UP_LINES : 0; i < lines->len; i++)
    if (g_array_index (lines, LogStep, i).batch == batch)
      g_array_append_val (steady, g_array_index (lines, LogStep, i));
  if (steady->len >= 4)
    g_array_remove_range (steady, 0, steady->len / 2);
  if (steady->len == 0)
    g_array_append_val (steady, g_array_index (lines, LogStep, 0));
  return steady;
}

/* Sets what is measured from lines (LogStep): the median of the later half of those that have the batch of
 * the last one, without the first line of the log; of few, of all of them. A batch that is not that of the
 * job is a contradiction. What lines say of FLOP/s and tokens is the median of the same. */
static void
measure (const GArray *lines, LsImport *import)
{
  LsMeasured *m = &import->made.measured;
  m->n_lines = lines->len;
  if (lines->len == 0)
    return;
  double batch = g_array_index (lines, LogStep, lines->len - 1).batch;
  g_autoptr (GArray) steady = steady_of (lines, batch);
  m->n_steady = steady->len;
  m->step_s = median_of (steady, offsetof (LogStep, step_s));
  m->flops_per_gpu = median_of (steady, offsetof (LogStep, flops_per_gpu));
  m->tokens_per_s_per_gpu = median_of (steady, offsetof (LogStep, tokens_per_s_per_gpu));
  import_infer (import, "measured.iteration_s: the median of the last %u of %u lines that time iterations",
                m->n_steady, m->n_lines);
  bool is_other_job = import->departs != NULL; /* as it is asked for now, not as it was logged */
  if (batch > 0 && !is_other_job && import_has (import, ls_strategy_fields, "global_batch")
      && batch != import->strategy.global_batch)
    import_conflict (import, "the timed iterations have a global batch of %g, the arguments one of %u", batch,
                     import->strategy.global_batch);
}

typedef struct {
  LsImport *import;
  GArray *steps;          /* LogStep */
  const char *needs;      /* what rates of lines need to give a time, which is not said; NULL: nothing */
  double most[N_AMOUNTS]; /* of all lines so far; 0: none says it */
} Measuring;

/* Of a rate with three decimals the steps/s of the whole run: of its steps as logged, or of the only number
 * of them that has that rate. */
static double
exact_rate (double rate, const double most[N_AMOUNTS])
{
  const double off = 0.00051, run_s = most[RUN_S],
               exact = (run_s * off < 0.5 ? round (run_s * rate) : most[RUN_STEPS]) / run_s;
  return run_s > 0 && fabs (exact - rate) < off ? exact : rate;
}

/* Seconds of a step, or what it has over its rate; 0: the line says none, or what it follows from is not
 * known. */
static double
time_of (const double *amounts, Measuring *m)
{
  const LsImport *import = m->import;
  const LsStrategy *s = &import->strategy;
  double batch
      = import_has (import, ls_strategy_fields, "global_batch") ? s->global_batch : m->most[GLOBAL_BATCH],
      tokens
      = import_has (import, ls_strategy_fields, "gpus") ? batch * import->model.seq / MAX (1, s->gpus) : 0;
  const struct {
    Amount rate;
    double of_step;
    const char *needs;
  } rates[] = {
    { STEPS_PER_S, 1, NULL },
    { SEQUENCES_PER_S, batch, "sequences/s, which needs global_batch: it is not said" },
    { TOKENS_RATE, tokens, "tokens/s, which needs seq, global_batch and gpus: one of these is not said" },
  };
  guint i = 0;
  if (amounts[SECONDS] > 0)
    return amounts[SECONDS];
  while (i < G_N_ELEMENTS (rates) && amounts[rates[i].rate] <= 0)
    i++;
  if (i == G_N_ELEMENTS (rates))
    return 0;
  m->needs = rates[i].of_step > 0 ? m->needs : rates[i].needs;
  double rate = i == 0 ? exact_rate (amounts[STEPS_PER_S], m->most) : amounts[rates[i].rate],
         time = rates[i].of_step / rate;
  return isfinite (time) ? time : 0;
}

static void
keep_most (double *bytes, double said)
{
  if (said < MAX_BYTES)
    *bytes = MAX (*bytes, said);
}

static bool
take_line (const double *amounts, gpointer data)
{
  Measuring *m = data;
  for (guint i = 0; i < N_AMOUNTS; i++)
    m->most[i] = MAX (m->most[i], amounts[i]);
  const LogStep step = { time_of (amounts, m), amounts[BATCH], amounts[FLOPS], amounts[TOKENS] };
  if (step.step_s > 0)
    g_array_append_val (m->steps, step);
  keep_most (&m->import->made.measured.memory_bytes, amounts[ALLOCATED]);
  keep_most (&m->import->made.measured.reserved_bytes, amounts[RESERVED]);
  return true;
}

/* What a log says of its job. */
static void
set_batch (LsImport *import, const char *key, double said, guint32 known)
{
  if (said < 1 || said > G_MAXUINT32 || import->departs)
    return;
  if (!import_has (import, ls_strategy_fields, key)) {
    import_note_word (import, key, key);
    import_set_strategy_count (import, key, (guint64) said, key);
  } else if (known != said)
    import_conflict (import, "the log says %s %g, the job %u", key, said, known);
}

bool
import_measure_log (const char *coloured, LsImport *import)
{
  g_autofree char *text = without_colours (coloured);
  Log log;
  if (!find_log (text, &log))
    return false;
  g_autoptr (GArray) steps = g_array_new (FALSE, FALSE, sizeof (LogStep));
  Measuring m = { .import = import, .steps = steps };
  const cJSON *kind;
  read_lines (&log, text, take_line, &m);
  set_batch (import, "micro_batch", m.most[MICRO_BATCH], import->strategy.micro_batch);
  set_batch (import, "global_batch", m.most[GLOBAL_BATCH], import->strategy.global_batch);
  if (m.needs)
    import_infer (import, "the time of a step follows from its %s", m.needs);
  measure (steps, import);
  cJSON_ArrayForEach (kind, cJSON_GetObjectItemCaseSensitive (log.node, "lines")) {
    const char *says = ls_json_text (kind, "says");
    const char *has = ls_json_text (kind, "has");
    if (says && program_has_marks (text, strlen (text), has))
      import_infer (import, "%s", says);
  }
  return true;
}

bool
import_log_alone (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  const ImportFile *file = &files->files[0];
  Log log;
  if (!find_log (file->text, &log))
    return ls_file_diag (diags, LS_ERROR_INPUT, file->path, NULL,
                         "this log has no line of a step, nor what it says when it starts");
  import->made.program = log.map->program;
  import_measure_log (file->text, import);
  import_unknown (import, "the model: %s names none here; the files of its job may stand in front of it",
                  ls_json_text (log.node, "what"));
  return true;
}
