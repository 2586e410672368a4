/* `lockstep capture`: a training program as it is, run without its GPUs. */
#include <math.h>
#include <string.h>

#include "api/answer.h"
#include "api/commands.h"
#include "api/job_answer.h"
#include "api/request.h"
#include "ask/captured.h"
#include "ask/versus.h"
#include "base/order.h"
#include "data/datadir.h"
#include "data/machines/machines.h"
#include "data/text/write_file.h"
#include "show/answers.h"

#define DEFAULT_STEPS 2
#define OTHER_JOB     0.1 /* of FLOPs: more than padding, less than a layer of a few */
#define CLOCK_STEPS   20  /* as many as a program's log says something of */

typedef struct {
  LsCaptured *captured;
  char *command;
} Data;

static void
data_free (gpointer data)
{
  Data *d = data;
  ls_captured_free (d->captured);
  g_free (d->command);
  g_free (d);
}

LS_ANSWER_FORM (to_text, ls_captured_to_text (((const Data *) data)->captured))
LS_ANSWER_FORM (to_json, ls_captured_to_json (((const Data *) data)->captured))

static void
fill_page (gconstpointer data, LsPage *page)
{
  const Data *d = data;
  ls_page_set_title (page, "What it allocates", d->command);
  ls_page_take (page, "over-time", g_strdup (d->captured->over_time));
}

static const LsAnswerForms forms = { to_text, to_json, NULL, NULL, data_free, fill_page };

/* --- next to a plan ----------------------------------------------------------------------------------- */

typedef struct {
  LsJobResult *captured, *planned;
  LsVersus *versus;
} Versus;

static void
versus_free (gpointer data)
{
  Versus *v = data;
  ls_versus_free (v->versus);
  ls_job_result_free (v->captured);
  ls_job_result_free (v->planned);
  g_free (v);
}

LS_ANSWER_FORM (versus_to_text, ls_versus_to_text (((const Versus *) data)->versus))
LS_ANSWER_FORM (versus_to_json, ls_versus_to_json (((const Versus *) data)->versus))

static gboolean
compare (const LsRequest *r, const char *folder, LsAnswer *a, GError **error)
{
  static const LsAnswerForms versus_forms
      = { .text = versus_to_text, .json = versus_to_json, .free = versus_free };
  LsJobSpec spec;
  gint64 rank = 0;
  Versus *v = g_new0 (Versus, 1);
  gboolean ok = ls_request_job (r, &spec, error) && ls_request_number (r, "rank", 0, 9999999, &rank, error);
  ok = ok && (v->captured = ls_versus_replay (&spec, folder, error))
      && (v->planned = ls_job_spec_run (&spec, error))
      && (v->versus = ls_versus_new (v->captured, v->planned, (uint32_t) rank, error));
  ls_job_spec_clear (&spec);
  if (!ok) {
    versus_free (v);
    return FALSE;
  }
  ls_answer_note_all (a, v->planned->notes);
  g_autoptr (GError) misfit = v->planned->report.fits ? NULL : ls_job_misfit (&v->planned->report);
  if (misfit)
    ls_answer_note (a, "the plan %s", misfit->message);
  ls_answer_take (a, v, &versus_forms);
  return TRUE;
}

/* What was captured, by way of a folder of its own. */
static gboolean
compare_captured (const LsRequest *r, const LsCaptured *c, LsAnswer *a, GError **error)
{
  if (c->error)
    return ls_fail (error, LS_ERROR_FAILED, "the program failed: %s", c->error);
  if (ls_request_text (r, "output"))
    return compare (r, ls_request_text (r, "output"), a, error);
  g_autofree char *home = g_dir_make_tmp ("lockstep-compare-XXXXXX", error);
  g_autofree char *folder = home ? g_build_filename (home, "step", NULL) : NULL;
  gboolean ok = home && ls_captured_write_trace (c, folder, error) && compare (r, folder, a, error);
  if (folder)
    ls_remove_folder (folder);
  if (home)
    ls_remove_folder (home);
  return ok;
}

/* --- a software profile ------------------------------------------------------------------------------- */

LS_ANSWER_FORM (derived_to_text, ls_derived_to_text (data))
LS_ANSWER_FORM (derived_to_json, ls_derived_to_json (data))
LS_ANSWER_FREE (derived_free, ls_derived_free)

