#include "data/jobs/read_placement.h"

#include <string.h>

#include "data/text/json_out.h"
#include "data/text/read_file.h"
#include "data/text/text_place.h"

#define MAX_RANKS (1u << 20)

static const LsField rank_fields[] = {
  { "rank", LS_FIELD_UINT, offsetof (LsPlacedRank, rank), .required = true, .max = MAX_RANKS - 1 },
  { "node", LS_FIELD_UINT, offsetof (LsPlacedRank, node), .required = true, .max = MAX_RANKS - 1 },
  { "gpu", LS_FIELD_UINT, offsetof (LsPlacedRank, gpu), .required = true, .max = MAX_RANKS - 1 },
  { .table = "placement.ranks" },
};

const LsField ls_placement_fields[] = {
  LS_FIELDS_HEADER (LsPlacementFile),
  { "cluster_nodes", LS_FIELD_UINT, offsetof (LsPlacementFile, cluster_nodes), .max = MAX_RANKS },
  { "nodes", LS_FIELD_STRING, offsetof (LsPlacementFile, nodes) },
  { "ranks", LS_FIELD_ARRAY, offsetof (LsPlacementFile, ranks), .element_size = sizeof (LsPlacedRank),
    .fields = rank_fields, .lines = true },
  { .table = "placement" },
};

/* --- JSON ------------------------------------------------------------------------------------------ */

static LsAllocation *
of_nodes (const LsJsonDoc *doc, const char *nodes, LsDiagList *diags)
{
  g_autofree char *why = NULL;
  LsAllocation *a = ls_allocation_parse (nodes, &why);
  if (a && a->kind == LS_ALLOCATION_NODES)
    return a;
  ls_json_doc_wrong (doc, ls_json_doc_at (doc, "nodes"), diags, "%s", a ? "expected a list of nodes" : why);
  ls_allocation_unref (a);
  return NULL;
}

/* Each rank once, in any order. */
static LsAllocation *
of_ranks (const LsJsonDoc *doc, const GArray *ranks, LsDiagList *diags)
{
  const cJSON *list = ls_json_doc_at (doc, "ranks"), *node = list->child;
  guint n_before = ls_diag_list_n (diags), n = ranks->len;
  g_autofree LsJsonSpot *spots = g_new (LsJsonSpot, n + 1);
  g_autofree LsSeat *seats = g_new0 (LsSeat, n + 1);
  ls_json_doc_locate_all (doc, list, spots);
  if (n == 0 || n > MAX_RANKS)
    ls_json_doc_wrong (doc, list, diags, "expected 1 to %u ranks; got %u", MAX_RANKS, n);
  for (guint i = 0; i < n && n <= MAX_RANKS; i++, node = node->next) {
    const LsPlacedRank *r = &g_array_index (ranks, LsPlacedRank, i);
    if (r->rank >= n)
      ls_json_doc_wrong (doc, node, diags, "rank %u: there are %u, and each is there once", r->rank, n);
    else if (seats[r->rank].line > 0)
      ls_json_doc_wrong (doc, node, diags, "rank %u is placed twice, first in line %d", r->rank,
                         seats[r->rank].line);
    else
      seats[r->rank] = (LsSeat) { r->node, r->gpu, spots[i].line, spots[i].col };
  }
  return ls_diag_list_n (diags) > n_before
      ? NULL
      : ls_allocation_new (LS_ALLOCATION_RANKS, g_steal_pointer (&seats), n, ls_json_doc_name (doc));
}

LsAllocation *
ls_placement_read (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsPlacementFile file = { 0 };
  LsAllocation *a = NULL;
  if (ls_fields_read_file (ls_placement_fields, "placement", doc, &file, diags)) {
    if (!file.nodes == !file.ranks)
      ls_json_doc_wrong (doc, ls_json_doc_root (doc), diags, "expected either \"nodes\" or \"ranks\"");
    else
      a = file.nodes ? of_nodes (doc, file.nodes, diags) : of_ranks (doc, file.ranks, diags);
    if (a && file.cluster_nodes > 0)
      a->n_cluster_nodes = file.cluster_nodes;
  }
  ls_fields_clear (ls_placement_fields, &file);
  return a;
}

