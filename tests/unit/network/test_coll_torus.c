/* Pins the collectives of a torus: the scaling book's worked examples (tpu-* of the
 * worked examples of tests/README.md, within the tolerances given there), bytes by formula,
 * and the scripts: what every member ends with, and that their messages load every link
 * as the plans do. */
#include "ls_test.h"
#include "tiny_cluster.h"
#include "built_cluster.h"

#include "cluster/route.h"
#include "core/maxmin.h" /* LS_COEF_ONE */
#include "network/coll.h"
#include "network/script.h"

/* Chips first, first + stride, .. */
static uint32_t *
some (uint32_t n, uint32_t first, uint32_t stride)
{
  uint32_t *gpus = g_new (uint32_t, n);
  for (uint32_t i = 0; i < n; i++)
    gpus[i] = first + i * stride;
  return gpus;
}

static LsTime
time_of (const LsCluster *c, LsCollKind kind, const uint32_t *gpus, uint32_t n, uint64_t bytes)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsNccl none = { 0 };
  LsCollRequest q = { .kind = kind, .gpus = gpus, .n = n, .bytes = bytes };
  const LsCollPlan *plan = ls_coll_plan (c, &none, &q, LS_NETWORK_FLOW, arena);
  LS_CHECK_STR (plan->algorithm, "torus");
  LS_CHECK_DOUBLE (plan->sm_share, ==, 0.0);
  return ls_coll_time_alone (c, plan);
}

static double
us (LsTime t)
{
  return ls_time_to_s (t) * 1e6;
}

/* --- worked examples --- */

/* 8 x 4 chips: no axis of 16, so none wraps; gathered along y. */
static void
v5e_gathers_along_a_line (void)
{
  LsClusterSpec spec = tiny_torus (1, 16, 16, 0, LS_WRAP_FULL_AXES);
  ls_cluster_spec_set_slice (&spec, (const uint32_t[]) { 8, 4, 1 });
  g_autoptr (LsCluster) c = built (spec);
  g_autofree uint32_t *gpus = some (4, 3, 8);
  LS_CHECK_NEAR (us (time_of (c, LS_COLL_ALL_GATHER, gpus, 4, 2 * 2048 * 8192)), 560, 0.01); /* tpu-ag-2 */
  LS_CHECK_NEAR (us (time_of (c, LS_COLL_ALL_GATHER, gpus, 4, 2 * 256 * 256)), 3, 1e-6);     /* tpu-ag-3 */
}

static void
v5e_gathers_along_a_ring (void)
{
  g_autoptr (LsCluster) c = built (tiny_torus (1, 8, 4, 0, LS_WRAP_ALL));
  g_autofree uint32_t *gpus = some (4, 3, 8);
  LS_CHECK_NEAR (us (time_of (c, LS_COLL_ALL_GATHER, gpus, 4, 2 * 2048 * 8192)), 377, 0.02); /* tpu-ag-1 */
}

static void
v4_gathers_and_reduces (void)
{
  g_autoptr (LsCluster) c = built (tiny_torus (1, 4, 4, 4, LS_WRAP_CUBES));
  g_autofree uint32_t *x = some (4, 4, 1), *xy = some (16, 16, 1), *z = some (4, 5, 16);
  uint64_t bytes = 2 * 1024 * 4096;
  LS_CHECK_NEAR (us (time_of (c, LS_COLL_ALL_GATHER, x, 4, bytes / 4)), 23, 0.02); /* tpu-ag-4 */
  LS_CHECK_NEAR (us (time_of (c, LS_COLL_ALL_GATHER, xy, 16, bytes)), 46, 0.02);   /* tpu-ag-5 */
  LS_CHECK_NEAR (us (time_of (c, LS_COLL_ALL_REDUCE, z, 4, bytes)), 190, 0.03);    /* tpu-ar-1 */
  LS_CHECK_NEAR (us (time_of (c, LS_COLL_ALL_GATHER, x, 4, 2 * 128)), 2, 1e-6);    /* tpu-ag-6 */
}

