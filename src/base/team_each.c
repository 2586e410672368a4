/* base/team_each.c — one loop by all processes of a team. The leader hands out one number at a time to
 * whoever has a thread idle, its own among them: one that is slow gets fewer. Then it tells each what the
 * others found. */
#include <lockstep/error.h>
#include <string.h>

#include "base/crew.h"
#include "base/handover.h"
#include "base/team.h"

#define POLL_US 100 /* of messages, beside results of own threads */

typedef struct {
  LsTeam *team;
  guint n;
  const LsTeamLoop *loop;
  LsCrew *threads;
  GAsyncQueue *done; /* number + 1, by threads here */
  guint n_done;
  guint *by;                 /* [n] process + 1 that has found it, 0: none yet; at a mate only its own */
  guint *n_threads, *n_busy; /* [processes], at the leader */
  GError *error;
} Each;

/* A result or an answer. */
typedef struct {
  uint64_t number;
  char bytes[LS_TEAM_MAX_BYTES - 2 * sizeof (uint64_t)];
} Told;

/* --- threads here --- */

static void
do_one (gpointer i_plus_one, gpointer data)
{
  Each *x = data;
  LS_TAKE_OVER (x);
  x->loop->each (GPOINTER_TO_UINT (i_plus_one) - 1, x->loop->data);
  LS_HAND_OVER (x->done);
  g_async_queue_push (x->done, i_plus_one);
}

static void
push (Each *x, guint i)
{
  LS_HAND_OVER (x);
  ls_crew_push (x->threads, GUINT_TO_POINTER (i + 1));
}

/* What a thread here has found; false: none has, after a while. */
static bool
pop (Each *x, guint *ret_i)
{
  gpointer i_plus_one = g_async_queue_timeout_pop (x->done, POLL_US);
  LS_TAKE_OVER (x->done);
  *ret_i = GPOINTER_TO_UINT (i_plus_one) - 1;
  return i_plus_one != NULL;
}

/* --- what is told --- */

static void
mark (Each *x, guint i, guint by)
{
  x->by[i] = by + 1;
  x->n_done++;
}

static void
tell (Each *x, guint to, LsTeamKind kind, guint i)
{
  Told told = { .number = i };
  g_autoptr (GVariant) answer = g_variant_ref_sink (x->loop->pack (i, x->loop->data));
  gsize size = g_variant_get_size (answer);
  if (size > sizeof told.bytes) {
    if (!x->error)
      g_set_error (&x->error, LS_ERROR, LS_ERROR_LIMIT,
                   "--mpi: an answer of %" G_GSIZE_FORMAT " bytes is longer than a message", size);
    return;
  }
  g_variant_store (answer, told.bytes);
  ls_team_send (x->team, to, kind, &told, (guint) (offsetof (Told, bytes) + size));
}

static void
hear (Each *x, const LsTeamMessage *m, guint by)
{
  uint64_t number;
  gsize size = m->number - sizeof number;
  memcpy (&number, m->bytes, sizeof number);
  char *own = g_memdup2 (m->bytes + sizeof number, size);
  g_autoptr (GVariant) answer = g_variant_ref_sink (
      g_variant_new_from_data (G_VARIANT_TYPE (x->loop->type), own, size, TRUE, g_free, own));
  x->loop->unpack ((guint) number, answer, x->loop->data);
  mark (x, (guint) number, by);
}

/* --- the leader --- */

/* Most of whose threads are idle; false: none is. */
static bool
find_idle (const Each *x, guint *ret_to)
{
  guint most = 0;
  for (guint i = 0; i < ls_team_n (x->team); i++)
    if (x->n_threads[i] > x->n_busy[i] && x->n_threads[i] - x->n_busy[i] > most) {
      most = x->n_threads[i] - x->n_busy[i];
      *ret_to = i;
    }
  return most > 0;
}

static void
give (Each *x, guint to, guint i)
{
  const uint64_t number = i;
  x->n_busy[to]++;
  if (to == 0)
    push (x, i);
  else
    ls_team_send (x->team, to, LS_TEAM_WORK, &number, sizeof number);
}

