#include "cluster/allocation.h"

#include <string.h>

#include "base/draw.h"
#include "cluster/segment.h"

/* --- an allocation --------------------------------------------------------------------------------- */

LsAllocation *
ls_allocation_new (LsAllocationKind kind, LsSeat *seats, uint32_t n_seats, const char *file)
{
  LsAllocation *a = g_new (LsAllocation, 1);
  *a = (LsAllocation) {
    .n_references = 1, .kind = kind, .seats = seats, .n_seats = n_seats, .file = g_strdup (file)
  };
  return a;
}

LsAllocation *
ls_allocation_ref (LsAllocation *a)
{
  if (a)
    g_atomic_int_inc (&a->n_references);
  return a;
}

void
ls_allocation_unref (LsAllocation *a)
{
  if (!a || !g_atomic_int_dec_and_test (&a->n_references))
    return;
  g_free (a->seats);
  g_free (a->file);
  g_free (a);
}

/* The allocation of "cyclic" or "random:7"; NULL, without a reason if it is none. */
static LsAllocation *
parse_word (const char *text, char **reterr_why)
{
  if (strcmp (text, "cyclic") == 0)
    return ls_allocation_new (LS_ALLOCATION_CYCLIC, NULL, 0, NULL);
  bool is_of_gpus = g_str_has_prefix (text, "random-gpus:");
  guint64 seed;
  if (!is_of_gpus && !g_str_has_prefix (text, "random:"))
    return NULL;
  if (!g_ascii_string_to_unsigned (strchr (text, ':') + 1, 10, 0, UINT32_MAX, &seed, NULL)) {
    *reterr_why = g_strdup_printf ("\"%s\": expected a whole number below 2^32 after the colon", text);
    return NULL;
  }
  LsAllocation *a = ls_allocation_new (is_of_gpus ? LS_ALLOCATION_RANDOM_GPUS : LS_ALLOCATION_RANDOM_NODES,
                                       NULL, 0, NULL);
  a->seed = (uint32_t) seed;
  return a;
}

static LsAllocation *
of_names (const GPtrArray *names, const GPtrArray *all_names, char **reterr_why)
{
  guint at;
  g_autofree uint32_t *numbers = g_new (uint32_t, names->len);
  LsNodesFrom from;
  if (!ls_node_numbers (names, all_names, numbers, &from, &at, reterr_why))
    return NULL;
  LsSeat *seats = g_new0 (LsSeat, names->len);
  for (guint i = 0; i < names->len; i++)
    seats[i].node = numbers[i];
  LsAllocation *a = ls_allocation_new (LS_ALLOCATION_NODES, seats, names->len, NULL);
  a->n_cluster_nodes = all_names ? all_names->len : 0;
  a->from = from;
  return a;
}

void
ls_allocations_agree (LsAllocation **all, guint n)
{
  LsNodesFrom from = LS_NODES_FROM_UNKNOWN;
  for (guint i = 0; i < n; i++)
    if (all[i] && all[i]->from != LS_NODES_SAID)
      from = MIN (from, all[i]->from);
  for (guint i = 0; i < n; i++) {
    LsAllocation *a = all[i];
    if (!a || a->from <= from)
      continue;
    for (uint32_t k = 0; k < a->n_seats; k++)
      a->seats[k].node += (a->from == LS_NODES_FROM_1) - (uint32_t) (from == LS_NODES_FROM_1);
    a->from = from;
  }
}

const char *
ls_allocation_note (const LsAllocation *a)
{
  static const char *const notes[] = {
    [LS_NODES_FROM_1]
    = "names of nodes count from 1, as the least of them is 1: that is the first node of the cluster; "
      "NODES:ALL-NODES names all that it has",
    [LS_NODES_FROM_UNKNOWN]
    = "names of nodes are assumed to count from 0, so that the number in a name is that of the node; "
      "where they count from 1, NODES:ALL-NODES names all that the cluster has",
  };
  return a ? notes[a->from] : NULL;
}

LsAllocation *
ls_allocation_parse (const char *text, char **reterr_why)
{
  *reterr_why = NULL;
  LsAllocation *of_word = parse_word (text, reterr_why);
  if (of_word || *reterr_why)
    return of_word;
  g_auto (GStrv) parts = g_strsplit (text, ":", 2);
  g_autoptr (GPtrArray) names = ls_node_list_names (parts[0] ? parts[0] : "", reterr_why);
  if (!names)
    return NULL;
  g_autoptr (GPtrArray) all_names = parts[1] ? ls_node_list_names (parts[1], reterr_why) : NULL;
  return parts[1] && !all_names ? NULL : of_names (names, all_names, reterr_why);
}

