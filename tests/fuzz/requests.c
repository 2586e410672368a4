/* Pins: whatever is asked, in whatever launch file or cluster, with options of whatever value, it ends within
 * seconds in an answer or in an error that says why, in UTF-8.
 *
 *     requests CORPUS FOLDER...     under LS_DATA_DIR; folders of launch files, which may be missing
 *
 * A request is drawn from its seed: a command, a cluster, few GPUs, options of the command; and of a third each a
 * launch file with some of its values or bytes changed, changes of the cluster, more options. LS_CASES=N: how
 * many (200), from LS_FUZZ_FIRST on. LS_FUZZ_SEED=N: only this one, which is printed with its file. Requests run
 * in a child, and where it dies the next ones in another; a failure names the seed and the request.
 * LS_FUZZ_SECONDS=N: of processor time that each may take (20). LS_FUZZ_COMMAND=import: launch files alone, for
 * one command. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cjson/cJSON.h>
#include <glib/gstdio.h>

#include <lockstep/lockstep.h>

#include "mutate.h"

#define MOST_TEXT  (1 << 16)
#define MOST_INPUT (100 << 10) /* of a launch file: longer ones are logs of hours */
#define LAUNCH     "=== launch/"

/* What a child says while it runs. */
typedef struct {
  guint32 seed;
  guint n_answers, n_errors[LS_ERROR_STOPPED + 1];
  char request[MOST_TEXT];
} Told;

typedef struct {
  char *name, *text;
  gsize n;
} Input;

typedef struct {
  GRand *rand;
  LsRequest *request;
  GString *line;  /* as a command line                */
  GPtrArray *set; /* keys, each at most once          */
  char *file;     /* in which what is mutated is kept */
} Draw;

static Told *told;
static GArray *inputs; /* Input */
static char *folder;

/* --- launch files --------------------------------------------------------------------------------- */

static void
add_input (const char *name, const char *text, gsize n)
{
  if (n == 0 || n > MOST_INPUT)
    return;
  Input input = { g_strdup (name), g_memdup2 (text, n), n };
  g_array_append_val (inputs, input);
}

static void
add_corpus (const char *path)
{
  g_autofree char *text = NULL;
  if (!g_file_get_contents (path, &text, NULL, NULL))
    g_error ("%s: cannot be read", path);
  for (char *at = strstr (text, LAUNCH); at; at = strstr (at, LAUNCH)) {
    char *name = at + strlen (LAUNCH), *begin = strchr (name, '\n') + 1, *end = strstr (begin, "\n=== ");
    g_autofree char *own = g_strndup (name, strcspn (name, " \n"));
    if (!strstr (name, " hex\n") || strstr (name, " hex\n") > begin)
      add_input (own, begin, end ? (gsize) (end + 1 - begin) : strlen (begin));
    at = begin - 1;
  }
}

static int
by_name (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *) a, *(const char *const *) b);
}

/* In the order of their names. */
static void
each_file (const char *path, void (*use) (const char *path))
{
  g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  for (const char *name = dir ? g_dir_read_name (dir) : NULL; name; name = g_dir_read_name (dir))
    g_ptr_array_add (names, g_strdup (name));
  g_ptr_array_sort (names, by_name);
  for (guint i = 0; i < names->len; i++) {
    g_autofree char *own = g_build_filename (path, names->pdata[i], NULL);
    use (own);
  }
}

static void
add_path (const char *path)
{
  static const char *const others[] = { ".md", ".csv", ".gz", ".xml", NULL };
  g_autofree char *text = NULL, *name = g_path_get_basename (path);
  gsize n = 0;
  for (const char *const *other = others; *other; other++)
    if (g_str_has_suffix (path, *other))
      return;
  if (g_file_test (path, G_FILE_TEST_IS_DIR))
    each_file (path, add_path);
  else if (g_file_get_contents (path, &text, &n, NULL))
    add_input (name, text, n);
}

/* --- clusters ------------------------------------------------------------------------------------- */

typedef struct {
  char *name;
  GPtrArray *keys; /* of its values that have a number: "node.gpus=%s" */
} Shipped;

