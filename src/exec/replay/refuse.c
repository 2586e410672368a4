/* exec/replay/refuse.c — what is refused before it is begun: a cluster that has not what the plan asks for,
 * and a run that would take too much memory or time. */
#include <lockstep/error.h>

#include "base/diag.h"
#include "exec/replay/state.h"

/* The plan knows nothing of the cluster that it runs on. */
static gboolean
check_gpus (const Run *x, GError **error)
{
  uint32_t n_listed = x->plan->gpu_of_rank || x->plan->n_ranks > x->cluster->n_gpus ? x->plan->n_ranks : 0;
  for (uint32_t r = 0; r < n_listed; r++)
    if (ls_plan_gpu (x->plan, r) >= x->cluster->n_gpus)
      return ls_fail (error, LS_ERROR_CONFLICT, "rank %u runs on %s %u, but the cluster has %u %s", r,
                      ls_cluster_chip_word (&x->cluster->spec, 1), ls_plan_gpu (x->plan, r),
                      x->cluster->n_gpus, ls_cluster_chip_word (&x->cluster->spec, x->cluster->n_gpus));
  return TRUE;
}

static bool
has_host_memory (const LsCluster *c)
{
  LsRoute route;
  ls_route_host_memory (c, 0, true, &route);
  return route.n_hops > 0 && (!ls_cluster_traits (&c->spec)->has_counts || c->spec.server.cpu_sockets > 0);
}

/* What a copy loads must be there; one of recorded length loads nothing. */
static gboolean
check_copies (const Run *x, GError **error)
{
  bool has_drives = ls_cluster_has_nvme (x->cluster), has_memory = has_host_memory (x->cluster);
  for (uint32_t s = 0; s < x->plan->n_segments && !(has_drives && has_memory); s++)
    for (uint32_t i = 0; i < x->plan->segments[s].n_ops; i++) {
      const LsOp *op = &x->plan->segments[s].ops[i];
      if (!ls_op_takes (op->kind, LS_TAKES_ENGINE) || op->recorded != LS_TIME_NEVER)
        continue;
      bool is_nvme = ls_copies[op->direction].way == LS_COPY_BY_NVME;
      if (!(ls_copies[op->direction].is_in_host && !has_memory) && !(is_nvme && !has_drives))
        continue;
      return ls_fail (error, LS_ERROR_CONFLICT, "segment %u (%s) %s", s, x->plan->segments[s].name,
                      is_nvme ? "copies from or to NVMe, but the nodes have no drives"
                              : "works in the memory of CPUs, but the nodes have none");
    }
  return TRUE;
}

static bool
has_states_outside (const LsPlan *plan)
{
  for (uint32_t role = 0; role < plan->n_roles; role++)
    if (plan->programs[role].host_bytes > 0 || plan->programs[role].nvme_bytes > 0)
      return true;
  return false;
}

/* States that live outside the accelerators find room in the memory and on the drives of each host,
 * as far as their sizes are known. */
static gboolean
check_room_outside (const Run *x, GError **error)
{
  uint32_t n_of_node = ls_cluster_n_cpu_hosts (&x->cluster->spec), /* each has as many as the first */
      n_hosts = x->cluster->spec.n_nodes * n_of_node;
  if (!has_states_outside (x->plan))
    return TRUE;
  g_autofree uint64_t *in_memory = g_new0 (uint64_t, n_hosts), *on_drives = g_new0 (uint64_t, n_hosts);
  for (uint32_t r = 0; r < x->plan->n_ranks; r++) {
    const LsProgram *p = &x->plan->programs[ls_plan_role (x->plan, r)];
    uint32_t gpu = ls_plan_gpu (x->plan, r), node = ls_cluster_host_of (x->cluster, gpu),
             host = node * n_of_node + ls_cluster_cpu_host_of (x->cluster, gpu);
    const LsClusterSpec *spec = ls_cluster_node_spec (x->cluster, node);
    uint64_t memory = spec->server.cpu_memory_bytes,
             drives = spec->server.nvme_bytes * spec->server.nvme_drives;
    in_memory[host] += p->host_bytes;
    on_drives[host] += p->nvme_bytes;
    bool is_memory = memory > 0 && in_memory[host] > memory,
         is_drives = drives > 0 && on_drives[host] > drives;
    if (!is_memory && !is_drives)
      continue;
    g_autofree char *has = ls_format_bytes (is_memory ? memory : drives);
    return ls_fail (error, LS_ERROR_CONFLICT,
                    "what is offloaded to the %s of node %u takes more than its %s; expected more nodes, or "
                    "less offloaded",
                    is_memory ? "memory" : "drives", node, has);
  }
  return TRUE;
}