/* --- its GPUs -------------------------------------------------------------------------------------- */

uint32_t
ls_allocation_cluster_nodes (const LsAllocation *a)
{
  uint32_t n = a ? a->n_cluster_nodes : 0;
  for (uint32_t i = 0; a && i < a->n_seats; i++)
    n = MAX (n, MIN (a->seats[i].node, LS_ALLOCATION_MAX_NODES - 1) + 1);
  return n;
}

uint32_t
ls_allocation_n_ranks (const LsAllocation *a, const LsClusterSpec *spec)
{
  uint64_t n = a ? a->n_seats : 0;
  if (a && a->kind == LS_ALLOCATION_NODES) {
    n *= ls_cluster_taken (spec);
    for (uint32_t i = 0; i < a->n_seats && spec->others; i++)
      n += ls_cluster_spec_gpus_of (spec, a->seats[i].node) - (uint64_t) ls_cluster_taken (spec);
  }
  return (uint32_t) MIN (n, UINT32_MAX);
}

/* Where ranks find seats. */
typedef struct {
  const LsClusterSpec *spec;
  LsSeats seats;
} Room;

static uint32_t
n_taken (const LsClusterSpec *spec)
{
  return spec->taken_per_node > 0 ? spec->n_nodes * spec->taken_per_node
                                  : (uint32_t) ls_cluster_spec_n_gpus (spec);
}

/* 0 .. n - 1 in an order that the seed draws (Fisher and Yates; Knuth, TAOCP 3.4.2, algorithm P). Newly
 * allocated. */
static uint32_t *
shuffled (uint32_t n, uint32_t seed)
{
  uint64_t state = seed;
  uint32_t *order = g_new (uint32_t, MAX (n, 1));
  for (uint32_t i = 0; i < n; i++) {
    uint32_t j = (uint32_t) (((ls_draw_bits (&state) >> 32) * (i + UINT64_C (1))) >> 32);
    order[i] = order[j];
    order[j] = i;
  }
  return order;
}

/* GPUs of a node that a job takes. */
static uint32_t
taken_of (const Room *room, uint32_t node)
{
  return room->spec->taken_per_node > 0 ? room->spec->taken_per_node : ls_seats_in_node (&room->seats, node);
}

/* Node after node; with enough of them. */
static void
fill_nodes (const Room *room, const uint32_t *nodes, uint32_t n_ranks, uint32_t *gpus)
{
  for (uint32_t r = 0, i = 0; r < n_ranks; i++)
    for (uint32_t g = 0; g < taken_of (room, nodes[i]) && r < n_ranks; g++)
      gpus[r++] = ls_seats_first (&room->seats, nodes[i]) + g;
}

static void
draw_gpus (const LsAllocation *a, const Room *room, uint32_t n_ranks, uint32_t *gpus)
{
  bool is_of_gpus = a->kind == LS_ALLOCATION_RANDOM_GPUS;
  g_autofree uint32_t *order = shuffled (is_of_gpus ? n_taken (room->spec) : room->spec->n_nodes, a->seed);
  for (uint32_t r = 0; r < n_ranks && is_of_gpus; r++)
    gpus[r] = ls_cluster_gpu_of (room->spec, order[r]);
  if (!is_of_gpus)
    fill_nodes (room, order, n_ranks, gpus);
}

/* Over as many nodes as the ranks need. */
static void
deal_gpus (const Room *room, uint32_t n_ranks, uint32_t *gpus)
{
  uint32_t n_nodes = 0;
  for (uint64_t n = 0; n < n_ranks; n_nodes++)
    n += taken_of (room, n_nodes);
  for (uint32_t r = 0, turn = 0; r < n_ranks; turn++)
    for (uint32_t node = 0; node < n_nodes && r < n_ranks; node++)
      if (turn < taken_of (room, node))
        gpus[r++] = ls_seats_first (&room->seats, node) + turn;
}

static void
complain (const LsAllocation *a, const LsSeat *seat, LsDiagList *diags, char *what)
{
  ls_diag_add (diags, LS_ERROR_CONFLICT, a->file, seat->line, seat->col, a->file ? NULL : "/placement", NULL,
               NULL, "%s", what);
  g_free (what);
}

