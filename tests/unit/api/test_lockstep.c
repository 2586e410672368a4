/* Pins the public API through its headers alone: what can be asked is listed and can be set, requests give
 * answers in every form, which outlive them, and misuse by a user's data (not by a programmer) comes back as
 * an error with the documented code. Simulates the small job of tests/golden/data. */
#include "asked.h"

#define SMALL_JOB "model tiny cluster pair nodes 2 tp 2 pp 2"

static char *strategy; /* path of one */

/* --- what can be asked ---------------------------------------------------------------------------- */

static gboolean
is_topic (const char *name)
{
  guint n;
  const LsTopic *topics = ls_topics (&n);
  for (guint t = 0; t < n; t++)
    if (g_str_equal (topics[t].name, name))
      return TRUE;
  return FALSE;
}

static void
check_option (const LsCommand *command, const LsOption *o, GHashTable *seen)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsRequest) request = ls_request_new (command->name, NULL);
  ls_check_impl (g_hash_table_add (seen, (gpointer) o->key), __FILE__, __LINE__, "%s has two options %s",
                 command->name, o->key);
  ls_check_impl (*o->meaning && o->usually && (!o->topic || is_topic (o->topic)), __FILE__, __LINE__,
                 "%s of %s", o->key, command->name);
  LS_CHECK (o->flag || (o->topic && o->argument && !o->is_usual));
  LS_CHECK (!o->is_positional || o->argument);
  LS_CHECK (o->writes == LS_WRITES_NOTHING || o->argument);
  LS_CHECK (ls_request_set (request, o->key, o->argument ? "1" : NULL, &error));
  LS_CHECK_NO_ERROR (error);
}

/* All that the tables say is there, once, and can be set. */
static void
every_option_of_every_command_can_be_set (void)
{
  guint n_commands = 0;
  for (const LsCommand *const *c = ls_commands (); *c; c++) {
    g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
    guint n;
    const LsOption *options = ls_command_options (*c, &n);
    for (guint i = 0; i < n; i++)
      check_option (*c, &options[i], seen);
    LS_CHECK (ls_command_find ((*c)->name, NULL) == *c && *(*c)->line && *(*c)->usage && *(*c)->summary);
    LS_CHECK (((*c)->job == LS_JOB_NONE) == !g_hash_table_contains (seen, "micro_batch"));
    n_commands++;
  }
  LS_CHECK_INT (n_commands, ==, 21);
}

static void
all_knobs_of_a_job_are_options_of_run (void)
{
  guint n, n_knobs = 0, n_without_flag = 0;
  const LsOption *options = ls_command_options (ls_command_find ("run", NULL), &n);
  for (guint i = 0; i < n; i++) {
    n_knobs += options[i].topic != NULL;
    n_without_flag += !options[i].flag;
  }
  LS_CHECK_INT (n_knobs, >=, 95);
  LS_CHECK_INT (n_without_flag, >=, 13);
}

/* --- answers -------------------------------------------------------------------------------------- */

static void
a_job_gives_every_kind_of_result (void)
{
  g_autoptr (LsAnswer) answer = asked ("run", SMALL_JOB);
  if (!answer)
    return;
  const LsTextStyle ascii = { .is_ascii = TRUE };
  g_autofree char *text = ls_answer_format (answer, LS_FORM_TEXT, &ascii);
  g_autofree char *json = ls_answer_format (answer, LS_FORM_JSON, NULL);
  g_autofree char *notes = ls_answer_notes (answer), *warning = ls_answer_warning (answer);
  LS_CHECK (strstr (text, "tiny on 4 GPUs of pair") == text && g_str_is_ascii (text));
  LS_CHECK (strstr (json, "\"step_time_s\"") != NULL);
  g_autofree char *spans = ls_answer_format (answer, LS_FORM_CSV, NULL);
  LS_CHECK (g_str_has_prefix (spans, "rank,stream,name,"));
  LS_CHECK (g_str_has_prefix (notes, "no kernel of flat was measured"));
  LS_CHECK_STR (warning, "");
  LS_CHECK_INT (ls_answer_form (answer), ==, LS_FORM_TEXT);
  LS_CHECK (ls_answer_check (answer, NULL));
}