static GArray *clusters; /* Shipped */

static void
add_keys (GPtrArray *keys, const char *above, const cJSON *object)
{
  for (const cJSON *value = object->child; value; value = value->next) {
    g_autofree char *key
        = *above ? g_strdup_printf ("%s.%s", above, value->string) : g_strdup (value->string);
    const char *text = cJSON_IsString (value) ? value->valuestring : "";
    if (cJSON_IsObject (value))
      add_keys (keys, key, value);
    else if (cJSON_IsNumber (value) && value->valuedouble == floor (value->valuedouble))
      g_ptr_array_add (keys, g_strconcat (key, "=%s", NULL));
    else if (g_ascii_isdigit (*text) && strlen (text) < 12)
      g_ptr_array_add (keys, g_strconcat (key, "=%s", text + strspn (text, "0123456789."), NULL));
  }
}

static void
add_cluster (const char *name, const cJSON *cluster)
{
  Shipped shipped = { g_strdup (name), g_ptr_array_new () };
  add_keys (shipped.keys, "", cluster);
  g_ptr_array_add (shipped.keys, (gpointer) "nodes=%s");
  g_array_append_val (clusters, shipped);
}

static void
add_clusters (const char *path)
{
  g_autofree char *text = NULL;
  g_file_get_contents (path, &text, NULL, NULL);
  cJSON *file = cJSON_Parse (text ? text : ""), *members = cJSON_GetObjectItem (file, "members");
  for (const cJSON *member = members ? members->child : NULL; member; member = member->next)
    add_cluster (member->string, member);
  if (file && !members)
    add_cluster (cJSON_GetStringValue (cJSON_GetObjectItem (file, "name")), file);
  cJSON_Delete (file);
}

/* --- a request ------------------------------------------------------------------------------------ */

static bool
one_in (Draw *d, int n)
{
  return g_rand_int_range (d->rand, 0, n) == 0;
}

#define ANY(d, list) (list)[mutate_place ((d)->rand, G_N_ELEMENTS (list))]

static void
set (Draw *d, const char *key, const char *value)
{
  bool is_there = g_ptr_array_find_with_equal_func (d->set, key, g_str_equal, NULL);
  bool may_again = strcmp (key, "from") == 0 || strcmp (key, "set") == 0;
  if ((is_there && !may_again) || !ls_request_set (d->request, key, value, NULL))
    return;
  g_autofree char *quoted = value ? g_shell_quote (value) : NULL;
  g_string_append_printf (d->line, " --%s%s%s", key, value ? "=" : "", value ? quoted : "");
  g_ptr_array_add (d->set, (gpointer) g_intern_string (key));
}

static const char *const models[] = { "gpt-1.7b:layers=2", "llama3.1-8b:layers=4", "mixtral-8x7b:layers=2",
                                      "deepseek-v3:layers=4", "gpt-1.7b" };

static const char *const model_keys[]
    = { "layers=%s",     "hidden=%s",    "heads=%s",       "kv_heads=%s",       "head_dim=%s",
        "ffn=%s",        "vocab=%s",     "seq=%s",         "experts=%s",        "top_k=%s",
        "expert_ffn=%s", "window=%s",    "mixer=%s",       "predict_layers=%s", "kv_lora=%s",
        "q_lora=%s",     "moe_every=%s", "dense_layers=%s" };

/* NAME:KEY=VALUE,... */
static char *
changed (Draw *d, const char *name, const char *const *keys, gsize n_keys)
{
  GString *text = g_string_new (name);
  for (gint i = MAX (1, g_rand_int_range (d->rand, -1, 4)); i > 0; i--) {
    g_auto (GStrv) parts = g_strsplit (keys[mutate_place (d->rand, n_keys)], "%s", 2);
    if (!strstr (text->str, parts[0]))
      g_string_append_printf (text, "%c%s%s%s", strchr (text->str, ':') ? ',' : ':', parts[0],
                              mutate_number (d->rand), parts[1]);
  }
  return g_string_free (text, FALSE);
}

