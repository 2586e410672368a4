#include "cluster/allocation.h"

#include <string.h>

#include "base/draw.h"
#include "cluster/index.h"

/* ---- names of nodes: lists as SLURM writes them, and the node that each name stands for ---- */

#define MAX_BRACKETS 8   /* in a name */
#define MAX_NAME     255 /* characters of a host: RFC 1123, 2.1 */

/* --- names of a list ------------------------------------------------------------------------------- */

/* A list on the way. */
typedef struct {
  GPtrArray *names;
  char **why;
} Names;

static bool
fail (const Names *n, const char *text, const char *what)
{
  *n->why = g_strdup_printf ("\"%s\": %s", text, what);
  return false;
}

static bool
is_number (const char *text, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (!g_ascii_isdigit (text[i]))
      return false;
  return n > 0 && n <= 9;
}

static bool expand (const Names *n, const char *before, const char *rest);

/* The numbers of "001-064" or "072" between what stands before and behind. */
static bool
expand_range (const Names *n, const char *before, const char *range, const char *behind)
{
  const char *dash = strchr (range, '-');
  size_t width = dash ? (size_t) (dash - range) : strlen (range);
  const char *last = dash ? dash + 1 : range;
  if (!is_number (range, width) || !is_number (last, strlen (last)))
    return fail (n, range, "expected a number or a range such as 001-064");
  guint64 from = g_ascii_strtoull (range, NULL, 10), to = g_ascii_strtoull (last, NULL, 10);
  if (from > to)
    return fail (n, range, "the range ends before it begins");
  for (guint64 i = from; i <= to; i++) {
    g_autofree char *name = g_strdup_printf ("%s%0*" G_GUINT64_FORMAT, before, (int) width, i);
    if (!expand (n, name, behind))
      return false;
  }
  return true;
}

/* What follows a name that is spelt out so far. */
static bool
expand (const Names *n, const char *before, const char *rest)
{
  const char *open = strchr (rest, '['), *close = open ? strchr (open, ']') : NULL;
  if (!open && strchr (rest, ']'))
    return fail (n, rest, "expected [ before ]");
  if (open && !close)
    return fail (n, rest, "expected ] after [");
  if (!open) {
    if (n->names->len == LS_ALLOCATION_MAX_NODES)
      return fail (n, before, "more than 2^20 nodes");
    if (strlen (before) + strlen (rest) > MAX_NAME)
      return fail (n, before, "a name of more than 255 characters");
    g_ptr_array_add (n->names, g_strconcat (before, rest, NULL));
    return true;
  }
  g_autofree char *head = g_strdup_printf ("%s%.*s", before, (int) (open - rest), rest);
  g_autofree char *inside = g_strndup (open + 1, (gsize) (close - open - 1));
  g_auto (GStrv) ranges = g_strsplit (inside, ",", -1);
  if (!ranges[0])
    return fail (n, rest, "expected numbers between [ and ]");
  for (char **range = ranges; *range; range++)
    if (!expand_range (n, head, *range, close + 1))
      return false;
  return true;
}

static guint
count_brackets (const char *item)
{
  guint n = 0;
  for (; *item; item++)
    n += *item == '[';
  return n;
}

static bool
expand_item (const Names *n, const char *item)
{
  const char *dash = strchr (item, '-');
  if (count_brackets (item) > MAX_BRACKETS)
    return fail (n, item, "more than 8 brackets in a name");
  if (*item == '\0')
    return fail (n, item, "expected a name of a node between commas");
  if (dash && is_number (item, (size_t) (dash - item)))
    return expand_range (n, "", item, "");
  return expand (n, "", item);
}

/* Items between commas that are not in brackets; char *, owned. */
static GPtrArray *
items_of (const char *text)
{
  GPtrArray *items = g_ptr_array_new_with_free_func (g_free);
  int depth = 0;
  const char *from = text;
  for (const char *at = text;; at++) {
    depth += (*at == '[') - (*at == ']');
    if (*at != '\0' && (*at != ',' || depth > 0))
      continue;
    char *item = g_strndup (from, (gsize) (at - from));
    g_ptr_array_add (items, g_strstrip (item));
    from = at + 1;
    if (*at == '\0')
      return items;
  }
}

GPtrArray *
ls_node_list_names (const char *text, char **reterr_why)
{
  g_autoptr (GPtrArray) items = items_of (text);
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  const Names n = { names, reterr_why };
  for (guint i = 0; i < items->len; i++)
    if (!expand_item (&n, items->pdata[i]))
      return NULL;
  return g_steal_pointer (&names);
}

/* --- numbers of names ------------------------------------------------------------------------------ */

/* Where the number at the end of a name begins. */
static size_t
number_at (const char *name)
{
  size_t at = strlen (name);
  while (at > 0 && g_ascii_isdigit (name[at - 1]))
    at--;
  return at;
}

static bool
number_by_end (const char *name, const char *first, uint32_t *ret, char **reterr_why)
{
  size_t at = number_at (name);
  if (!is_number (name + at, strlen (name + at))) {
    *reterr_why = g_strdup_printf ("\"%s\" does not end in a number: say which nodes the cluster has, as "
                                   "NODES:ALL-NODES",
                                   name);
    return false;
  }
  if (at != number_at (first) || strncmp (name, first, at) != 0) {
    *reterr_why = g_strdup_printf ("\"%s\" and \"%s\" begin differently: say which nodes the cluster has, as "
                                   "NODES:ALL-NODES",
                                   first, name);
    return false;
  }
  *ret = (uint32_t) g_ascii_strtoull (name + at, NULL, 10);
  return true;
}

