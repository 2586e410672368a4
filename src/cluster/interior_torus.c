/* cluster/interior_torus.c — the inside of a TPU slice.
 *
 *     chip -- ICI --> neighbours              a pair of trunks an edge
 *     chip -- PCIe --> its host's CPU         a pair a chip
 *     CPU  -- memory                          a pair a host
 *     CPU  -- NIC                             a pair a NIC, at the rate of its port
 *
 * in this order; vertices: chips, CPUs, their memories, NICs. The chips of a host share
 * its NICs, dealt out in runs.
 *
 * Ways are dimension-ordered: along x first, then y, then z, each the shorter way round;
 * where both ways round are as long, half the flow takes each (ideal spreading). So
 * there is one path, or one of 2, 4, 8 equal ones, and no cycle of waiting links within
 * an axis-ordered mesh (Dally & Seitz, IEEE Trans. Computers C-36, 1987).
 *
 *     (0,0) to (3,3) without wrap: 3 links along x, 3 along y, 6 us at 1 us a link
 *
 * Deviations: adaptive routing; DCN traffic also crosses the host's memory. */
#include "cluster/index.h"

#include <string.h>

uint32_t
ls_torus_n_chips (const LsTorusSpec *t)
{
  return t->dims[0] * t->dims[1] * t->dims[2];
}

/* Chips of a host along an axis. */
static uint32_t
host_chips (const LsTorusSpec *t, uint32_t axis)
{
  return MIN (t->host[axis], t->dims[axis]);
}

uint32_t
ls_torus_n_hosts (const LsTorusSpec *t)
{
  uint32_t n = 1;
  for (uint32_t a = 0; a < LS_TORUS_AXES; a++)
    n *= t->dims[a] / host_chips (t, a);
  return n;
}

static bool
is_whole_cubes (const uint32_t *dims, uint32_t n_axes)
{
  for (uint32_t a = 0; a < n_axes; a++)
    if (dims[a] % 4 != 0)
      return false;
  return true;
}

bool
ls_torus_wraps (const LsTorusSpec *t, uint32_t axis)
{
  if (axis >= t->n_axes || t->dims[axis] < 3)
    return false;
  switch (t->wrap) {
  case LS_WRAP_ALL:
    return true;
  case LS_WRAP_FULL_AXES:
    return t->dims[axis] == t->largest[axis];
  case LS_WRAP_CUBES:
    return is_whole_cubes (t->dims, t->n_axes);
  case LS_WRAP_NONE:
  default:
    return false;
  }
}

LsTorusCoord
ls_torus_coord (const LsTorusSpec *t, uint32_t chip)
{
  return (LsTorusCoord) { { chip % t->dims[0], chip / t->dims[0] % t->dims[1],
                            chip / (t->dims[0] * t->dims[1]) } };
}

uint32_t
ls_torus_chip (const LsTorusSpec *t, LsTorusCoord c)
{
  return c.at[0] + t->dims[0] * (c.at[1] + t->dims[1] * c.at[2]);
}

uint32_t
ls_torus_host_of (const LsTorusSpec *t, uint32_t chip)
{
  LsTorusCoord c = ls_torus_coord (t, chip);
  uint32_t host = 0;
  for (uint32_t a = LS_TORUS_AXES; a-- > 0;)
    host = host * (t->dims[a] / host_chips (t, a)) + c.at[a] / host_chips (t, a);
  return host;
}

/* Joined neighbours along an axis: L on a ring of L, L - 1 on a line. */
static uint32_t
ls_torus_n_edges (const LsTorusSpec *t, uint32_t axis)
{
  return t->dims[axis] - (ls_torus_wraps (t, axis) ? 0 : 1);
}

/* Which way a flow goes along an axis, and how far; the shorter one. On a ring of even
 * length half way round is as far both ways: then is_both, and half of it goes each way. */
typedef struct {
  uint32_t n_hops;
  bool is_backward, is_both;
} LsTorusLeg;