char *
ls_placement_to_json (const char *name, const char *source, const LsCluster *cluster, const uint32_t *gpus,
                      uint32_t n_ranks)
{
  GString *text = g_string_new (NULL);
  g_autofree char *quoted_name = ls_json_string (name), *quoted_source = ls_json_string (source);
  g_string_append_printf (text,
                          "{\n  \"schema\": \"lockstep.placement/1\",\n  \"name\": %s,\n  \"source\": "
                          "%s,\n  \"cluster_nodes\": %u,\n  \"ranks\": [\n",
                          quoted_name, quoted_source, cluster->spec.n_nodes);
  for (uint32_t r = 0; r < n_ranks; r++)
    g_string_append_printf (text, "    { \"rank\": %u, \"node\": %u, \"gpu\": %u }%s\n", r,
                            ls_cluster_host_of (cluster, gpus[r]), ls_cluster_local_of (cluster, gpus[r]),
                            r + 1 < n_ranks ? "," : "");
  g_string_append (text, "  ]\n}\n");
  return g_string_free (text, FALSE);
}

char *
ls_placement_text (const LsCluster *cluster, const uint32_t *gpus, uint32_t n_ranks)
{
  GString *text = g_string_new ("{\"ranks\":[");
  bool is_block
      = !ls_cluster_traits (&cluster->spec)->is_slice; /* where a job chooses its chips by its degrees */
  for (uint32_t r = 0; r < n_ranks; r++) {
    is_block &= gpus[r] == r;
    g_string_append_printf (text, "%s{\"rank\":%u,\"node\":%u,\"gpu\":%u}", r > 0 ? "," : "", r,
                            ls_cluster_host_of (cluster, gpus[r]), ls_cluster_local_of (cluster, gpus[r]));
  }
  g_string_append (text, "]}");
  return is_block ? (g_string_free (text, TRUE), g_strdup (LS_PLACEMENT_BLOCK)) : g_string_free (text, FALSE);
}

/* --- a list of names ------------------------------------------------------------------------------- */

/* Names of a text, and where each stands. */
typedef struct {
  const char *path, *text;
  GPtrArray *names;
  GArray *seats; /* LsSeat: the places */
  LsDiagList *diags;
  size_t at; /* a byte, and its place: the latest that was asked for */
  int line, col;
} NamesFile;

/* Without a walk to a place that is never shown. */
static void
complain_at (const NamesFile *f, size_t offset, char *what)
{
  if (ls_diag_list_n (f->diags) < LS_DIAG_MAX_SHOWN)
    ls_text_diag (LS_ERROR_INPUT, f->path, f->text, offset, f->diags, NULL, NULL, what);
  else
    ls_file_diag (f->diags, LS_ERROR_INPUT, f->path, NULL, "%s", what);
  g_free (what);
}

/* A word may be a list; commas may stand at its ends. */
static void
add_word (NamesFile *f, size_t from, size_t to)
{
  char *why = NULL;
  LsSeat seat = { 0 };
  while (from < to && f->text[from] == ',')
    from++;
  while (from < to && f->text[to - 1] == ',')
    to--;
  if (from == to)
    return;
  g_autofree char *word = g_strndup (f->text + from, to - from);
  g_autoptr (GPtrArray) names = ls_node_list_names (word, &why);
  if (!names) {
    complain_at (f, from, why);
    return;
  }
  ls_text_advance (f->text + f->at, from - f->at, &f->line, &f->col);
  f->at = from;
  seat.line = f->line;
  seat.col = f->col;
  for (guint i = 0; i < names->len; i++) {
    g_ptr_array_add (f->names, g_strdup (names->pdata[i]));
    g_array_append_val (f->seats, seat);
  }
}