/* Name > place + 1; all_names NULL: empty. NULL: a name is there twice. */
static GHashTable *
places_of (const GPtrArray *all_names, char **reterr_why)
{
  g_autoptr (GHashTable) places = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; all_names && i < all_names->len; i++)
    if (!g_hash_table_insert (places, all_names->pdata[i], GUINT_TO_POINTER (i + 1))) {
      *reterr_why = g_strdup_printf ("\"%s\" is twice among all nodes of the cluster",
                                     (const char *) all_names->pdata[i]);
      return NULL;
    }
  return g_steal_pointer (&places);
}

/* Numbers without a name are those of the cluster. */
static LsNodesFrom
count_names (const char *first, uint32_t *numbers, guint n)
{
  uint32_t least = number_at (first) > 0 ? UINT32_MAX : 0;
  for (guint i = 0; i < n; i++)
    least = MIN (least, numbers[i]);
  for (guint i = 0; i < n && least == 1; i++)
    numbers[i]--;
  return least == 0 ? LS_NODES_FROM_0 : least == 1 ? LS_NODES_FROM_1 : LS_NODES_FROM_UNKNOWN;
}

bool
ls_node_numbers (const GPtrArray *names, const GPtrArray *all_names, uint32_t *ret_numbers,
                 LsNodesFrom *ret_from, guint *reterr_at, char **reterr_why)
{
  g_autoptr (GHashTable) places = places_of (all_names, reterr_why);
  *reterr_at = 0;
  for (guint i = 0; places && i < names->len; i++) {
    const char *name = names->pdata[i];
    guint place = GPOINTER_TO_UINT (g_hash_table_lookup (places, name));
    *reterr_at = i;
    if (all_names && place == 0) {
      *reterr_why = g_strdup_printf ("\"%s\" is none of the cluster's %u nodes", name, all_names->len);
      return false;
    }
    if (!all_names && !number_by_end (name, names->pdata[0], &ret_numbers[i], reterr_why))
      return false;
    if (all_names)
      ret_numbers[i] = place - 1;
  }
  *ret_from = places && !all_names ? count_names (names->pdata[0], ret_numbers, names->len) : LS_NODES_SAID;
  return places != NULL;
}

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

uint32_t
ls_segment_trays (const LsClusterSpec *s)
{
  return MAX (s->server.cpu_boards, 1);
}

static uint32_t
gpus_of_tray (const LsClusterSpec *s)
{
  return s->gpus_per_node / ls_segment_trays (s);
}

static uint32_t
gpus_of_segment (const LsClusterSpec *s)
{
  return s->segment * gpus_of_tray (s);
}

static gboolean
check_asked (const LsClusterSpec *s, uint32_t n_gpus, GError **error)
{
  uint32_t trays = ls_segment_trays (s), unit = gpus_of_segment (s);
  if (trays == 1 || s->segment > trays)
    return ls_spec_conflict (error, "--segment %u: a node of %s %s%u compute tray%s (node.cpu.boards)",
                             s->segment, s->name, trays == 1 ? "is " : "has ", trays, trays == 1 ? "" : "s");
  if (n_gpus % unit == 0)
    return TRUE;
  return ls_spec_conflict (error,
                           "--segment %u: expected GPUs in segments of %u (%u trays with %u each); got %u",
                           s->segment, unit, s->segment, gpus_of_tray (s), n_gpus);
}

gboolean
ls_segment_place (LsClusterSpec *s, uint32_t n_nodes, uint32_t n_gpus, GError **error)
{
  s->taken_per_node = 0;
  if (s->segment == 0 || gpus_of_tray (s) == 0) /* no such node can be built: that is said there */
    return TRUE;
  if (s->segment_is_asked && !check_asked (s, n_gpus, error))
    return FALSE;
  uint32_t trays = ls_segment_trays (s), taken = trays / s->segment * gpus_of_segment (s);
  bool is_whole = n_gpus > s->gpus_per_node && n_gpus % gpus_of_segment (s) == 0;
  bool has_room = n_nodes == 0 || n_gpus <= (uint64_t) n_nodes * taken;
  if (s->segment_is_asked || (is_whole && has_room))
    s->taken_per_node = taken;
  return TRUE;
}

char *
ls_segment_text (const LsClusterSpec *s)
{
  if (ls_cluster_taken (s) == s->gpus_per_node)
    return NULL;
  return g_strdup_printf ("%u of the %u %s of a node: segments of %u of its %u trays", ls_cluster_taken (s),
                          s->gpus_per_node, ls_cluster_chip_word (s, s->gpus_per_node), s->segment,
                          ls_segment_trays (s));
}

char *
ls_slice_text (const LsClusterSpec *s)
{
  g_autoptr (GString) out = g_string_new (NULL);
  for (uint32_t i = 0; i < s->torus.n_axes; i++)
    g_string_append_printf (out, "%s%u", i > 0 ? "x" : "", s->torus.dims[i]);
  return out->len > 0 ? g_string_free (g_steal_pointer (&out), FALSE) : NULL;
}