static void
set_cluster (Draw *d, bool changes)
{
  const Shipped *c = &g_array_index (clusters, Shipped, mutate_place (d->rand, clusters->len));
  g_autofree char *own = changes ? changed (d, c->name, (const char *const *) c->keys->pdata, c->keys->len)
                                 : g_strdup (c->name);
  set (d, "cluster", own);
}

static void
set_model (Draw *d)
{
  const char *name = ANY (d, models);
  g_autofree char *own
      = one_in (d, 4) ? changed (d, name, model_keys, G_N_ELEMENTS (model_keys)) : g_strdup (name);
  set (d, "model", own);
}

/* The command's values of an option, or what users of it may type. */
static void
set_option (Draw *d, const LsOption *o)
{
  static const char *const units[] = { "ms", "us", "GiB", "MB", "", "e-320ms", "s" };
  static const char words[]
      = "auto none 0 1,2 2,4,8 1..8 8x4 2x2 rank=0:2 seed=1,sigma=0.1 uniform zipf:1 zipf:0 "
        "lognormal:1024:1.2 fixed:0 tp-cp-dp-pp pp-dp-cp-tp 0,1 1@2 3@4 random:1 megatron "
        "torchtitan deepspeed fsdp2 adamw muon {} [] nofile.csv  ";
  if (o->writes != LS_WRITES_NOTHING || strcmp (o->key, "mpi") == 0 || strcmp (o->key, "threads") == 0)
    return;
  if (!o->argument) {
    set (d, o->key, one_in (d, 8) ? "0" : NULL);
    return;
  }
  if (o->choices && !one_in (d, 10)) {
    g_auto (GStrv) choices = g_strsplit (o->choices, ", ", -1);
    set (d, o->key, choices[mutate_place (d->rand, g_strv_length (choices))]);
    return;
  }
  g_auto (GStrv) word = g_strsplit (words, " ", -1);
  bool has_unit = strstr (o->argument, "SIZE") || strstr (o->argument, "TIME"),
       is_number = has_unit || strcmp (o->argument, "N") == 0 || strcmp (o->argument, "X") == 0;
  g_autofree char *number = g_strconcat (mutate_number (d->rand), has_unit ? ANY (d, units) : "", NULL);
  set (d, o->key, is_number != one_in (d, 12) ? number : word[mutate_place (d->rand, g_strv_length (word))]);
}

static void
set_options (Draw *d, const char *command, guint n)
{
  guint n_options = 0;
  const LsOption *options = ls_command_options (ls_command_find (command, NULL), &n_options);
  for (guint i = 0; i < n; i++)
    set_option (d, &options[mutate_place (d->rand, n_options)]);
}

/* Few GPUs and a small batch, so that a request takes little; none of them is always there. */
static void
set_size (Draw *d)
{
  static const char *const sizes[] = { "1", "2", "3", "4", "6", "8", "12", "16", "2", "4", "8" };
  static const char *const degrees[] = { "1", "2", "2", "4", "8", "3", "16" };
  static const char *const keys[] = { "tp", "pp", "cp", "ep", "dp", "vpp", "micro_batch" };
  if (!one_in (d, 6))
    set (d, one_in (d, 10) ? "nodes" : "gpus", one_in (d, 12) ? mutate_number (d->rand) : ANY (d, sizes));
  if (!one_in (d, 8))
    set (d, "global_batch", one_in (d, 12) ? mutate_number (d->rand) : ANY (d, sizes));
  if (one_in (d, 2))
    set (d, "seq", one_in (d, 6) ? mutate_number (d->rand) : "1024");
  while (one_in (d, 2))
    set (d, ANY (d, keys), one_in (d, 10) ? mutate_number (d->rand) : ANY (d, degrees));
}

