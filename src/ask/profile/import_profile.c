#include "ask/profile/import_profile.h"

#include <string.h>

#include <lockstep/error.h>

#include "base/order.h"
#include "data/traces/traces.h"

#define PS_PER_NS 1000

typedef struct {
  LsKineto *k;
  LsMeasuredStep cut;
  bool *is_used;    /* of its groups */
  uint8_t *slot_of; /* of its groups */
  LsProfileStep *step;
} Rank;

typedef struct {
  const LsProfileImportSpec *spec;
  GArray *ranks; /* Rank */
  LsProfileGroups groups;
  LsProfileImport *import;
} Importing;

void
ls_profile_import_free (LsProfileImport *import)
{
  if (!import)
    return;
  g_free (import->text);
  g_free (import->what);
  g_free (import->gpu);
  g_array_unref (import->traffic);
  g_ptr_array_unref (import->notes);
  g_free (import);
}

static void
rank_clear (gpointer data)
{
  Rank *r = data;
  ls_profile_step_free (r->step);
  ls_measured_step_clear (&r->cut);
  ls_kineto_free (r->k);
  g_free (r->is_used);
  g_free (r->slot_of);
}

static Rank *
rank_at (const Importing *m, guint i)
{
  return &g_array_index (m->ranks, Rank, i);
}

/* ---- files ---- */

/* Takes k. */
static gboolean
take (Importing *m, LsKineto *k, GError **error)
{
  Rank blank = { .k = k };
  g_array_append_val (m->ranks, blank);
  Rank *r = rank_at (m, m->ranks->len - 1);
  if (!ls_measured_step_cut (r->k, m->spec->step, &r->cut, error))
    return FALSE;
  for (guint i = 0; i < r->k->notes->len; i++)
    g_ptr_array_add (m->import->notes, g_strdup (r->k->notes->pdata[i]));
  r->is_used = g_new0 (bool, k->groups->len + 1);
  for (guint i = 0; i < r->cut.chosen->len; i++) {
    const LsKinetoOp *op = &g_array_index (k->ops, LsKinetoOp, g_array_index (r->cut.chosen, guint, i));
    if (ls_profile_is_known (op))
      r->is_used[op->group - 1] = true;
  }
  return TRUE;
}

/* Takes loaded; NULL: the files of the spec. */
static gboolean
take_all (Importing *m, LsKineto *loaded, GError **error)
{
  gboolean ok = !loaded || take (m, loaded, error);
  for (guint i = 0; ok && !loaded && m->spec->paths[i]; i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsKineto *k = ls_kineto_load (m->spec->paths[i], diags);
    ok = k ? take (m, k, error) : ls_diag_list_to_error (diags, error);
  }
  return ok;
}

static int
by_rank (gconstpointer a, gconstpointer b)
{
  const Rank *x = a, *y = b;
  return LS_ORDER (x->k->rank, y->k->rank);
}

/* Several profiles must say which ranks they are of, each another one. */
static gboolean
check_ranks (Importing *m, GError **error)
{
  for (guint i = 0; m->ranks->len > 1 && i < m->ranks->len; i++)
    if (rank_at (m, i)->k->rank < 0)
      return ls_fail (error, LS_ERROR_INPUT,
                      "%s: error: it does not say of which rank it is (\"rank\" of distributedInfo), which "
                      "several profiles must",
                      rank_at (m, i)->k->path);
  g_array_sort (m->ranks, by_rank);
  for (guint i = 1; i < m->ranks->len; i++)
    if (rank_at (m, i)->k->rank == rank_at (m, i - 1)->k->rank)
      return ls_fail (error, LS_ERROR_CONFLICT,
                      "%s: error: it is of rank %" G_GINT64_FORMAT ", as another one is",
                      rank_at (m, i)->k->path, rank_at (m, i)->k->rank);
  return TRUE;
}

/* ---- steps and groups ---- */

static gboolean
find_groups (Importing *m, GError **error)
{
  g_autofree const LsKineto **profiles = g_new0 (const LsKineto *, m->ranks->len);
  g_autofree const bool **used = g_new0 (const bool *, m->ranks->len);
  for (guint i = 0; i < m->ranks->len; i++) {
    profiles[i] = rank_at (m, i)->k;
    used[i] = rank_at (m, i)->is_used;
  }
  if (!ls_profile_groups_find (profiles, used, m->ranks->len, &m->groups, error))
    return FALSE;
  for (guint i = 0; i < m->ranks->len; i++) {
    Rank *r = rank_at (m, i);
    r->slot_of = ls_profile_groups_slots (&m->groups, r->k);
    r->step = ls_profile_step_new (r->k, &r->cut, r->slot_of, m->spec->as_measured);
  }
  return TRUE;
}

/* Of each rank the profile: its own, or of the nearest below. NULL: one for all. */
static uint32_t *
roles_of (const Importing *m)
{
  if (m->ranks->len == 1)
    return NULL;
  uint32_t *role_of = g_new0 (uint32_t, m->groups.n_ranks);
  for (uint32_t rank = 0, at = 0; rank < m->groups.n_ranks; rank++) {
    while (at + 1 < m->ranks->len && rank_at (m, at + 1)->k->rank <= rank)
      at++;
    role_of[rank] = at;
  }
  return role_of;
}