/* tpu-lat-thr: below this a hop of a gathering is bound by latency. */
static void
latency_binds_below_45_kB (void)
{
  g_autoptr (LsCluster) c = built (tiny_torus (1, 8, 4, 0, LS_WRAP_NONE));
  g_autofree uint32_t *gpus = some (4, 0, 8);
  LS_CHECK_NEAR (us (time_of (c, LS_COLL_ALL_GATHER, gpus, 4, 4 * 45000)), 3, 1e-6);
  LS_CHECK (us (time_of (c, LS_COLL_ALL_GATHER, gpus, 4, 4 * 45100)) > 3.005);
}

/* tpu-a2a: a quarter of V / W_bidirectional, exactly on an even ring. */
static void
all_to_all_takes_a_quarter (void)
{
  g_autoptr (LsCluster) c = built (tiny_torus (1, 16, 4, 0, LS_WRAP_ALL));
  g_autofree uint32_t *gpus = some (16, 0, 1);
  uint64_t shard = 1 << 26, whole = 16 * shard; /* each sends a shard, a 16th of it to each */
  double gather = us (time_of (c, LS_COLL_ALL_GATHER, gpus, 16, whole));
  LS_CHECK_NEAR (us (time_of (c, LS_COLL_ALL_TO_ALL, gpus, 16, shard)) / gather, 0.25, 1e-6);
}

static void
messages_take_two_ports (void)
{
  g_autoptr (LsCluster) c = built (tiny_torus (1, 4, 4, 0, LS_WRAP_NONE));
  const uint32_t corners[] = { 0, 15 };
  double first = us (time_of (c, LS_COLL_SEND_RECV, corners, 2, 0));
  double all = us (time_of (c, LS_COLL_SEND_RECV, corners, 2, 2 * 8 * 128 * 8192));
  LS_CHECK_NEAR (first, 6, 1e-6);         /* tpu-p2p-1 */
  LS_CHECK_NEAR (all - first, 188, 0.01); /* tpu-p2p-2 */
  LS_CHECK_NEAR (all, 194, 0.01);         /* as the later text has it */

  g_autofree uint32_t *gpus = some (16, 0, 1);
  LS_CHECK_NEAR (us (time_of (c, LS_COLL_GATHER, gpus, 16, UINT64_C (16000000000))) * 1e-3, 167,
                 0.01); /* tpu-q6-b */
}

/* From its root a broadcast goes both ways along a line, 1 us a chip: the longer way is waited for. */
static void
a_broadcast_takes_the_longer_way (void)
{
  static const double hops[] = { 7, 6, 5, 4, 4, 5, 6, 7 };
  g_autoptr (LsCluster) c = built (tiny_torus (1, 8, 4, 0, LS_WRAP_NONE));
  g_autoptr (LsArena) arena = ls_arena_new ();
  g_autofree uint32_t *gpus = some (8, 0, 1);
  const LsNccl none = { 0 };
  for (uint32_t root = 0; root < 8; root++)
    for (int reduces = 0; reduces < 2; reduces++) {
      LsCollRequest q = {
        .kind = reduces ? LS_COLL_REDUCE : LS_COLL_BROADCAST, .gpus = gpus, .n = 8, .root = root, .bytes = 8
      };
      LS_CHECK_NEAR (us (ls_coll_time_alone (c, ls_coll_plan (c, &none, &q, LS_NETWORK_FLOW, arena))),
                     hops[root], 1e-3);
    }
}

/* tpu-q6-a: 1 GB over the PCIe link of each chip; tpu-pcie-1: tokens from which 920
 * TFLOP/s hide the way of the weights from the host, 2 FLOPs for 2 bytes of each. */
static void
hosts_are_behind_pcie (void)
{
  g_autoptr (LsCluster) c = built (tiny_torus (1, 4, 4, 0, LS_WRAP_NONE));
  LsRoute r;
  double rate = INFINITY;
  ls_route_host_memory (c, 6, false, &r);
  for (uint32_t i = 0; i < r.n_hops; i++)
    rate = MIN (rate, ls_cluster_resource_capacity (c, r.hop[i].trunk));
  LS_CHECK_NEAR (1e9 / rate * 1e3, 66, 0.02);
  LS_CHECK_NEAR (9.2e14 / rate, 61000, 0.01);
}