/* Its node and GPU are there, and nobody else's. first: [gpus] the seat that has it, + 1. */
static void
check_seat (const LsAllocation *a, const Room *room, uint32_t i, uint32_t *first, LsDiagList *diags)
{
  const LsClusterSpec *spec = room->spec;
  const LsSeat *seat = &a->seats[i];
  bool is_of_nodes = a->kind == LS_ALLOCATION_NODES;
  const char *word = ls_cluster_chip_word (spec, 1);
  g_autofree char *who = is_of_nodes ? g_strdup ("") : g_strdup_printf ("rank %u: ", i);
  if (seat->node >= spec->n_nodes)
    return complain (
        a, seat, diags,
        g_strdup_printf (
            "%snode %u: the cluster has %u, 0 to %u%s", who, seat->node, spec->n_nodes, spec->n_nodes - 1,
            a->from == LS_NODES_FROM_UNKNOWN ? "; names that count from 1 are NODES:ALL-NODES" : ""));
  uint32_t n_gpus = ls_seats_in_node (&room->seats, seat->node);
  if (!is_of_nodes && seat->gpu >= n_gpus)
    return complain (a, seat, diags,
                     g_strdup_printf ("%s%s %u of node %u: %s has %u, 0 to %u", who, word, seat->gpu,
                                      seat->node, room->seats.first ? "that" : "a node", n_gpus, n_gpus - 1));
  uint32_t *taken = &first[ls_seats_first (&room->seats, seat->node) + (is_of_nodes ? 0 : seat->gpu)];
  if (*taken == 0)
    *taken = i + 1;
  else if (is_of_nodes)
    complain (a, seat, diags, g_strdup_printf ("node %u is in the list twice", seat->node));
  else
    complain (a, seat, diags,
              g_strdup_printf ("%s%s %u of node %u has rank %u already", who, word, seat->gpu, seat->node,
                               *taken - 1));
}

static void
check_room (const LsAllocation *a, const LsClusterSpec *spec, uint32_t n_ranks, LsDiagList *diags)
{
  uint32_t n = a->n_seats > 0 ? ls_allocation_n_ranks (a, spec) : n_taken (spec);
  const LsSeat nowhere = { 0 };
  if (a->n_cluster_nodes > 0 && a->n_cluster_nodes != spec->n_nodes)
    complain (a, &nowhere, diags,
              g_strdup_printf ("a placement on a cluster of %u nodes: this one has %u", a->n_cluster_nodes,
                               spec->n_nodes));
  if (n_ranks > n)
    complain (a, &nowhere, diags,
              g_strdup_printf ("%u ranks: the placement has %s for %u", n_ranks,
                               ls_cluster_chip_word (spec, 2), n));
}

/* There is room for all. */
static void
seat_ranks (const LsAllocation *a, const Room *room, uint32_t n_ranks, uint32_t *gpus)
{
  if (a->kind == LS_ALLOCATION_CYCLIC)
    deal_gpus (room, n_ranks, gpus);
  else if (a->n_seats == 0)
    draw_gpus (a, room, n_ranks, gpus);
  if (a->kind == LS_ALLOCATION_NODES) {
    g_autofree uint32_t *nodes = g_new (uint32_t, a->n_seats);
    for (uint32_t i = 0; i < a->n_seats; i++)
      nodes[i] = a->seats[i].node;
    fill_nodes (room, nodes, n_ranks, gpus);
  }
  for (uint32_t r = 0; r < n_ranks && a->kind == LS_ALLOCATION_RANKS; r++)
    gpus[r] = ls_seats_first (&room->seats, a->seats[r].node) + a->seats[r].gpu;
}

gboolean
ls_allocation_gpus (const LsAllocation *a, const LsClusterSpec *spec, uint32_t n_ranks, uint32_t *ret_gpus,
                    GError **error)
{
  for (uint32_t r = 0; !a && r < n_ranks; r++)
    ret_gpus[r] = ls_cluster_gpu_of (spec, r);
  if (!a)
    return TRUE;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  Room room = { .spec = spec };
  ls_seats_init (&room.seats, spec);
  g_autofree uint32_t *first = g_new0 (uint32_t, room.seats.n_gpus + 1);
  for (uint32_t i = 0; i < a->n_seats; i++)
    check_seat (a, &room, i, first, diags);
  check_room (a, spec, n_ranks, diags);
  gboolean ok = ls_diag_list_to_error (diags, error);
  if (ok)
    seat_ranks (a, &room, n_ranks, ret_gpus);
  ls_seats_clear (&room.seats);
  return ok;
}

bool
ls_gpus_span_nodes (const LsCluster *c, const uint32_t *gpus, uint32_t n)
{
  for (uint32_t i = 1; i < n; i++)
    if (ls_cluster_host_of (c, gpus ? gpus[i] : i) != ls_cluster_host_of (c, gpus ? gpus[0] : 0))
      return true;
  return false;
}