static char *
source_of (const Importing *m)
{
  const Rank *r = rank_at (m, 0);
  g_autofree char *file = g_path_get_basename (r->k->path), *length = ls_format_time (r->cut.side->length),
                  *others
      = m->ranks->len > 1 ? g_strdup_printf (" and of %u other ranks", m->ranks->len - 1) : g_strdup ("");
  return g_strdup_printf ("%s of the profile %s%s%s%s, which took %s; communication %s%s%s", r->cut.what,
                          file, others, r->k->gpu ? " of " : "", r->k->gpu ? r->k->gpu : "", length,
                          m->spec->as_measured ? "as measured" : "of ours",
                          m->spec->changes.without_stalls ? ", without stalls" : "",
                          m->spec->changes.compute_scale != 1 ? ", kernels scaled" : "");
}

static gboolean
write_text (Importing *m, GError **error)
{
  g_autofree const LsProfileStep **steps = g_new0 (const LsProfileStep *, m->ranks->len);
  g_autofree uint32_t *role_of = roles_of (m);
  for (guint i = 0; i < m->ranks->len; i++)
    steps[i] = rank_at (m, i)->step;
  g_autoptr (LsPlan) plan
      = ls_profile_plan (steps, m->ranks->len, &m->groups, role_of, &m->spec->changes, error);
  if (!plan) {
    if (m->ranks->len > 1)
      g_prefix_error (error, "the profiles are not of the same step of one job: ");
    return FALSE;
  }
  g_autofree char *source = source_of (m);
  const LsTraceHead head = { .name = m->spec->name,
                             .source = source,
                             .mesh = m->groups.has_mesh && !role_of ? &m->groups.mesh : NULL };
  m->import->text = ls_trace_format (plan, &head, error);
  return m->import->text != NULL;
}

/* ---- what is told ---- */

/* By what they are, then those alike are one. */
static int
by_kind (gconstpointer a, gconstpointer b)
{
  const LsProfileTraffic *x = a, *y = b;
  LS_SMALLER_FIRST (x->class, y->class);
  LS_SMALLER_FIRST (x->bytes, y->bytes);
  LS_SMALLER_FIRST (x->size, y->size);
  return (int) x->is_ours - (int) y->is_ours;
}

static void
join_alike (GArray *list)
{
  guint n = 0;
  g_array_sort (list, by_kind);
  for (guint i = 0; i < list->len; i++) {
    const LsProfileTraffic t = g_array_index (list, LsProfileTraffic, i);
    LsProfileTraffic *last = n > 0 ? &g_array_index (list, LsProfileTraffic, n - 1) : NULL;
    if (last && by_kind (last, &t) == 0) {
      last->n++;
      last->time += t.time;
    } else
      g_array_index (list, LsProfileTraffic, n++) = t;
  }
  g_array_set_size (list, n);
}

static int
most_time_first (gconstpointer a, gconstpointer b)
{
  const LsProfileTraffic *x = a, *y = b;
  LS_LARGER_FIRST (x->time, y->time);
  return by_kind (x, y);
}

static void
count (Importing *m)
{
  LsProfileImport *import = m->import;
  const Rank *r = rank_at (m, 0);
  for (guint i = 0; i < r->step->ops->len; i++) {
    const LsProfileOp *op = &g_array_index (r->step->ops, LsProfileOp, i);
    uint32_t group = op->op->group;
    LsTime time = (op->end - op->start) * PS_PER_NS;
    const LsProfileTraffic one
        = { .class = op->op->class,
            .bytes = op->op->bytes,
            .size = group ? (uint32_t) g_array_index (r->k->groups, LsKinetoGroup, group - 1).size : 0,
            .is_ours = op->kind == LS_PROFILE_COLLECTIVE,
            .n = 1,
            .time = time };
    if (ls_op_class_is_communication ((LsOpClass) op->op->class))
      g_array_append_val (import->traffic, one);
    else if (op->op->class == LS_CLASS_COPY)
      import->n_copies++;
    else {
      import->n_kernels++;
      import->kernels += time;
    }
    if (op->is_hosts && op->start > op->ready)
      import->host_late += (op->start - op->ready) * PS_PER_NS * (op->stream == LS_STREAM_COMPUTE);
  }
  join_alike (import->traffic);
  g_array_sort (import->traffic, most_time_first);
  import->n_syncs = r->step->syncs->len;
  import->step = r->cut.side->length;
  import->what = g_strdup (r->cut.what);
  import->gpu = g_strdup (r->k->gpu);
  import->n_profiles = m->ranks->len;
  import->n_ranks = m->groups.n_ranks;
  import->has_mesh = m->groups.has_mesh && m->ranks->len == 1;
  import->mesh = m->groups.mesh;
}