/* Until there are too many. */
static void
read_words (NamesFile *f)
{
  for (size_t at = 0; f->text[at] != '\0' && f->names->len <= LS_ALLOCATION_MAX_NODES;) {
    size_t n = strcspn (f->text + at, " \t\r\n#");
    if (n > 0)
      add_word (f, at, at + n);
    at += n;
    at += f->text[at] == '#' ? strcspn (f->text + at, "\n") : strspn (f->text + at, " \t\r\n");
  }
}

static LsAllocation *
settle_names (NamesFile *f, const GPtrArray *all_names)
{
  char *why = NULL;
  guint at = 0, n = f->names->len;
  g_autofree uint32_t *numbers = g_new (uint32_t, n + 1);
  if (n == 0 || n > LS_ALLOCATION_MAX_NODES) {
    complain_at (f, 0,
                 g_strdup_printf ("expected names of nodes, at most 2^20; got %s", n == 0 ? "0" : "more"));
    return NULL;
  }
  LsNodesFrom from;
  if (!ls_node_numbers (f->names, all_names, numbers, &from, &at, &why)) {
    const LsSeat *seat = &g_array_index (f->seats, LsSeat, at);
    ls_diag_add (f->diags, LS_ERROR_INPUT, f->path, seat->line, seat->col, NULL, NULL, NULL, "%s", why);
    g_free (why);
    return NULL;
  }
  for (guint i = 0; i < n; i++)
    g_array_index (f->seats, LsSeat, i).node = numbers[i];
  LsSeat *seats = g_memdup2 (f->seats->data, n * sizeof (LsSeat));
  LsAllocation *a = ls_allocation_new (LS_ALLOCATION_NODES, seats, n, f->path);
  a->n_cluster_nodes = all_names ? all_names->len : 0;
  a->from = from;
  return a;
}

static LsAllocation *
of_text (const char *path, const char *text, const char *all, LsDiagList *diags)
{
  char *why = NULL;
  g_autoptr (GPtrArray) all_names = all ? ls_node_list_names (all, &why) : NULL;
  if (why) {
    ls_diag_fail (diags, LS_ERROR_USAGE, "%s", why);
    g_free (why);
    return NULL;
  }
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GArray) seats = g_array_new (FALSE, FALSE, sizeof (LsSeat));
  NamesFile f = { path, text, names, seats, diags, .line = 1, .col = 1 };
  guint n_before = ls_diag_list_n (diags);
  read_words (&f);
  return ls_diag_list_n (diags) > n_before ? NULL : settle_names (&f, all_names);
}

/* --- either ---------------------------------------------------------------------------------------- */

static LsAllocation *
load_file (const char *path, const char *all, LsDiagList *diags)
{
  size_t n;
  g_autofree char *text = ls_read_file (path, LS_MAX_INPUT_BYTES, &n, diags);
  if (!text)
    return NULL;
  if (text[strspn (text, " \t\r\n")] != '{' || all)
    return of_text (path, text, all, diags);
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, n, path, diags);
  return doc ? ls_placement_read (doc, diags) : NULL;
}

static bool
is_file (const char *text)
{
  bool is_named = strchr (text, '/') || g_str_has_suffix (text, ".json") || g_str_has_suffix (text, ".txt");
  return is_named || g_file_test (text, G_FILE_TEST_IS_REGULAR);
}

LsAllocation *
ls_placement_load (const char *text, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) given
      = ls_json_is_given (text) ? ls_json_doc_parse_given (text, "placement", diags) : NULL;
  if (ls_json_is_given (text))
    return given ? ls_placement_read (given, diags) : NULL;
  g_auto (GStrv) parts = g_strsplit (text, ":", 2);
  if (parts[0] && is_file (parts[0]))
    return load_file (parts[0], parts[1], diags);
  char *why = NULL;
  LsAllocation *a = ls_allocation_parse (text, &why);
  if (!a)
    ls_diag_fail (diags, LS_ERROR_USAGE, "%s", why);
  g_free (why);
  return a;
}