/* A launch file that is not as somebody wrote it. */
static void
set_launch_file (Draw *d, const char *key)
{
  const Input *input = &g_array_index (inputs, Input, mutate_place (d->rand, inputs->len));
  GString *text = g_string_new_len (input->text, (gssize) input->n);
  for (gint i = g_rand_int_range (d->rand, 0, 3); i > 0; i--)
    mutate_value (d->rand, text);
  GByteArray *b = g_byte_array_new_take (g_memdup2 (text->str, text->len), text->len);
  if (one_in (d, 4))
    mutate_byte (d->rand, b);
  d->file = g_build_filename (folder, input->name, NULL);
  if (!g_file_set_contents (d->file, (const char *) b->data, (gssize) b->len, NULL))
    g_error ("%s: cannot be written", d->file);
  g_byte_array_unref (b);
  g_string_free (text, TRUE);
  set (d, key, d->file);
}

/* What a command asks for. */
static const struct {
  const char *command, *key, *value;
} asked[] = { { "train", "days", "1" },       { "collective", "op", "all-reduce" },
              { "collective", "size", "8" },  { "collective", "sizes", "1KiB..1MiB" },
              { "kernel", "op", "gemm" },     { "kernel", "size", "128x256x512" },
              { "kernel", "gpu", "h100" },    { "schedule", "schedule", "1f1b" },
              { "schedule", "pp", "4" },      { "schedule", "micro_batches", "8" },
              { "list", "kind", "clusters" }, { "whatif", "top", "2" },
              { "sweep", "top", "2" } };

static void
set_asked (Draw *d, const char *command)
{
  for (gsize i = 0; i < G_N_ELEMENTS (asked); i++)
    if (strcmp (asked[i].command, command) == 0 && !one_in (d, 10))
      set (d, asked[i].key, asked[i].value);
}

static void
draw_request (Draw *d)
{
  static const char *const of_launch[]
      = { "run", "run", "run", "memory", "sweep", "import", "whatif", "place", "train" };
  static const char *const of_job[] = { "run", "run", "memory", "sweep", "whatif", "place", "train" };
  static const char *const others[]
      = { "topology", "collective", "schedule", "kernel", "list", "topology", "collective" };
  const char *only = g_getenv ("LS_FUZZ_COMMAND");
  enum { LAUNCH_FILE, CLUSTER, OPTIONS, N_SORTS } sort = g_rand_int_range (d->rand, 0, N_SORTS);
  const char *command = sort == LAUNCH_FILE ? ANY (d, of_launch)
      : one_in (d, 4)                       ? ANY (d, others)
                                            : ANY (d, of_job);
  if (only) {
    command = only;
    sort = LAUNCH_FILE;
  }
  d->request = ls_request_new (command, NULL);
  g_string_printf (d->line, "lockstep %s", command);
  set (d, "threads", "1");
  set (d, "time_limit", "100ms");
  if (!one_in (d, 8))
    set (d, "no_advice", NULL);
  if (sort == OPTIONS)
    set_options (d, command, 1 + mutate_place (d->rand, 4));
  if (sort == LAUNCH_FILE)
    set_launch_file (d, strcmp (command, "import") == 0 ? "file" : "from");
  else if (strcmp (command, "kernel") != 0 && !one_in (d, 20))
    set_model (d);
  if (strcmp (command, "kernel") != 0 && !one_in (d, 20))
    set_cluster (d, sort == CLUSTER || one_in (d, 8));
  set_size (d);
  set_asked (d, command);
  set_options (d, command, one_in (d, 3));
}

/* --- its answer ----------------------------------------------------------------------------------- */

static void
check_text (const char *text)
{
  if (text && !g_utf8_validate (text, -1, NULL))
    g_error ("not UTF-8: %s", text);
}

static void
run_request (Draw *d)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsAnswer) answer = ls_request_run (d->request, &error);
  if ((answer == NULL) != (error != NULL) || (error && !*error->message))
    g_error ("neither an answer nor a reason");
  check_text (error ? error->message : NULL);
  if (g_getenv ("LS_FUZZ_SHOW"))
    printf ("%s\n  %s\n", d->line->str, error ? error->message : "answered");
  if (error) {
    told->n_errors[error->code]++;
    return;
  }
  g_autofree char *text = ls_answer_format (answer, LS_FORM_TEXT, NULL),
                  *json = ls_answer_format (answer, LS_FORM_JSON, NULL), *notes = ls_answer_notes (answer),
                  *warning = ls_answer_warning (answer);
  const char *const texts[] = { text, json, notes, warning };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    check_text (texts[i]);
  told->n_answers++;
}