/* --- scripts --- */

typedef struct {
  const LsCluster *cluster;
  const LsScript *script;
  uint8_t *sum; /* [place][block][member]: how often its contribution is in there */
} Proof;

static uint8_t *
sum_at (const Proof *p, uint32_t place, uint32_t block)
{
  return &p->sum[((gsize) place * p->script->n_blocks + block) * p->script->n];
}

/* Of the block, the member that has it at the start (gathering kinds). */
static uint32_t
owner_of (const LsScript *s, uint32_t block)
{
  if (s->kind == LS_COLL_BROADCAST || s->kind == LS_COLL_SCATTER || s->kind == LS_COLL_SEND_RECV)
    return s->root;
  uint32_t part = block / (s->n_blocks / s->n);
  for (uint32_t i = 0; i < s->n && s->part_of; i++)
    if (s->part_of[i] == part)
      return i;
  return part;
}

static bool
reduces (const LsScript *s)
{
  return s->kind == LS_COLL_ALL_REDUCE || s->kind == LS_COLL_REDUCE_SCATTER || s->kind == LS_COLL_REDUCE;
}

static void
start (Proof *p)
{
  const LsScript *s = p->script;
  p->sum = g_new0 (uint8_t, (gsize) s->n * s->n_blocks * s->n);
  for (uint32_t i = 0; i < s->n; i++)
    for (uint32_t b = 0; b < s->n_blocks; b++)
      sum_at (p, i, b)[i] = reduces (s) || owner_of (s, b) == i;
}

static bool
is_needed (const LsScript *s, uint32_t place, uint32_t block)
{
  uint32_t part = s->part_of ? s->part_of[place] : place;
  switch (s->kind) {
  case LS_COLL_ALL_TO_ALL:
    return block % s->n == place;
  case LS_COLL_REDUCE_SCATTER:
  case LS_COLL_SCATTER:
    return block / (s->n_blocks / s->n) == part;
  case LS_COLL_REDUCE:
  case LS_COLL_GATHER:
    return place == s->root;
  case LS_COLL_PERMUTE:
  case LS_COLL_COPY_PERMUTE:
    return (block + 1) % s->n == place;
  case LS_COLL_SEND_RECV:
    return place == 1;
  default:
    return true;
  }
}

static bool
is_done (const Proof *p)
{
  const LsScript *s = p->script;
  for (uint32_t i = 0; i < s->n; i++)
    for (uint32_t b = 0; b < s->n_blocks; b++)
      for (uint32_t m = 0; m < s->n && is_needed (s, i, b); m++)
        if (sum_at (p, i, b)[m] != (reduces (s) || owner_of (s, b) == m))
          return false;
  return true;
}

/* One message, with what its sender had when the round began. */
static bool
deliver (const Proof *p, const uint8_t *before, uint32_t from, const LsSend *send)
{
  const LsScript *s = p->script;
  for (uint32_t i = 0; i < send->n; i++) {
    uint32_t block = (send->first + i * MAX (send->stride, 1)) % s->n_blocks;
    const uint8_t *data = &before[((gsize) from * s->n_blocks + block) * s->n];
    uint8_t *to = sum_at (p, send->to, block);
    uint32_t n_in = 0;
    for (uint32_t m = 0; m < s->n; m++) {
      n_in += data[m];
      to[m] = data[m] + (send->reduces ? to[m] : 0);
    }
    if (n_in == 0)
      return false; /* sends what it does not have */
  }
  return true;
}