static LsTorusLeg
ls_torus_leg (const LsTorusSpec *t, uint32_t axis, uint32_t from, uint32_t to)
{
  if (!ls_torus_wraps (t, axis))
    return (LsTorusLeg) { .n_hops = from < to ? to - from : from - to, .is_backward = to < from };
  uint32_t forward = (to + t->dims[axis] - from) % t->dims[axis];
  uint32_t backward = (t->dims[axis] - forward) % t->dims[axis];
  return (LsTorusLeg) { .n_hops = MIN (forward, backward),
                        .is_backward = backward < forward,
                        .is_both = forward == backward && forward > 0 };
}

/* Lines along x come first, two trunks an edge, then those along y, then z. */
static uint32_t
ls_torus_trunk (const LsTorusSpec *t, uint32_t chip, uint32_t axis, bool is_backward)
{
  uint32_t first = 0, n_chips = ls_torus_n_chips (t);
  for (uint32_t a = 0; a < axis; a++)
    first += 2 * ls_torus_n_edges (t, a) * (n_chips / t->dims[a]);

  LsTorusCoord c = ls_torus_coord (t, chip);
  const uint32_t line[LS_TORUS_AXES]
      = { c.at[1] + t->dims[1] * c.at[2], c.at[0] + t->dims[0] * c.at[2], c.at[0] + t->dims[0] * c.at[1] };
  uint32_t n_edges = ls_torus_n_edges (t, axis), at = c.at[axis];
  uint32_t edge = is_backward ? (at + t->dims[axis] - 1) % t->dims[axis] : at;
  return edge < n_edges ? first + 2 * (line[axis] * n_edges + edge) + is_backward : G_MAXUINT32;
}

/* --- slices of a size --- */

#define CUBE_CHIPS 64

/* Whole hosts, or a part of one; beyond one cube, whole cubes where these are the rule. */
static bool
is_slice (const LsTorusSpec *t, const uint32_t *dims)
{
  bool is_whole = true, is_part = true;
  for (uint32_t a = 0; a < t->n_axes; a++) {
    is_whole = is_whole && dims[a] % t->host[a] == 0;
    is_part = is_part && dims[a] <= t->host[a];
  }
  bool is_small = t->wrap != LS_WRAP_CUBES || dims[0] * dims[1] * dims[2] <= CUBE_CHIPS;
  return (is_whole || is_part) && (is_small || is_whole_cubes (dims, t->n_axes));
}

/* The best shape of n chips, short x first, then short y; false if there is none. */
static bool
find_shape (const LsTorusSpec *t, uint32_t n, uint32_t *ret_dims)
{
  uint32_t best_sum = G_MAXUINT32;
  for (uint32_t x = 1; x <= t->largest[0]; x++)
    for (uint32_t y = 1; n % x == 0 && y <= t->largest[1]; y++) {
      const uint32_t dims[LS_TORUS_AXES] = { x, y, n / x / y };
      if (n / x % y != 0 || dims[2] > t->largest[2] || !is_slice (t, dims) || x + y + dims[2] >= best_sum)
        continue;
      memcpy (ret_dims, dims, sizeof dims);
      best_sum = x + y + dims[2];
    }
  return best_sum < G_MAXUINT32;
}

/* The slice of a job of n_chips > 0, or of its share where it needs more than the largest
 * slice: then as few slices as hold it, all alike.
 *
 * It is the smallest slice with so many chips that is whole hosts, or a part of one, and
 * no axis longer than the largest slice's; with the wrap rule "cubes" whole cubes if it
 * has more than 64 chips. Of several, the one with the smallest sum of axes, then with the
 * shortest x, then y: 32 chips of v5e are 4 x 8, 2048 of v5p 8 x 16 x 16. */
static void
ls_torus_fit (LsTorusSpec *t, uint32_t n_chips)
{
  memcpy (t->dims, t->largest, sizeof t->dims);
  uint32_t capacity = ls_torus_n_chips (t);
  if (capacity > LS_TORUS_MAX_CHIPS || !is_slice (t, t->largest))
    return; /* no slice of any size: the builder says why */
  uint32_t n_slices = (n_chips - 1) / capacity + 1;
  for (uint32_t n = (n_chips - 1) / n_slices + 1; n < capacity; n++)
    if (find_shape (t, n, t->dims))
      return;
}