static void
take (Each *x)
{
  LsTeamMessage m;
  guint i, from;
  if (pop (x, &i)) {
    x->n_busy[0]--;
    mark (x, i, 0);
  }
  while (!x->error && ls_team_receive (x->team, &m, &from)) {
    if (m.kind == LS_TEAM_FAILED) {
      g_set_error (&x->error, LS_ERROR, (gint) m.number, "process %u: %s", from, m.bytes);
      return;
    }
    x->n_busy[from]--;
    hear (x, &m, from);
  }
}

static void
tell_all (Each *x)
{
  for (guint to = 1; to < ls_team_n (x->team); to++)
    for (guint i = 1; i < x->n; i++)
      if (x->by[i] != to + 1)
        tell (x, to, LS_TEAM_ANSWER, i);
}

static void
lead (Each *x, const LsProgress *progress)
{
  guint to, next = 1;
  while (x->n_done < x->n && !x->error) {
    while (next < x->n && find_idle (x, &to))
      give (x, to, next++);
    take (x);
    ls_progress_tell (progress, x->n_done, x->n);
  }
  if (!x->error)
    tell_all (x);
}

/* --- a mate --- */

static void
serve (Each *x)
{
  guint i, from;
  while (x->n_done < x->n && !x->error) {
    LsTeamMessage m;
    if (pop (x, &i)) {
      mark (x, i, ls_team_own_rank (x->team));
      tell (x, 0, LS_TEAM_WORK, i);
    }
    while (x->n_done < x->n && !x->error && ls_team_receive (x->team, &m, &from)) {
      uint64_t number;
      memcpy (&number, m.bytes, sizeof number);
      if (m.kind == LS_TEAM_WORK)
        push (x, (guint) number);
      else if (m.kind == LS_TEAM_ANSWER)
        hear (x, &m, 0);
      else
        g_set_error (&x->error, LS_ERROR, LS_ERROR_FAILED, "--mpi: process 0 has ended");
    }
  }
}

/* --- both --- */

/* Of the job and the first answer, which each process finds for itself. */
static char *
key_of (Each *x, const char *key)
{
  x->loop->each (0, x->loop->data);
  mark (x, 0, ls_team_own_rank (x->team));
  g_autoptr (GVariant) first = g_variant_ref_sink (x->loop->pack (0, x->loop->data));
  g_autofree char *text = g_variant_print (first, TRUE), *all = g_strconcat (key, "\n", text, NULL);
  return g_compute_checksum_for_string (G_CHECKSUM_SHA256, all, -1);
}

static gboolean
go_through (Each *x, const LsTeamSetup *setup, guint n_threads, GError **error)
{
  g_autofree char *key = key_of (x, setup->key);
  if (ls_team_own_rank (x->team) > 0) {
    ls_team_report (x->team, key, n_threads);
    serve (x);
  } else {
    if (!ls_team_gather (x->team, key, x->n_threads, error))
      return FALSE;
    x->n_threads[0] = n_threads;
    lead (x, setup->progress);
  }
  if (!x->error)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&x->error));
  return FALSE;
}

gboolean
ls_team_each (const LsTeamSetup *setup, guint n, const LsTeamLoop *loop, GError **error)
{
  if (!setup->team || n == 0) {
    ls_parallel (n, setup->n_threads, loop->each, loop->data, setup->progress);
    return TRUE;
  }
  guint n_threads = setup->n_threads > 0 ? setup->n_threads : ls_team_default_threads (setup->team);
  Each x = { .team = setup->team, .n = n, .loop = loop };
  x.by = g_new0 (guint, n);
  x.n_threads = g_new0 (guint, ls_team_n (x.team));
  x.n_busy = g_new0 (guint, ls_team_n (x.team));
  x.done = g_async_queue_new ();
  x.threads = ls_crew_new (do_one, &x, n_threads);
  gboolean ok = go_through (&x, setup, n_threads, error);
  ls_crew_end (x.threads); /* what runs, runs to its end */
  LS_TAKE_OVER (x.done);
  g_async_queue_unref (x.done);
  g_free (x.by);
  g_free (x.n_threads);
  g_free (x.n_busy);
  return ok;
}