/* Runs the script in step; adds the bytes of its messages to each trunk. */
static bool
plays_out (Proof *p, double *trunk_bytes)
{
  const LsScript *s = p->script;
  gsize size = (gsize) s->n * s->n_blocks * s->n;
  g_autofree LsSend *sends = g_new (LsSend, s->max_sends);
  g_autofree uint32_t *got = g_new (uint32_t, s->n);
  g_autofree uint8_t *before = g_malloc (size);
  bool ok = true;
  start (p);
  for (uint32_t round = 0; round < s->n_rounds && ok; round++) {
    memcpy (before, p->sum, size);
    memset (got, 0, s->n * sizeof *got);
    for (uint32_t place = 0; place < s->n && ok; place++) {
      uint32_t n = s->sends (s, place, round, sends);
      ok = n <= s->max_sends;
      for (uint32_t i = 0; i < n && ok; i++) {
        LsRoute r;
        ls_script_route_channel (s, place, sends[i].to, 0, &r);
        for (uint32_t k = 0; k < r.n_hops; k++)
          trunk_bytes[r.hop[k].trunk] += sends[i].n * s->block_bytes * r.hop[k].share / LS_HOP_WHOLE;
        ok = deliver (p, before, place, &sends[i]);
        got[sends[i].to]++;
      }
    }
    for (uint32_t place = 0; place < s->n && ok; place++)
      ok = s->n_receives (s, place, round) == got[place];
  }
  ok = ok && is_done (p);
  g_clear_pointer (&p->sum, g_free);
  return ok;
}

/* Worst difference of what plan and messages put on a trunk, over the most on any. */
static double
mismatch (const LsCluster *c, const LsCollPlan *plan, double *trunk_bytes)
{
  double most = 0, worst = 0;
  for (guint t = 0; t < c->trunks->len; t++)
    most = MAX (most, trunk_bytes[t]);
  for (uint32_t i = 0; i < plan->n_phases; i++)
    for (uint32_t k = 0; k < plan->phases[i].n_loads; k++) {
      const LsLoad *load = &plan->phases[i].loads[k];
      if (load->resource < c->trunks->len)
        trunk_bytes[load->resource]
            -= plan->phases[i].demand_bytes * (double) load->coef / (double) LS_COEF_ONE;
    }
  for (guint t = 0; t < c->trunks->len; t++)
    worst = MAX (worst, ABS (trunk_bytes[t]));
  return worst / most;
}

static bool
check_kind (const LsCluster *c, LsCollKind kind, const uint32_t *gpus, uint32_t n)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsNccl none = { 0 };
  LsCollRequest q = { .kind = kind,
                      .gpus = gpus,
                      .n = n,
                      .root = ls_coll_kind_has_root (kind) ? n / 3 : 0,
                      .bytes = 3 * 5 * 7 * 64 * 1024 };
  const LsCollPlan *plan = ls_coll_plan (c, &none, &q, LS_NETWORK_FLOW, arena);
  Proof proof = { .cluster = c, .script = ls_coll_script (c, &none, &q, arena) };
  g_autofree double *bytes = g_new0 (double, c->trunks->len);
  bool ok = ls_check_impl (plays_out (&proof, bytes), __FILE__, __LINE__, "%s of %u from chip %u is wrong",
                           ls_coll_kind_name (kind), n, gpus[0]);
  double off = kind == LS_COLL_BARRIER ? 0 : mismatch (c, plan, bytes);
  return ls_check_impl (off < 2e-5, __FILE__, __LINE__,
                        "%s of %u from chip %u: plan and messages differ by %g", ls_coll_kind_name (kind), n,
                        gpus[0], off)
      && ok;
}

static void
check_kinds (const LsCluster *c, const uint32_t *gpus, uint32_t n)
{
  for (LsCollKind kind = 0; kind < LS_N_COLL_KINDS; kind++)
    if ((kind == LS_COLL_SEND_RECV) == (n == 2 && gpus[0] != 0) && !check_kind (c, kind, gpus, n))
      return;
}

static void
shuffle (uint32_t *gpus, uint32_t n, uint32_t seed)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
  for (uint32_t i = n - 1; i > 0; i--) {
    uint32_t k = (uint32_t) g_rand_int_range (rand, 0, (gint32) i + 1), other = gpus[k];
    gpus[k] = gpus[i];
    gpus[i] = other;
  }
}