/* Room for three ways side by side (network/torus/coll_torus.c), and out to the NICs. */
#define MAX_WAY ((LS_ROUTE_MAX_INTERIOR - 16) / 3)

typedef struct {
  LsInterior base;
  uint32_t v_cpu, v_memory;
  uint32_t t_pcie, t_memory, t_nic; /* first trunk of each section */
  uint32_t chips_per_host;
} Torus;

static uint32_t
n_ici_trunks (const LsTorusSpec *t)
{
  uint32_t n = 0;
  for (uint32_t a = 0; a < LS_TORUS_AXES; a++)
    n += 2 * ls_torus_n_edges (t, a) * (ls_torus_n_chips (t) / t->dims[a]);
  return n;
}

/* Links of the longest way between two chips, both ways round counted where it splits. */
static uint32_t
longest_way (const LsTorusSpec *t)
{
  uint32_t n = 0;
  for (uint32_t a = 0; a < LS_TORUS_AXES; a++)
    n += ls_torus_wraps (t, a) && t->dims[a] % 2 != 0 ? t->dims[a] / 2 : ls_torus_n_edges (t, a);
  return n;
}

static gboolean
check_shape (const LsTorusSpec *t, GError **error)
{
  uint64_t n = 1;
  for (uint32_t a = 0; a < LS_TORUS_AXES; a++) {
    if (t->dims[a] == 0 || t->host[a] == 0)
      return ls_spec_conflict (error, "torus: expected at least 1 chip along each axis");
    if (t->dims[a] > t->host[a] && t->dims[a] % t->host[a] != 0)
      return ls_spec_conflict (error, "torus: %u chips along axis %c do not deal out to hosts of %u",
                               t->dims[a], "xyz"[a], t -> host[a]);
    n = t->dims[a] > LS_TORUS_MAX_CHIPS ? UINT32_MAX : n * t->dims[a];
  }
  for (uint32_t a = 0; a < t->n_axes; a++)
    if (t->dims[a] > t->largest[a])
      return ls_spec_conflict (
          error, "torus: a slice of %u chips along axis %c; expected at most the %u of the largest slice",
          t->dims[a], "xyz"[a], t -> largest[a]);
  if (n > LS_TORUS_MAX_CHIPS)
    return ls_spec_conflict (error, "torus: a slice of %ux%ux%u chips; expected at most %u chips", t->dims[0],
                             t->dims[1], t->dims[2], LS_TORUS_MAX_CHIPS);
  if (longest_way (t) > MAX_WAY)
    return ls_spec_conflict (error,
                             "torus: a way across %ux%ux%u chips can take %u links; expected at most %u",
                             t->dims[0], t->dims[1], t->dims[2], longest_way (t), MAX_WAY);
  return TRUE;
}

static gboolean
check (const LsClusterSpec *s, GError **error)
{
  const LsTorusSpec *t = &s->torus;
  if (!check_shape (t, error))
    return FALSE;
  if (s->gpus_per_node != ls_torus_n_chips (t) || s->nics.n != ls_torus_n_hosts (t) * t->nics_per_host)
    return ls_spec_conflict (error, "torus: %u chips and %u NICs a node; the slice has %u chips and %u NICs",
                             s->gpus_per_node, s->nics.n, ls_torus_n_chips (t),
                             ls_torus_n_hosts (t) * t->nics_per_host);
  return ls_spec_check_link ("torus link", ls_torus_n_chips (t) > 1, &s->ici, error)
      && ls_spec_check_link ("torus pcie link", TRUE, &s->server.pcie, error)
      && ls_spec_check_link ("torus host memory", TRUE, &s->server.cpu_memory, error)
      && ls_spec_check_link ("nic link", s->nics.n > 0, &s->nics.port, error);
}

static double
n_links (const LsClusterSpec *s)
{
  const LsTorusSpec *t = &s->torus;
  return n_ici_trunks (t) + 2.0 * (ls_torus_n_chips (t) + ls_torus_n_hosts (t) + s->nics.n);
}

