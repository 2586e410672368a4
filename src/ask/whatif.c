#include "ask/whatif.h"

#include <math.h>
#include <string.h>

#include <lockstep/error.h>

#include "base/order.h"
#include "data/text/override.h"
#include "job/assumptions.h"
#include "job/price.h"
#include "job/softwares.h"

LsWhatIfRow
ls_what_if_row (const LsJobResult *r)
{
  const LsReport *p = &r->report;
  uint64_t wanted = p->needed_bytes + (p->headroom.is_asked ? p->headroom.bytes : 0),
           usual = p->needed_bytes + p->headroom.bytes;
  const LsPrice none = LS_PRICE_NOT_GIVEN, price = ls_price_of_cluster (&none, &r->cluster->spec);
  return (LsWhatIfRow) {
    .step_time_s = p->step_time_s,
    .tokens_per_s = p->tokens_per_s,
    .needed_bytes = p->needed_bytes,
    .capacity_bytes = p->capacity_bytes,
    .short_bytes = wanted > p->capacity_bytes ? wanted - p->capacity_bytes : 0,
    .fits = p->fits,
    .lacking_bytes = p->fits && usual > p->capacity_bytes ? usual - p->capacity_bytes : 0,
    .usd_per_million_tokens = 1e6 * ls_price_usd (&price, r->plan->n_ranks, p->tokens_per_s),
  };
}

/* --- simulating ------------------------------------------------------------------------- */

typedef struct {
  const LsJobSpec *spec;
  LsChange **changes;
  LsWhatIfRow *rows; /* each change has a place of its own */
} Tries;

/* The job with the change; NULL with the reason. */
static LsJobResult *
simulate (const LsJobSpec *spec, LsChange *change, GError **error)
{
  LsJobSpec changed;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJobResult) r = NULL;
  bool is_made = ls_change_make (change, spec, &changed, diags);
  changed.options.steady = changed.no_notes = true;
  changed.network = spec->network == LS_JOB_NETWORK_ALL ? LS_JOB_NETWORK_FLOW : spec->network;
  if (is_made)
    r = ls_job_spec_run (&changed, error);
  else
    ls_diag_list_to_error (diags, error);
  if (r && g_strcmp0 (changed.software_name, spec->software_name) != 0
      && !ls_software_check (changed.software, &r->model, &r->strategy, error))
    g_clear_pointer (&r, ls_job_result_free);
  ls_job_spec_clear (&changed);
  return g_steal_pointer (&r);
}

char *
ls_what_if_reason (const GError *error)
{
  g_auto (GStrv) lines = g_strsplit (error->message, "\n", -1);
  GString *out = g_string_new (NULL);
  for (char **line = lines; *line; line++) {
    const char *text = g_str_has_prefix (*line, "error: ") ? *line + strlen ("error: ") : *line;
    bool goes_on = out->len > 0 && out->str[out->len - 1] == ':';
    g_string_append_printf (out, "%s%s", goes_on ? " " : out->len > 0 && *text ? "; " : "", text);
  }
  return g_string_free (out, FALSE);
}

static void
try_one (guint i, gpointer data)
{
  const Tries *t = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) r = simulate (t->spec, t->changes[i], &error);
  t->rows[i] = r ? ls_what_if_row (r) : (LsWhatIfRow) { .refused = ls_what_if_reason (error) };
  t->rows[i].change = ls_change_text (t->changes[i]);
  t->rows[i].idea = t->changes[i]->idea;
  t->rows[i].cost = t->changes[i]->cost;
}

void
ls_what_if_simulate (const LsJobSpec *spec, const GPtrArray *changes, guint n_threads,
                     const LsProgress *progress, LsWhatIf *w)
{
  guint first = w->rows->len;
  g_array_set_size (w->rows, first + changes->len);
  LsWhatIfRow *rows = &g_array_index (w->rows, LsWhatIfRow, first);
  Tries tries = { spec, (LsChange **) changes->pdata, rows };
  ls_parallel (changes->len, n_threads, try_one, &tries, progress);
  for (guint i = 0; i < changes->len; i++) {
    double faster = isnan (w->now.tokens_per_s) ? w->now.step_time_s / rows[i].step_time_s
                                                : rows[i].tokens_per_s / w->now.tokens_per_s;
    rows[i].number = first + i;
    rows[i].gain = rows[i].refused ? NAN : faster - 1;
  }
}

/* --- ranking ---------------------------------------------------------------------------- */

/* Most gain first, refused ones last; of equals that which was proposed first. */
static gint
compare_rows (gconstpointer x, gconstpointer y)
{
  const LsWhatIfRow *a = x, *b = y;
  if (!a->refused != !b->refused)
    return a->refused ? 1 : -1;
  if (!a->refused && a->gain != b->gain)
    return a->gain > b->gain ? -1 : 1;
  return LS_ORDER (a->number, b->number);
}