static void
boxes_play_out (void)
{
  const struct {
    uint32_t dims[LS_TORUS_AXES], n, first, stride;
    LsTorusWrap wrap;
  } cases[] = {
    { { 4, 4, 0 }, 2, 0, 1, LS_WRAP_ALL },    { { 4, 4, 0 }, 4, 4, 1, LS_WRAP_ALL },    /* a ring           */
    { { 4, 4, 0 }, 4, 4, 1, LS_WRAP_NONE },   { { 4, 4, 0 }, 4, 1, 4, LS_WRAP_ALL },    /* a line; along y  */
    { { 4, 4, 0 }, 16, 0, 1, LS_WRAP_ALL },   { { 4, 4, 0 }, 16, 0, 1, LS_WRAP_NONE },  /* all              */
    { { 4, 6, 0 }, 24, 0, 1, LS_WRAP_ALL },   { { 4, 6, 0 }, 12, 0, 2, LS_WRAP_ALL },   /* every other chip */
    { { 8, 2, 0 }, 2, 2, 4, LS_WRAP_ALL },    { { 8, 4, 0 }, 4, 1, 2, LS_WRAP_ALL },    /* half way round   */
    { { 4, 4, 4 }, 64, 0, 1, LS_WRAP_CUBES }, { { 4, 4, 4 }, 16, 2, 4, LS_WRAP_CUBES }, /* a plane         */
    { { 4, 4, 2 }, 32, 0, 1, LS_WRAP_CUBES }, { { 4, 4, 4 }, 8, 40, 1, LS_WRAP_CUBES }, /* two lines       */
    { { 6, 4, 2 }, 48, 0, 1, LS_WRAP_ALL },   { { 4, 4, 0 }, 5, 0, 3, LS_WRAP_ALL },    /* no box          */
    { { 4, 4, 0 }, 7, 9, 1, LS_WRAP_NONE },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++) {
    const uint32_t *d = cases[i].dims;
    g_autoptr (LsCluster) c = built (tiny_torus (1, d[0], d[1], d[2], cases[i].wrap));
    g_autofree uint32_t *gpus = some (cases[i].n, cases[i].first, cases[i].stride);
    if (!LS_CHECK (c != NULL))
      return;
    check_kinds (c, gpus, cases[i].n);
    shuffle (gpus, cases[i].n, (uint32_t) i);
    if (cases[i].n > 2)
      check_kinds (c, gpus, cases[i].n);
  }
}

static void
slices_play_out (void)
{
  g_autoptr (LsCluster) c = built (tiny_torus (3, 4, 4, 0, LS_WRAP_ALL));
  if (!LS_CHECK (c != NULL))
    return;
  g_autofree uint32_t *all = some (48, 0, 1), *heads = some (3, 5, 16), *uneven = some (20, 0, 1),
                      *two = some (32, 16, 1);
  check_kinds (c, all, 48);
  check_kinds (c, heads, 3);
  check_kinds (c, uneven, 20); /* 16 and 4: one ring through all */
  shuffle (two, 32, 7);
  check_kinds (c, two, 32);
}

/* A wrong script must not pass: its last round is missing. */
static void
the_proof_can_fail (void)
{
  g_autoptr (LsCluster) c = built (tiny_torus (1, 4, 4, 0, LS_WRAP_ALL));
  g_autoptr (LsArena) arena = ls_arena_new ();
  g_autofree uint32_t *gpus = some (16, 0, 1);
  g_autofree double *bytes = g_new0 (double, c->trunks->len);
  const LsNccl none = { 0 };
  LsCollRequest q = { .kind = LS_COLL_ALL_REDUCE, .gpus = gpus, .n = 16, .bytes = 1 << 20 };
  LsScript broken = *ls_coll_script (c, &none, &q, arena);
  broken.n_rounds--;
  LS_CHECK (!plays_out (&(Proof) { .cluster = c, .script = &broken }, bytes));
}

/* --- formulas --- */