static LsInterior *
torus_new (const LsClusterSpec *spec, LsArena *arena)
{
  Torus *x = ls_arena_new_array (arena, Torus, 1);
  const LsTorusSpec *t = &spec->torus;
  uint32_t n_chips = ls_torus_n_chips (t), n_hosts = ls_torus_n_hosts (t);
  x->chips_per_host = n_chips / n_hosts;
  x->v_cpu = n_chips;
  x->v_memory = x->v_cpu + n_hosts;
  x->t_pcie = n_ici_trunks (t);
  x->t_memory = x->t_pcie + 2 * n_chips;
  x->t_nic = x->t_memory + 2 * n_hosts;
  x->base = (LsInterior) { .n_vertices = x->v_memory + n_hosts + spec->nics.n,
                           .n_trunks = x->t_nic + 2 * spec->nics.n,
                           .v_gpu = 0,
                           .v_nic = x->v_memory + n_hosts };
  return &x->base;
}

/* --- laying out --- */

static void
lay_out_axis (const LsTorusSpec *t, LsCluster *c, uint32_t host, uint32_t v, uint32_t axis)
{
  uint32_t n_lines = ls_torus_n_chips (t) / t->dims[axis];
  for (uint32_t line = 0; line < n_lines; line++)
    for (uint32_t edge = 0; edge < ls_torus_n_edges (t, axis); edge++) {
      uint32_t a = axis == 0 ? 1 : 0, b = 3 - axis - a; /* the other two, fastest first */
      LsTorusCoord from, to;
      from.at[a] = to.at[a] = line % t->dims[a];
      from.at[b] = to.at[b] = line / t->dims[a];
      from.at[axis] = edge;
      to.at[axis] = (edge + 1) % t->dims[axis];
      uint32_t i = ls_torus_chip (t, from), k = ls_torus_chip (t, to);
      ls_layout_pair (c, LS_END (v + i, host, "gpu", i), LS_END (v + k, host, "gpu", k), 1, 1, &c->spec.ici);
    }
}

static void
lay_out_hosts (const Torus *x, LsCluster *c, uint32_t host, uint32_t v)
{
  const LsClusterSpec *s = x->base.spec;
  uint32_t n_chips = ls_torus_n_chips (&s->torus), n_hosts = ls_torus_n_hosts (&s->torus);
  for (uint32_t i = 0; i < n_chips; i++) {
    uint32_t cpu = ls_torus_host_of (&s->torus, i);
    ls_layout_pair (c, LS_END (v + i, host, "gpu", i), LS_END (v + x->v_cpu + cpu, host, "cpu", cpu), 1, 1,
                    &s->server.pcie);
  }
  for (uint32_t i = 0; i < n_hosts; i++)
    ls_layout_pair (c, LS_END (v + x->v_cpu + i, host, "cpu", i),
                    LS_END (v + x->v_memory + i, host, "memory", i), 1, 1, &s->server.cpu_memory);
  for (uint32_t i = 0; i < s->nics.n; i++) {
    uint32_t cpu = i / s->torus.nics_per_host;
    ls_layout_pair (c, LS_END (v + x->v_cpu + cpu, host, "cpu", cpu),
                    LS_END (v + x->base.v_nic + i, host, "nic", i), 1, 1, &s->nics.port);
  }
}

static void
lay_out (const LsInterior *interior, LsCluster *c, uint32_t host)
{
  const Torus *x = (const Torus *) interior;
  const LsTorusSpec *t = &x->base.spec->torus;
  uint32_t v = c->nodes->len;
  ls_layout_vertices (c, LS_NODE_GPU, host, ls_torus_n_chips (t));
  ls_layout_vertices (c, LS_NODE_CPU, host, ls_torus_n_hosts (t));
  ls_layout_vertices (c, LS_NODE_CPU_MEMORY, host, ls_torus_n_hosts (t));
  ls_layout_vertices (c, LS_NODE_NIC, host, x->base.spec->nics.n);
  for (uint32_t axis = 0; axis < t->n_axes; axis++)
    lay_out_axis (t, c, host, v, axis);
  lay_out_hosts (x, c, host, v);
}