static guint
number_of (const char *variable, guint usual)
{
  const char *n = g_getenv (variable);
  return n ? (guint) g_ascii_strtoull (n, NULL, 10) : usual;
}

static void
one_seed (guint32 seed, bool is_shown)
{
  Draw d = { .rand = g_rand_new_with_seed (seed), .line = g_string_new (NULL), .set = g_ptr_array_new () };
  const struct itimerval limit = { .it_value.tv_sec = number_of ("LS_FUZZ_SECONDS", 20) }, none = { 0 };
  draw_request (&d);
  told->seed = seed;
  g_strlcpy (told->request, d.line->str, sizeof told->request);
  g_autofree char *text = NULL;
  if (is_shown && d.file && g_file_get_contents (d.file, &text, NULL, NULL))
    printf ("%s\n", text);
  if (is_shown)
    printf ("%s\n", d.line->str);
  fflush (stdout);
  setitimer (ITIMER_PROF, &limit, NULL);
  run_request (&d);
  setitimer (ITIMER_PROF, &none, NULL);
  if (d.file && !is_shown)
    g_remove (d.file);
  g_free (d.file);
  ls_request_free (d.request);
  g_string_free (d.line, TRUE);
  g_ptr_array_unref (d.set);
  g_rand_free (d.rand);
}

/* --- all of them ---------------------------------------------------------------------------------- */

#define PER_CHILD 200

/* The first that was not run. */
static guint32
run_some (guint32 first, guint32 end, guint *n_failed)
{
  told->seed = first;
  fflush (stdout);
  pid_t child = fork ();
  if (child == 0) {
    for (guint32 seed = first; seed < end; seed++)
      one_seed (seed, false);
    exit (EXIT_SUCCESS);
  }
  int status = 0;
  waitpid (child, &status, 0);
  if (WIFEXITED (status) && WEXITSTATUS (status) == EXIT_SUCCESS)
    return end;
  bool is_slow = WIFSIGNALED (status) && WTERMSIG (status) == SIGPROF;
  printf ("seed %u %s (status %x): %s\n", told->seed, is_slow ? "takes too long" : "fails", (guint) status,
          told->request);
  ++*n_failed;
  return told->seed + 1;
}

int
main (int argc, char **argv)
{
  guint n_failed = 0, one = number_of ("LS_FUZZ_SEED", 0), first = number_of ("LS_FUZZ_FIRST", 1),
        end = first + number_of ("LS_CASES", 200);
  if (argc < 2)
    g_error ("usage: requests CORPUS FOLDER...");
  told = mmap (NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  inputs = g_array_new (FALSE, FALSE, sizeof (Input));
  clusters = g_array_new (FALSE, FALSE, sizeof (Shipped));
  folder = g_dir_make_tmp ("lockstep-requests-XXXXXX", NULL);
  g_autofree char *topologies = g_build_filename (g_getenv ("LS_DATA_DIR"), "topologies", NULL);
  each_file (topologies, add_clusters);
  add_corpus (argv[1]);
  for (int i = 2; i < argc; i++)
    add_path (argv[i]);
  if (g_chdir (folder) != 0) /* where options may write */
    g_error ("%s: cannot be entered", folder);
  if (one > 0)
    one_seed (one, true);
  for (guint32 seed = first; one == 0 && seed < end;) {
    seed = run_some (seed, MIN (end, seed + PER_CHILD), &n_failed);
    if (seed % 1000 == 1)
      printf ("%u requests, %u failed\n", seed - first, n_failed);
  }
  guint n_refused = 0;
  for (guint i = 0; i < G_N_ELEMENTS (told->n_errors); i++)
    n_refused += told->n_errors[i];
  printf ("%u requests over %u launch files: %u answered, %u refused, %u failed\n", end - first, inputs->len,
          told->n_answers, n_refused, n_failed);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