gboolean
run_check_plan (const Run *x, GError **error)
{
  return check_gpus (x, error) && check_copies (x, error) && check_room_outside (x, error);
}

/* --- limits ---------------------------------------------------------------- */

/* Ops of one step of a role, and the most that one of its frames holds. */
static uint64_t
count_ops (const Run *x, const LsProgram *p, uint32_t *ret_longest)
{
  uint64_t n = 0;
  *ret_longest = 0;
  for (uint32_t i = 0; i < p->n_instances; i++) {
    uint32_t n_ops = x->segments[p->instances[i].segment].n_ops;
    n += n_ops;
    *ret_longest = MAX (*ret_longest, n_ops);
  }
  return n;
}

/* Seconds of a role's kernels in one step, one after the other, on nodes of that kind. */
static double
serial_seconds (const Run *x, const LsProgram *p, const XKind *kind)
{
  double sum = 0;
  g_autofree uint32_t *n_uses = ls_program_uses (x->plan, p, 0);
  for (uint32_t s = 0; s < x->plan->n_segments; s++)
    for (uint32_t o = 0; o < kind->segments[s].n_ops && n_uses[s] > 0; o++) {
      const XOp *op = &kind->segments[s].x[o];
      bool is_unknown
          = ls_op_takes (op->kind, LS_TAKES_ENGINE) && op->alone == LS_TIME_NEVER; /* its path decides */
      sum += n_uses[s]
          * ((is_unknown ? 0 : ls_time_to_s (op->alone)) + ls_time_to_s (op->host + op->host_rest));
    }
  return sum;
}

gboolean
run_check_limits (const Run *x, GError **error)
{
  double bytes = 0, n_ops = 0, longest_s = 0, slowest = 1;
  g_autofree uint64_t *n_ranks = ls_plan_ranks_of_roles (x->plan);
  for (uint32_t role = 0; role < x->plan->n_roles; role++) {
    const LsProgram *p = &x->plan->programs[role];
    uint32_t longest;
    double ops = (double) count_ops (x, p, &longest), ranks = (double) n_ranks[role];
    double spans = x->options.no_spans ? 0 : x->keeps_all_spans ? ranks : 1;
    double per_rank = sizeof (Rank) + 6 * sizeof (Frame) + 3.0 * longest * 13 + sizeof (Channel) * 2
        + (double) p->n_events * x->plan->n_micro_batches * x->plan->n_chunks * sizeof (EventRecord);
    n_ops += ops * ranks;
    bytes += ranks * per_rank + spans * 2 * (double) x->spans_of_role[role] * sizeof (LsSpan);
    for (const XKind *kind = x->kinds; kind < x->kinds + LS_MAX_NODE_KINDS; kind++)
      longest_s = MAX (longest_s, kind->gpu ? serial_seconds (x, p, kind) : 0);
  }
  if (bytes > (double) x->options.max_memory_bytes) {
    g_autofree char *need = ls_format_bytes ((uint64_t) MIN (bytes, 1e18)),
                    *may = ls_format_bytes (x->options.max_memory_bytes);
    return ls_fail (error, LS_ERROR_LIMIT,
                    "a step of %.3g ops on %u ranks needs about %s of memory; --max-memory is %s", n_ops,
                    x->plan->n_ranks, need, may);
  }
  for (uint32_t r = 0; x->options.slow && r < x->whole->plan->n_ranks; r++)
    slowest = MAX (slowest, x->options.slow[r]);
  longest_s *= slowest;
  uint32_t n_steps = MAX (1, x->options.n_steps);
  if (longest_s * (n_steps + 1) > 0.25 * ls_time_to_s (LS_TIME_NEVER))
    return ls_fail (error, LS_ERROR_LIMIT,
                    "a step of this job takes %.3g days or more; %.3g can be simulated", longest_s / 86400,
                    0.25 * ls_time_to_s (LS_TIME_NEVER) / 86400 / (n_steps + 1));
  return TRUE;
}
