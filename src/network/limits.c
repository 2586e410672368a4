/* network/limits.c — how much work a call may be. Above a limit a plan or a script is
 * refused before it is begun; both are counted from above, at no cost. */
#include <lockstep/error.h>

#include "network/algorithm.h"

/* A plan looks at 2^24 messages a second, more or less; a run at 2^23 (one core of 2020). */
#define MAX_MESSAGES (UINT64_C (1) << 28)
/* Messages of all places at once, each of which keeps its route: some 700 bytes. */
#define MAX_AT_ONCE (UINT64_C (1) << 24)

static uint64_t
times (uint64_t a, uint64_t b)
{
  return b > 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

static gboolean
is_below (const LsCollCall *call, const char *algorithm, const char *what, uint64_t n, uint64_t limit,
          GError **error)
{
  if (n <= limit)
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_LIMIT,
               "%s over %u %s by %s is %.3g %s; the limit is %.3g\n"
               "note: take fewer %s%s, or another algorithm if there is one",
               ls_coll_kind_name (call->kind), call->n, ls_cluster_chip_word (&call->cluster->spec, call->n),
               algorithm, (double) n, what, (double) limit, ls_cluster_chip_word (&call->cluster->spec, 2),
               call->n_hosts > 1 && ls_coll_members_per_host (call) == 0 ? ", as many of each node" : "");
  return FALSE;
}

gboolean
ls_coll_plan_is_small (const LsCollCall *call, const LsCollAlgorithm *a, GError **error)
{
  return !a->n_messages
      || is_below (call, a->name, "messages to add up", a->n_messages (call), MAX_MESSAGES, error);
}

uint64_t
ls_script_n_messages (const LsScript *s)
{
  return times (times ((uint64_t) s->n + s->n_switches, s->max_sends), s->n_rounds);
}

gboolean
ls_coll_check_all (uint64_t n_messages, GError **error)
{
  if (n_messages <= MAX_MESSAGES)
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_LIMIT,
               "all sizes together are %.3g messages, one by one; the limit is %.3g\n"
               "note: take fewer sizes (--min, --max, --factor), fewer --gpus, or --network flow",
               (double) n_messages, (double) MAX_MESSAGES);
  return FALSE;
}

gboolean
ls_coll_script_is_small (const LsCollCall *call, const LsCollAlgorithm *a, const LsScript *s, GError **error)
{
  uint64_t at_once = times ((uint64_t) s->n + s->n_switches, s->max_sends), n = ls_script_n_messages (s);
  return is_below (call, a->name, "messages at once, one by one", at_once, MAX_AT_ONCE, error)
      && is_below (call, a->name, "messages, one by one", n, MAX_MESSAGES, error);
}