static gboolean
write_profile (gconstpointer derived, const char *path, GError **error)
{
  g_autofree char *name = ls_output_name (path, error);
  g_autofree char *json = name ? ls_derived_file (derived, name) : NULL;
  return json && ls_write_text (path, json, error);
}

static gboolean
derive (const LsRequest *r, LsAnswer *a, GError **error)
{
  static const LsAnswerForms derived_forms
      = { .text = derived_to_text, .json = derived_to_json, .free = derived_free };
  const LsProgress progress = ls_request_progress (r);
  LsJobSpec spec;
  LsDerived *d = NULL;
  if (ls_request_job (r, &spec, error))
    d = ls_derived_new (&spec, ls_request_text (r, "jobs"), 0, &progress, error);
  ls_job_spec_clear (&spec);
  if (!d)
    return FALSE;
  for (guint i = 0; i < d->jobs->len; i++) {
    const LsDerivedJob *j = &g_array_index (d->jobs, LsDerivedJob, i);
    if (!(fabs (j->flops - 1) <= OTHER_JOB))
      ls_answer_warn (a,
                      g_strdup_printf ("%s: its plan computes %.3g times the FLOPs of products that were "
                                       "captured: the table may say another model, batch, length or layout",
                                       j->trace, j->flops));
  }
  ls_answer_take (a, d, &derived_forms);
  ls_answer_write (a, r, "profile", write_profile);
  return TRUE;
}

/* --- its memory --------------------------------------------------------------------------------------- */

/* The caller clears *ret_gpu. */
static gboolean
read_gpu (const LsRequest *r, LsGpu *ret_gpu, uint32_t *ret_per_node, GError **error)
{
  const char *cluster = ls_request_text (r, "cluster"), *gpu = ls_request_text (r, "gpu");
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  *ret_per_node = 8;
  if (!cluster)
    return ls_data_file_load (&ls_gpu_file, gpu ? gpu : "h100", ret_gpu, diags)
        || ls_diag_list_to_error (diags, error);
  LsClusterSpec spec;
  if (!ls_cluster_load (cluster, &spec, diags))
    return ls_diag_list_to_error (diags, error);
  ls_gpu_copy (&spec.gpu, ret_gpu);
  *ret_per_node = spec.gpus_per_node;
  ls_cluster_spec_clear (&spec);
  return TRUE;
}

static gboolean
write_junit (gconstpointer data, const char *path, GError **error)
{
  const Data *d = data;
  g_autofree char *text = ls_captured_to_junit (d->captured, d->command);
  return ls_write_text (path, text, error);
}

static gboolean
write_snapshot (gconstpointer data, const char *path, GError **error)
{
  return ls_write_file (path, ls_write_bytes, ((const Data *) data)->captured->snapshot, error);
}

/* r was run to see whether it does what the first of its role does. */
static void
note_unlike (const LsCaptured *c, const LsCaptured *r, LsAnswer *a)
{
  for (guint i = 0; i < c->ranks->len; i++) {
    const LsCaptured *first = c->ranks->pdata[i];
    if (first->rank != r->like || r->rank == r->like || first->error || r->error
        || g_strcmp0 (first->trace, r->trace) == 0)
      continue;
    uint64_t n, apart = ls_captured_apart (r, first, &n);
    if (apart > 0)
      ls_answer_note (a,
                      "rank %u differs from rank %u of its role in %" G_GUINT64_FORMAT
                      " of %" G_GUINT64_FORMAT " launches, messages and blocks: others may too "
                      "(--ranks LIST)",
                      r->rank, first->rank, apart, n);
    else
      ls_answer_note (a, "rank %u does what rank %u of its role does in another order", r->rank, first->rank);
  }
}

static void
note_all (const LsCaptured *c, LsAnswer *a)
{
  for (guint i = 0; i < c->ranks->len; i++)
    note_unlike (c, c->ranks->pdata[i], a);
  if (c->steps == 0)
    ls_answer_note (a, "no optimizer took a step: this is the memory until the program ended");
  else if (c->steps < 2)
    ls_answer_note (a, "one step only: what an optimizer makes in its first step is held from the second on");
  if (c->depends_on_speed && c->high_bytes == 0)
    ls_answer_note (
        a,
        "whether work is done depends on how fast the GPU is, and so may what is reserved: --range says how "
        "much");
  if (c->n_kept > 0) {
    ls_answer_note (a,
                    "%u of %u ranks had ended before the capture was stopped: they are not run again, "
                    "whatever has changed in the program's files",
                    c->n_kept, c->ranks->len);
  }
  if (c->recorded) {
    ls_answer_note (a,
                    "of rank %u: %" G_GUINT64_FORMAT " operators and %" G_GUINT64_FORMAT
                    " launches and copies in its last step; in %" G_GUINT64_FORMAT
                    " PyTorch's record and ours differ",
                    c->rank, c->n_operators, c->n_launches, c->n_apart);
  }
  if (c->n_plans > 0)
    ls_answer_note (a, "cuDNN was used: what it takes as workspace is not known, and not counted");
  if (c->n_graphs > 0)
    ls_answer_note (a,
                    "CUDA graphs were captured: what the driver keeps of them is not known, and not "
                    "counted");
  for (guint i = 0; i < c->notes->len; i++)
    ls_answer_note (a, "%s", (const char *) g_ptr_array_index (c->notes, i));
}