static void
note_ranks (Importing *m)
{
  uint32_t n = m->groups.n_ranks;
  if (m->ranks->len == 1 && n > 1)
    ls_note (m->import->notes,
             "one profile stands for all %u ranks: they run the same, and arrive at collectives together", n);
  else if (m->ranks->len < n)
    ls_note (m->import->notes, "%u of %u ranks have a profile: another runs that of the nearest below it",
             m->ranks->len, n);
  for (guint i = 0; i < m->groups.groups->len; i++) {
    const LsProfileGroup *g = &g_array_index (m->groups.groups, LsProfileGroup, i);
    if (g->is_inferred)
      ls_note (m->import->notes, "the group \"%s\" of %u ranks, %u apart, is assumed to be %s", g->called,
               g->size, g->stride, ls_slot_names[g->slot].name);
  }
}

static void
note_unknown (Importing *m)
{
  guint n = 0, of = 0, n_pairs = 0;
  LsTime time = 0;
  for (guint i = 0; i < m->import->traffic->len; i++) {
    const LsProfileTraffic *t = &g_array_index (m->import->traffic, LsProfileTraffic, i);
    bool is_pair = t->class == LS_CLASS_SEND_RECV;
    of += t->n;
    n += t->is_ours || is_pair ? 0 : t->n;
    n_pairs += is_pair ? t->n : 0;
    time += t->is_ours ? 0 : t->time;
  }
  g_autofree char *length = ls_format_time (time);
  if (!m->spec->as_measured && n > 0)
    ls_note (
        m->import->notes,
        "%u of %u communication kernels do not say what they move, or among which ranks: they take the time "
        "that they took on any cluster (with what other kernels of this kind took, %s)",
        n, of, length);
  if (!m->spec->as_measured && n_pairs > 0)
    ls_note (
        m->import->notes,
        "%u kernels send and receive between two ranks: they take the time that they took on any cluster",
        n_pairs);
}

static void
note_waits (Importing *m)
{
  const LsProfileStep *step = rank_at (m, 0)->step;
  if (step->n_inferred > 0)
    ls_note (m->import->notes,
             "%u waits between streams are inferred from the order of launches and the times of ops (%u are "
             "reported by the profile)",
             step->n_inferred, step->n_told);
  if (step->n_shared > 0)
    ls_note (m->import->notes, "%u streams share one with others: a replay has %d", step->n_shared,
             LS_N_STREAMS);
  if (rank_at (m, 0)->cut.is_open)
    ls_note (m->import->notes, "%s has no next step: it is assumed to end with its last op",
             rank_at (m, 0)->cut.what);
}

/* Whether the host is as far ahead of the GPU as the step ends as it was when it began. */
static void
note_unsteady (Importing *m)
{
  const LsMeasuredStep *cut = &rank_at (m, 0)->cut;
  const LsProfileOp *first = &g_array_index (rank_at (m, 0)->step->ops, LsProfileOp, 0);
  if (cut->next_launch == LS_KINETO_NONE || first->launch == LS_KINETO_NONE)
    return;
  int64_t ahead = (cut->end - cut->next_launch) - (first->start - first->launch);
  g_autofree char *length = ls_format_time (ABS (ahead) * PS_PER_NS);
  if (ABS (ahead) > (cut->end - cut->start) / 100)
    ls_note (
        m->import->notes,
        "%s is no steady step: the host %s the GPU by %s in it; a replay, which repeats it, may take another "
        "time",
        cut->what, ahead > 0 ? "gets ahead of" : "falls back towards", length);
}

/* Of kernels that ran beside communication. */
static void
note_beside (Importing *m)
{
  const LsProfileStep *step = rank_at (m, 0)->step;
  LsTime time = 0;
  for (guint i = 0; i < step->ops->len; i++)
    time += g_array_index (step->ops, LsProfileOp, i).beside * PS_PER_NS;
  g_autofree char *length = ls_format_time (time);
  if (time > 0)
    ls_note (m->import->notes,
             "%s of kernels ran together with communication that is ours now: their times hold its slowdown, "
             "which the replay does not add again, nor take away where there is less communication",
             length);
}

static gboolean
import_all (Importing *m, LsKineto *loaded, GError **error)
{
  if (!take_all (m, loaded, error) || !check_ranks (m, error) || !find_groups (m, error)
      || !write_text (m, error))
    return FALSE;
  count (m);
  note_ranks (m);
  note_unknown (m);
  note_waits (m);
  note_unsteady (m);
  note_beside (m);
  return TRUE;
}

LsProfileImport *
ls_profile_import_new (LsKineto *k, const LsProfileImportSpec *spec, GError **error)
{
  g_autoptr (LsProfileImport) import = g_new0 (LsProfileImport, 1);
  import->traffic = g_array_new (FALSE, FALSE, sizeof (LsProfileTraffic));
  import->notes = g_ptr_array_new_with_free_func (g_free);
  Importing m = { .spec = spec, .import = import, .ranks = g_array_new (FALSE, FALSE, sizeof (Rank)) };
  g_array_set_clear_func (m.ranks, rank_clear);
  gboolean ok = import_all (&m, k, error);
  g_array_unref (m.ranks);
  ls_profile_groups_clear (&m.groups);
  return ok ? g_steal_pointer (&import) : NULL;
}