void
ls_what_if_assume_price (const LsJobSpec *spec, LsJobResult *r)
{
  const LsPrice none = LS_PRICE_NOT_GIVEN, price = ls_price_of_cluster (&none, &r->cluster->spec);
  g_autofree char *dearer = ls_override_add (spec->cluster, "gpu.usd_per_hour=USD"),
                  *instead = g_strconcat ("--cluster ", dearer, NULL);
  ls_price_assume_hour (&price, "$%s for an hour of a GPU", "the accelerator's file", instead,
                        &r->assumptions);
}

void
ls_what_if_assume_headroom (const LsJobSpec *spec, const char *words, LsJobResult *r)
{
  const LsHeadroom *h = &r->report.headroom;
  ls_assumptions_add (&r->assumptions, "headroom", ls_headroom_text (h), words,
                      spec->headroom.is_set ? NULL
                          : h->is_asked     ? "the program's"
                                            : "noted, not demanded",
                      "--headroom SIZE");
}

static LsWhatIf *
simulate_all (const LsJobSpec *spec, LsJobResult *r, const GPtrArray *changes, guint n_threads,
              const LsProgress *progress)
{
  LsWhatIf *w = g_new (LsWhatIf, 1);
  ls_what_if_assume_headroom (spec, "headroom %s", r);
  ls_what_if_assume_price (spec, r);
  *w = (LsWhatIf) { .now = ls_what_if_row (r),
                    .rows = g_array_new (FALSE, FALSE, sizeof (LsWhatIfRow)),
                    .assumptions = r->assumptions ? g_array_ref (r->assumptions) : NULL };
  LsJobSpec one = *spec; /* borrows all */
  if (one.network == LS_JOB_NETWORK_ALL)
    one.network = LS_JOB_NETWORK_FLOW;
  ls_what_if_simulate (&one, changes, n_threads, progress, w);
  g_array_sort (w->rows, compare_rows);
  return w;
}

LsWhatIf *
ls_what_if_new (const LsJobSpec *spec, LsJobResult *r, guint n_threads, const LsProgress *progress,
                GError **error)
{
  g_autoptr (GPtrArray) changes = ls_changes_propose (spec, r);
  if (changes->len == 0) {
    g_set_error_literal (error, LS_ERROR, LS_ERROR_UNSUPPORTED, "a trace has fixed what could be changed");
    return NULL;
  }
  LsWhatIf *w = simulate_all (spec, r, changes, n_threads, progress);
  w->left_out = ls_changes_left_out (spec);
  return w;
}

LsWhatIf *
ls_what_if_softwares (const LsJobSpec *spec, LsJobResult *r, guint n_threads, const LsProgress *progress,
                      GError **error)
{
  g_autoptr (GPtrArray) changes = g_ptr_array_new_with_free_func ((GDestroyNotify) ls_change_free);
  const GPtrArray *programs = ls_softwares ();
  const char *architecture = ls_hardware_architecture (r->hardware);
  int dp_kind = r->strategy.dp_kind; /* a single copy is data parallel in no way, which all have */
  for (guint i = 0; r->model.name && i < programs->len; i++) {
    const LsSoftwareSpec *program = programs->pdata[i];
    if ((dp_kind != LS_DP_NONE && !ls_software_has_dp_kind (program, dp_kind))
        || !ls_software_names_architecture (program->architectures, architecture)
        || !ls_software_names_architecture (program->runs_on, architecture))
      continue;
    LsChange *change = ls_change_new ("another program", NULL, false);
    ls_change_set (change, "software", "%s", program->name);
    g_ptr_array_add (changes, change);
  }
  if (changes->len == 0) {
    g_set_error (error, LS_ERROR, LS_ERROR_UNSUPPORTED,
                 r->model.name ? "no program that is known has --dp-kind %s on such accelerators"
                               : "a trace has fixed its program (%s)",
                 ls_dp_kind_name (r->strategy.dp_kind));
    return NULL;
  }
  LsWhatIf *w = simulate_all (spec, r, changes, n_threads, progress);
  w->mixes_programs = true;
  return w;
}

void
ls_what_if_free (LsWhatIf *w)
{
  if (!w)
    return;
  for (guint i = 0; i < w->rows->len; i++) {
    g_free (g_array_index (w->rows, LsWhatIfRow, i).change);
    g_free (g_array_index (w->rows, LsWhatIfRow, i).refused);
  }
  g_array_unref (w->rows);
  g_clear_pointer (&w->assumptions, g_array_unref);
  g_free (w);
}

guint
ls_what_if_n_fit (const LsWhatIf *w)
{
  guint n = 0;
  for (guint i = 0; i < w->rows->len; i++) {
    const LsWhatIfRow *row = &g_array_index (w->rows, LsWhatIfRow, i);
    n += !row->refused && row->fits;
  }
  return n;
}