/* A program that failed otherwise than by its memory has no answer that holds. */
static void
check (const LsCaptured *c, LsAnswer *a)
{
  if (c->error && c->n_out_of_memory == 0) /* else the error is that */
    ls_answer_fail_with (a, LS_ERROR_FAILED, "the program failed: %s", c->error);
  else if (!ls_captured_fits (c)) {
    g_autofree char *advice = ls_captured_advice (c);
    ls_answer_fail_with (a, LS_ERROR_NO_FIT, "does not fit%s", advice);
  }
}

static bool
is_among (const LsCaptureAsk *ask, uint32_t rank)
{
  for (guint i = 0; i < ask->n_ranks; i++)
    if (ask->ranks[i] == rank)
      return true;
  return ask->n_ranks == 0;
}

static gboolean
answer (const LsRequest *r, const LsCaptureAsk *ask, LsAnswer *a, GError **error)
{
  LsCaptured *captured = ls_capture_run (ask, error);
  if (!captured)
    return FALSE;
  Data *d = g_new (Data, 1);
  *d = (Data) { captured, g_strjoinv (" ", (char **) ask->command) };
  if ((ask->world > 0 && captured->world != ask->world) || !is_among (ask, captured->rank))
    ls_answer_warn (a,
                    g_strdup ("--world, --rank and --ranks change nothing here: no launcher such as torchrun "
                              "starts ranks"));
  if (ask->members > 1 && captured->ranks->len < 2)
    ls_answer_warn (a, g_strdup ("--members changes nothing here: the program makes no groups of its ranks"));
  note_all (captured, a);
  gboolean is_written = captured->error || !ls_request_text (r, "output")
      || ls_captured_write_trace (captured, ls_request_text (r, "output"), error);
  if (is_written && ls_request_is_on (r, "compare")) {
    gboolean ok = compare_captured (r, captured, a, error);
    data_free (d);
    return ok;
  }
  ls_answer_take (a, d, &forms);
  if (!is_written)
    return FALSE;
  ls_answer_write (a, r, "junit", write_junit);
  if (captured->snapshot)
    ls_answer_write (a, r, "snapshot", write_snapshot);
  ls_answer_write_page (a, r);
  check (captured, a);
  return TRUE;
}

/* "0,8,16-19"; ranks: in order, each once. */
static gboolean
read_list (const char *text, gint64 world, GArray *ranks, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (text, ",", -1);
  gint64 most = world > 0 ? world - 1 : 9999999;
  for (guint i = 0; parts[i]; i++) {
    g_auto (GStrv) ends = g_strsplit (parts[i], "-", 2);
    gint64 first, last;
    if (!ends[0] || !g_ascii_string_to_signed (ends[0], 10, 0, most, &first, NULL)
        || !g_ascii_string_to_signed (ends[1] ? ends[1] : ends[0], 10, first, first + 1023, &last, NULL)
        || last > most || ranks->len > 1023)
      return ls_request_refuse (
          "--ranks: expected auto, all or ranks below the number of all, as 0,8,16-19: 1,024 at most", error);
    for (gint64 rank = first; rank <= last; rank++) {
      uint32_t value = (uint32_t) rank;
      g_array_append_val (ranks, value);
    }
  }
  g_array_sort (ranks, ls_compare_uint32);
  for (guint i = 1; i < ranks->len; i++)
    if (g_array_index (ranks, uint32_t, i) == g_array_index (ranks, uint32_t, i - 1))
      return ls_request_refuse ("--ranks: a rank stands twice", error);
  return TRUE;
}