/* Bytes that all members put on ICI, over hops of one link. */
static double
ici_bytes (const LsCluster *c, LsCollKind kind, const uint32_t *gpus, uint32_t n, uint64_t bytes)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsNccl none = { 0 };
  LsCollRequest q = { .kind = kind, .gpus = gpus, .n = n, .bytes = bytes };
  const LsCollPlan *plan = ls_coll_plan (c, &none, &q, LS_NETWORK_FLOW, arena);
  double sum = 0;
  for (uint32_t i = 0; i < plan->n_phases; i++)
    for (uint32_t k = 0; k < plan->phases[i].n_loads; k++)
      if (plan->phases[i].loads[k].resource < c->trunks->len)
        sum += plan->phases[i].demand_bytes * (double) plan->phases[i].loads[k].coef / (double) LS_COEF_ONE;
  return sum;
}

static void
bytes_are_those_of_the_formula (void)
{
  g_autoptr (LsCluster) c = built (tiny_torus (1, 8, 4, 4, LS_WRAP_ALL));
  g_autofree uint32_t *gpus = some (128, 0, 1);
  uint64_t bytes = UINT64_C (1) << 30;
  for (LsCollKind kind = LS_COLL_ALL_REDUCE; kind <= LS_COLL_REDUCE_SCATTER; kind++)
    LS_CHECK_NEAR (ici_bytes (c, kind, gpus, 128, bytes),
                   128 * ls_coll_wire_factor (kind, 128) * (double) bytes, 1e-5);
}

/* V / (A W_bidirectional) on a cube of A even axes; twice that on lines of one. */
static void
time_is_the_books_on_cubes (void)
{
  g_autoptr (LsCluster) cube = built (tiny_torus (1, 8, 8, 8, LS_WRAP_CUBES));
  g_autoptr (LsCluster) pod = built (tiny_torus (1, 16, 16, 0, LS_WRAP_FULL_AXES));
  g_autofree uint32_t *gpus = some (512, 0, 1);
  uint64_t bytes = UINT64_C (1) << 30;
  double line = (double) bytes / 90e9 * 1e6;
  LS_CHECK_NEAR (us (time_of (cube, LS_COLL_ALL_GATHER, gpus, 512, bytes)), line / 3, 1e-5);
  LS_CHECK_NEAR (us (time_of (cube, LS_COLL_REDUCE_SCATTER, gpus, 512, bytes)), line / 3, 1e-5);
  LS_CHECK_NEAR (us (time_of (cube, LS_COLL_ALL_REDUCE, gpus, 64, bytes)), line, 1e-5); /* a plane */
  LS_CHECK_NEAR (us (time_of (pod, LS_COLL_ALL_REDUCE, gpus, 256, bytes)), line, 1e-5);
}

/* Two slices of 16 chips, 4 hosts each with 12.5 GB/s: 1/32 of the array over DCN per chip. */
static void
slices_share_the_nics_of_their_hosts (void)
{
  g_autoptr (LsCluster) c = built (tiny_torus (2, 4, 4, 0, LS_WRAP_ALL));
  g_autofree uint32_t *gpus = some (32, 0, 1);
  uint64_t bytes = UINT64_C (1) << 30;
  /* Reduce-scatter and all-gather; bundles of two shards come half from either side. */
  double inside = 2 * 15.0 / 16 * (double) bytes / 180e9 * 1e6;
  double between = (double) bytes / 16 / (12.5e9 / 4) * 1e6; /* 2 (H - 1) / H of 1/16 */
  LS_CHECK_NEAR (us (time_of (c, LS_COLL_ALL_REDUCE, gpus, 32, bytes)), inside + between, 1e-4);
}

LS_TEST_SUITE (LS_TEST (v5e_gathers_along_a_line), LS_TEST (v5e_gathers_along_a_ring),
               LS_TEST (v4_gathers_and_reduces), LS_TEST (latency_binds_below_45_kB),
               LS_TEST (all_to_all_takes_a_quarter), LS_TEST (messages_take_two_ports),
               LS_TEST (a_broadcast_takes_the_longer_way), LS_TEST (hosts_are_behind_pcie),
               LS_TEST (boxes_play_out), LS_TEST (slices_play_out), LS_TEST (the_proof_can_fail),
               LS_TEST (bytes_are_those_of_the_formula), LS_TEST (time_is_the_books_on_cubes),
               LS_TEST (slices_share_the_nics_of_their_hosts))