/* The page as a text is the file that "report" writes; an answer without a result has none. */
static void
a_page_is_what_report_writes (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = g_build_filename (g_get_tmp_dir (), "ls-test-page.html", NULL);
  g_autofree char *options = g_strdup_printf (SMALL_JOB " report %s", path);
  g_autofree char *written = NULL;
  g_autoptr (LsAnswer) answer = asked ("run", options), schema = asked ("schema", "name run");
  if (!answer || !schema)
    return;
  g_autofree char *page = ls_answer_page (answer, &error);
  LS_CHECK_NO_ERROR (error);
  LS_CHECK (g_file_get_contents (path, &written, NULL, NULL));
  remove (path);
  LS_CHECK_STR (page, written);
  LS_CHECK (ls_answer_page (schema, &error) == NULL);
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_USAGE));
}

static void
colour_is_used_only_on_request (void)
{
  g_autoptr (LsAnswer) answer = asked ("run", SMALL_JOB);
  if (!answer)
    return;
  const LsTextStyle style = { .has_color = TRUE };
  g_autofree char *plain = ls_answer_format (answer, LS_FORM_TEXT, NULL);
  g_autofree char *color = ls_answer_format (answer, LS_FORM_TEXT, &style);
  LS_CHECK (strchr (plain, '\033') == NULL);
  LS_CHECK (strchr (color, '\033') != NULL);
}

/* A request is a value: it is run again, and changed, and the first answer stays. */
static void
a_request_may_be_run_again (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsRequest) request = request_of ("run", SMALL_JOB, &error);
  g_autoptr (LsAnswer) first = ls_request_run (request, &error), second = ls_request_run (request, &error);
  LS_CHECK (ls_request_set (request, "micro-batch", "2", &error)
            && ls_request_set (request, "json", NULL, &error));
  g_autoptr (LsAnswer) third = ls_request_run (request, &error);
  LS_CHECK_NO_ERROR (error);
  if (!first || !second || !third)
    return;
  g_autofree char *a = ls_answer_format (first, LS_FORM_JSON, NULL),
                  *b = ls_answer_format (second, LS_FORM_JSON, NULL),
                  *c = ls_answer_format (third, LS_FORM_JSON, NULL);
  LS_CHECK_STR (a, b);
  LS_CHECK (strcmp (a, c) != 0);
  LS_CHECK_INT (ls_answer_form (third), ==, LS_FORM_JSON);
}

/* Options are set in any order, with dashes or underscores; the last value of one counts. A strategy is read
 * before what overrides it. */
static void
how_a_request_is_put_makes_no_difference (void)
{
  g_autofree char *late = g_strdup_printf (SMALL_JOB " micro-batch 2 strategy %s", strategy),
                  *early = g_strdup_printf ("strategy %s micro_batch 1 micro_batch 2 pp 2 tp 2 nodes 2 "
                                            "cluster pair model tiny",
                                            strategy);
  g_autoptr (LsAnswer) a = asked ("run", late), b = asked ("run", early);
  if (!a || !b)
    return;
  g_autofree char *x = ls_answer_format (a, LS_FORM_JSON, NULL),
                  *y = ls_answer_format (b, LS_FORM_JSON, NULL);
  LS_CHECK_STR (x, y);
  LS_CHECK (strstr (x, "--micro-batch 2") != NULL);
}

static void
what_does_not_fit_is_a_warning_unless_it_must (void)
{
#define LARGE_JOB SMALL_JOB " micro-batch 4096 global-batch 4096"
  g_autoptr (LsAnswer) answer = asked ("run", LARGE_JOB);
  if (!answer)
    return;
  g_autofree char *warning = ls_answer_warning (answer);
  LS_CHECK (g_str_has_prefix (warning, "does not fit: rank ") && strstr (warning, "\nlockstep memory"));
  LS_CHECK (ls_answer_check (answer, NULL));
  check_fails ("run", LARGE_JOB " require-fit -", LS_ERROR_NO_FIT);
}

static void
a_collective_gives_every_kind_of_result (void)
{
  g_autoptr (LsAnswer) answer = asked ("collective", "cluster pair op all-reduce min 1KiB max 4KiB");
  if (!answer)
    return;
  g_autofree char *text = ls_answer_format (answer, LS_FORM_TEXT, NULL),
                  *json = ls_answer_format (answer, LS_FORM_JSON, NULL),
                  *csv = ls_answer_format (answer, LS_FORM_CSV, NULL), *notes = ls_answer_notes (answer);
  LS_CHECK (g_str_has_prefix (text, "# all-reduce on 2 GPUs of pair, 1 node\n"));
  LS_CHECK (strstr (json, "\"busbw_GBps\"") != NULL);
  LS_CHECK (g_str_has_prefix (csv, "cluster,op,"));
  LS_CHECK_STR (notes, "");
}