/* --- ways --- */

static void
walk (const LsTorusSpec *t, LsTorusCoord *at, uint32_t axis, bool is_backward, uint32_t n_hops,
      uint32_t share, LsRoute *r)
{
  for (uint32_t i = 0; i < n_hops; i++) {
    g_assert (r->n_hops < LS_ROUTE_MAX_HOPS);
    uint32_t trunk = ls_torus_trunk (t, ls_torus_chip (t, *at), axis, is_backward);
    r->hop[r->n_hops++] = (LsHop) { .trunk = trunk, .share = share };
    at->at[axis] = (at->at[axis] + (is_backward ? t->dims[axis] - 1 : 1)) % t->dims[axis];
  }
}

/* Along first_axis, then the others in cyclic order; trunks of the slice. */
static void
cross (const LsClusterSpec *s, uint32_t from, uint32_t to, uint32_t first_axis, LsRoute *r)
{
  const LsTorusSpec *t = &s->torus;
  LsTorusCoord at = ls_torus_coord (t, from), end = ls_torus_coord (t, to);
  for (uint32_t i = 0; i < t->n_axes; i++) {
    uint32_t axis = (first_axis + i) % t->n_axes;
    LsTorusLeg leg = ls_torus_leg (t, axis, at.at[axis], end.at[axis]);
    uint32_t share = leg.is_both ? LS_HOP_WHOLE / 2 : LS_HOP_WHOLE;
    LsTorusCoord other = at;
    walk (t, &at, axis, leg.is_backward, leg.n_hops, share, r);
    if (leg.is_both)
      walk (t, &other, axis, true, leg.n_hops, share, r);
    r->latency += leg.n_hops * s->ici.latency;
  }
}

static uint32_t
nic_of_gpu (const LsInterior *interior, uint32_t gpu)
{
  const Torus *x = (const Torus *) interior;
  const LsTorusSpec *t = &x->base.spec->torus;
  LsTorusCoord c = ls_torus_coord (t, gpu);
  uint32_t chip = 0; /* within its host */
  for (uint32_t a = LS_TORUS_AXES; a-- > 0;) {
    uint32_t n = MIN (t->host[a], t->dims[a]);
    chip = chip * n + c.at[a] % n;
  }
  return ls_torus_host_of (t, gpu) * t->nics_per_host + chip * t->nics_per_host / x->chips_per_host;
}

/* The chip through which a chip reaches a NIC: itself, or one of the NIC's host. */
static uint32_t
gateway (const Torus *x, uint32_t gpu, uint32_t nic)
{
  const LsTorusSpec *t = &x->base.spec->torus;
  uint32_t host = nic / t->nics_per_host;
  if (ls_torus_host_of (t, gpu) == host)
    return gpu;
  uint32_t chip = 0;
  while (ls_torus_host_of (t, chip) != host)
    chip++;
  return chip;
}

static void
to_nic (const Torus *x, uint32_t gpu, uint32_t nic, LsRoute *r)
{
  uint32_t chip = gateway (x, gpu, nic);
  cross (x->base.spec, gpu, chip, 0, r);
  ls_route_hop (r, x->t_pcie + 2 * chip, x->base.spec->server.pcie.latency);
  ls_route_hop (r, x->t_nic + 2 * nic, x->base.spec->nics.port.latency);
}

static void
from_nic (const Torus *x, uint32_t nic, uint32_t gpu, LsRoute *r)
{
  uint32_t chip = gateway (x, gpu, nic);
  ls_route_hop (r, x->t_nic + 2 * nic + 1, x->base.spec->nics.port.latency);
  ls_route_hop (r, x->t_pcie + 2 * chip + 1, x->base.spec->server.pcie.latency);
  cross (x->base.spec, chip, gpu, 0, r);
}