static gboolean
read_ranks (const LsRequest *r, gint64 world, GArray *ranks, LsCaptureWhich *ret_which, GError **error)
{
  const char *text = ls_request_text (r, "ranks");
  gint64 rank = 0;
  *ret_which = g_strcmp0 (text, "all") == 0 ? LS_CAPTURE_ALL : LS_CAPTURE_AUTO;
  if (ls_request_text (r, "rank")) {
    if (!ls_request_number (r, "rank", 0, 9999999, &rank, error))
      return FALSE;
    if (world > 0 && rank >= world)
      return ls_request_refuse ("--rank: expected one below --world", error);
    uint32_t value = (uint32_t) rank;
    g_array_append_val (ranks, value);
    *ret_which = LS_CAPTURE_ONE;
  } else if (text && strcmp (text, "auto") != 0 && strcmp (text, "all") != 0) {
    *ret_which = LS_CAPTURE_LIST;
    return read_list (text, world, ranks, error);
  }
  return TRUE;
}

static bool
is_load (const char *text)
{
  const char *power = g_str_has_prefix (text, "zipf:") ? text + strlen ("zipf:") : "";
  char *end;
  double value = g_ascii_strtod (power, &end);
  return strcmp (text, "even") == 0 || (end > power && *end == '\0' && value >= 0 && value < 10);
}

gboolean
command_capture (const LsRequest *r, LsAnswer *a, GError **error)
{
  const char *clock = ls_request_text (r, "clock");
  gint64 world = 0, steps = clock ? CLOCK_STEPS : DEFAULT_STEPS, members = 0;
  LsCaptureWhich which;
  g_autoptr (GArray) ranks = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_autofree const char **words = ls_request_texts (r, "command");
  const char **command = words && words[0] && strcmp (words[0], "--") == 0 ? words + 1 : words;
  if (ls_request_text (r, "profile"))
    return derive (r, a, error);
  if (ls_request_text (r, "trace"))
    return compare (r, ls_request_text (r, "trace"), a, error);
  if (!command || !command[0])
    return ls_request_refuse ("expected -- and the command that starts the training", error);
  const char *folder = ls_request_text (r, "output");
  if (folder && g_file_test (folder, G_FILE_TEST_EXISTS))
    return ls_request_refuse ("-o: expected the name of a new folder", error);
  if (!ls_request_number (r, "world", 1, 10000000, &world, error)
      || !ls_request_number (r, "steps", 1, 1000, &steps, error)
      || !ls_request_number (r, "members", 1, 1024, &members, error)
      || !read_ranks (r, world, ranks, &which, error))
    return FALSE;
  bool with_trace = folder || ls_request_is_on (r, "compare");
  if (with_trace && steps < 2)
    return ls_request_refuse (
        "-o and --compare go with --steps 2 or more: the step that is traced follows one", error);
  if (clock && strcmp (clock, "simulated") != 0)
    return ls_request_refuse ("--clock: expected simulated", error);
  const char *load = ls_request_text (r, "expert-load");
  if (load && !is_load (load))
    return ls_request_refuse ("--expert-load: expected even or zipf:S, as zipf:1", error);
  LsGpu gpu;
  uint32_t per_node;
  if (!read_gpu (r, &gpu, &per_node, error))
    return FALSE;
  const LsProgress progress = ls_request_progress (r);
  g_autofree char *message = NULL, *models = ls_data_find (LS_DATA_MODEL_NAMES, "published", &message);
  const LsCaptureAsk ask = { .gpu = &gpu,
                             .gpus_per_node = per_node,
                             .world = (uint32_t) world,
                             .which = which,
                             .ranks = (const uint32_t *) (void *) ranks->data,
                             .n_ranks = ranks->len,
                             .members = (uint32_t) members,
                             .steps = (uint32_t) steps,
                             .expert_load = load,
                             .clock = clock ? ls_request_text (r, "cluster") : NULL,
                             .keep = ls_request_text (r, "keep"),
                             .with_range = ls_request_is_on (r, "range"),
                             .with_snapshot = ls_request_text (r, "snapshot") != NULL,
                             .with_trace = with_trace,
                             .command = command,
                             .models = models,
                             .stop = ls_request_stop (r),
                             .progress = &progress };
  if (!ls_request_text (r, "cluster") && !ls_request_text (r, "gpu"))
    ls_answer_note (a, "no GPU was named: it is an h100, eight to a node (--gpu, --cluster)");
  gboolean ok = answer (r, &ask, a, error);
  ls_gpu_clear (&gpu);
  return ok;
}