/* --- errors --------------------------------------------------------------------------------------- */

static void
errors_carry_the_documented_codes (void)
{
  static const struct {
    const char *command, *options;
    LsErrorCode code;
  } cases[] = {
    { "runn", "tp 2", LS_ERROR_USAGE },
    { "run", "tp 2", LS_ERROR_USAGE }, /* no model */
    { "run", "tpp 2", LS_ERROR_USAGE },
    { "run", "json 2", LS_ERROR_USAGE },
    { "run", "model -", LS_ERROR_USAGE },
    { "run", SMALL_JOB " tp many", LS_ERROR_USAGE },
    { "run", SMALL_JOB " strategy no-such-strategy", LS_ERROR_INPUT },
    { "run", SMALL_JOB " tp 3", LS_ERROR_CONFLICT },
    { "run", SMALL_JOB " emit nemo", LS_ERROR_USAGE },
    { "sweep", "slice 2x2", LS_ERROR_USAGE },        /* of a job, but a sweep has it not */
    { "sweep", SMALL_JOB " mpi -", LS_ERROR_USAGE }, /* without a team */
    { "memory", SMALL_JOB " json - csv -", LS_ERROR_USAGE },
    { "memory", SMALL_JOB " rank -1", LS_ERROR_USAGE },
    { "list", "kind racks", LS_ERROR_USAGE },
    { "check", "file no/such/file.json", LS_ERROR_INPUT },
    { "validate", "cases no/such/file.csv", LS_ERROR_INPUT },
    { "collective", "cluster pair", LS_ERROR_USAGE },
    { "collective", "cluster pair op all-reduce min 8", LS_ERROR_USAGE },
    { "collective", "cluster nowhere op all-reduce", LS_ERROR_INPUT },
    { "collective", "compare no/such/file.csv", LS_ERROR_INPUT },
    { "collective", "cluster pair op all-reduce nodes 1 gpus 3", LS_ERROR_CONFLICT },
    { "collective", "cluster pair op all-reduce algorithm p2p", LS_ERROR_CONFLICT },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    check_fails (cases[i].command, cases[i].options, cases[i].code);
}

/* Before the job, which is wrong too. */
static void
outputs_are_checked_before_anything_else (void)
{
  check_fails ("run", "chrome-trace no/such/folder/t.json", LS_ERROR_IO);
  check_fails ("run", "chrome-trace a\nb.json", LS_ERROR_USAGE);
  check_fails ("run", "timeline step.pdf", LS_ERROR_USAGE);
  check_fails ("run", "timeline step.svg timeline step.pdf", LS_ERROR_USAGE);
  check_fails ("calibrate", "output mine.csv", LS_ERROR_USAGE);
  check_fails ("collective", "cluster pair op all-reduce plot table.pdf", LS_ERROR_USAGE);
  LS_CHECK (!g_file_test ("step.svg", G_FILE_TEST_EXISTS) && !g_file_test ("step.pdf", G_FILE_TEST_EXISTS));
}

/* The answer is there all the same, to be printed. */
static void
a_file_that_cannot_be_written_leaves_the_answer (void)
{
  g_autoptr (LsAnswer) answer = asked ("run", SMALL_JOB " csv /dev/full");
  g_autoptr (GError) error = NULL;
  LS_CHECK (answer && !ls_answer_check (answer, &error));
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_IO));
}

static void
before (void)
{
  strategy = g_build_filename (g_getenv ("LS_DATA_DIR"), "strategies", "ddp.json", NULL);
  ls_test_golden_data ();
}

static void
after (void)
{
  g_free (strategy);
}

LS_TEST_SUITE_WITH (before, after, LS_TEST (every_option_of_every_command_can_be_set),
                    LS_TEST (all_knobs_of_a_job_are_options_of_run),
                    LS_TEST (a_job_gives_every_kind_of_result), LS_TEST (a_page_is_what_report_writes),
                    LS_TEST (colour_is_used_only_on_request), LS_TEST (a_request_may_be_run_again),
                    LS_TEST (how_a_request_is_put_makes_no_difference),
                    LS_TEST (what_does_not_fit_is_a_warning_unless_it_must),
                    LS_TEST (a_collective_gives_every_kind_of_result),
                    LS_TEST (errors_carry_the_documented_codes),
                    LS_TEST (outputs_are_checked_before_anything_else),
                    LS_TEST (a_file_that_cannot_be_written_leaves_the_answer))