static void
way (const LsInterior *interior, LsLeg leg, uint32_t from, uint32_t to, LsRoute *r)
{
  const Torus *x = (const Torus *) interior;
  uint32_t first = r->n_hops;
  if (leg == LS_LEG_WITHIN)
    cross (x->base.spec, from, to, 0, r);
  else if (leg == LS_LEG_TO_NIC)
    to_nic (x, from, to, r);
  else if (leg == LS_LEG_FROM_NIC)
    from_nic (x, from, to, r);
  else {
    ls_route_hop (r, x->t_pcie + 2 * from, x->base.spec->server.pcie.latency);
    ls_route_hop (r, x->t_memory + 2 * ls_torus_host_of (&x->base.spec->torus, from),
                  x->base.spec->server.cpu_memory.latency);
  }
  if (leg == LS_LEG_FROM_MEMORY)
    ls_route_turn_back (r, first);
}

/* --- the size of a slice --- */

void
ls_cluster_spec_set_slice (LsClusterSpec *s, const uint32_t dims[LS_TORUS_AXES])
{
  LsTorusSpec *t = &s->torus;
  memmove (t->dims, dims, sizeof t->dims);
  s->gpus_per_node = ls_torus_n_chips (t);
  s->nics.n = ls_torus_n_hosts (t) * t->nics_per_host;
}

void
ls_cluster_spec_init_torus (LsClusterSpec *s)
{
  LsTorusSpec *t = &s->torus;
  s->interior = LS_INTERIOR_TORUS;
  t->n_axes = t->largest[2] > 0 ? 3 : 2;
  t->is_given = t->dims[0] > 0;
  for (uint32_t a = t->n_axes; a < LS_TORUS_AXES; a++)
    t->largest[a] = t->host[a] = t->dims[a] = 1;
  ls_cluster_spec_set_slice (s, t->is_given ? t->dims : t->largest);
}

/* Node after node; nodes beyond those of the file are of the first kind. */
static uint32_t
nodes_of_kinds_for (const LsClusterSpec *s, uint32_t n_gpus)
{
  uint32_t n_nodes = 0;
  for (uint64_t n = 0; n < n_gpus; n_nodes++)
    n += ls_cluster_spec_gpus_of (s, n_nodes);
  return MAX (n_nodes, 1);
}

void
ls_cluster_spec_fit (LsClusterSpec *s, uint32_t n_gpus)
{
  if (s->torus.n_axes > 0 && !s->torus.is_given) {
    LsTorusSpec t = s->torus;
    ls_torus_fit (&t, n_gpus);
    ls_cluster_spec_set_slice (s, t.dims);
  }
  s->n_nodes = s->others ? nodes_of_kinds_for (s, n_gpus) : (n_gpus - 1) / ls_cluster_taken (s) + 1;
}

/* --- for messages that take several ways --- */

void
ls_route_torus (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to, uint32_t first_axis,
                LsRoute *ret_route)
{
  uint32_t per_node = c->spec.gpus_per_node, node = gpu_from / per_node;
  g_assert (c->spec.interior == LS_INTERIOR_TORUS && gpu_to / per_node == node);
  ret_route->n_hops = 0;
  ret_route->latency = 0;
  cross (&c->spec, gpu_from % per_node, gpu_to % per_node, first_axis, ret_route);
  for (uint32_t i = 0; i < ret_route->n_hops; i++)
    ret_route->hop[i].trunk += ls_first_trunk (c, node);
}

static uint32_t
n_cpu_hosts (const LsClusterSpec *spec)
{
  return ls_torus_n_hosts (&spec->torus);
}

static uint32_t
cpu_host_of (const LsClusterSpec *spec, uint32_t gpu)
{
  return ls_torus_host_of (&spec->torus, gpu);
}

static const char *
word (const LsClusterSpec *spec)
{
  (void) spec;
  return "ici";
}

const LsInteriorKind ls_interior_torus = {
  .traits = { "torus", "chip", "chips", word, .is_slice = true, .runs_xla = true },
  .check = check,
  .n_links = n_links,
  .new = torus_new,
  .lay_out = lay_out,
  .way = way,
  .nic_of_gpu = nic_of_gpu,
  .n_cpu_hosts = n_cpu_hosts,
  .cpu_host_of = cpu_host_of,
};
