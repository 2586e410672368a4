/* data/machines/topology_from.c — files of other programs put together as one cluster: a node by one, the
 * fabric by another. A kind of file is a row of `readers`. */
#include <string.h>

#include "base/list.h"
#include "data/datadir.h"
#include "data/machines/fabric_draft.h"
#include "data/machines/node_tree.h"
#include "data/text/json_out.h"
#include "data/text/override.h"
#include "data/text/read_file.h"
#include "data/text/text_place.h"

#define MAX_HEAD 65536 /* bytes that show what a file is */

/* Whether the beginning of a file has these words in this order. */
static bool
has_words (const char *head, const char *const *words)
{
  for (; *words; words++) {
    const char *at = strstr (head, *words);
    if (!at)
      return false;
    head = at + strlen (*words);
  }
  return true;
}

/* The first row whose words a file has is its reader. */
static const struct {
  const char *what, *words[4];
  LsTreeReader node; /* or */
  LsFabricReader fabric;
} readers[] = {
  { "a topology file of NCCL", { "<system" }, .node = ls_tree_read_nccl },
  { "an XML file of lstopo", { "<topology" }, .node = ls_tree_read_lstopo },
  { "the output of rocm-smi --showtopo", { "Link Type between two GPUs" }, .node = ls_tree_read_rocm },
  { "the output of nvidia-smi topo -m", { "GPU0", "X" }, .node = ls_tree_read_matrix },
  { "the output of nvidia-smi -L", { "GPU ", "(UUID: GPU-" }, .node = ls_tree_read_matrix },
  { "the output of ibnetdiscover", { "Switch", "\"", "[" }, .fabric = ls_draft_read_ibnetdiscover },
  { "the output of ibnetdiscover -p", { " 0x", "( '", "' - '" }, .fabric = ls_draft_read_ib_ports },
  { "Slurm's topology.conf", { "SwitchName=" }, .fabric = ls_draft_read_slurm },
  { "Slurm's topology.conf of blocks", { "BlockName=" }, .fabric = ls_draft_read_slurm },
};

static guint
reader_of (const char *text, gsize n)
{
  g_autofree char *head = g_strndup (text, MIN (n, MAX_HEAD));
  guint i = 0;
  while (i < G_N_ELEMENTS (readers) && !has_words (head, readers[i].words))
    i++;
  return i;
}

/* --- the parts ---------------------------------------------------------------------------------------- */

typedef struct {
  LsDiagList *diags;
  LsJsonDoc *node;
  const char *node_file, *fabric_file; /* NULL: none yet */
  LsFabricDraft *fabric;
  GArray *guessed; /* char * */
  GString *source;
} Parts;

static void
take_guesses (Parts *p, GArray *guessed)
{
  for (guint i = 0; guessed && i < guessed->len; i++) {
    char *text = g_strdup (g_array_index (guessed, char *, i));
    g_array_append_val (p->guessed, text);
  }
}

G_GNUC_PRINTF (2, 3)
static void
guess (Parts *p, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  char *text = g_strdup_vprintf (format, args);
  va_end (args);
  g_array_append_val (p->guessed, text);
}

/* What answers on an XML file of NCCL say by themselves. */
static void
guess_of_node (Parts *p, const LsClusterSpec *s)
{
  take_guesses (p, s->guessed);
  if (s->gpu_is_assumed)
    guess (p, "accelerators %s, by sm or gcn of <gpu>", s->gpu.name);
  if (s->links_like)
    guess (p, "what has no rate in %s: as in %s", p->node_file, s->links_like);
  if (s->unread)
    guess (p, "without %s", s->unread);
  guess (p, "latencies within a node: as in %s", s->links_like ? s->links_like : "dgx-h100");
}

static bool
take_node (Parts *p, LsTreeReader read, const char *what, const char *text, gsize n, const char *path,
           const char *gpu)
{
  LsClusterSpec spec;
  if (!ls_tree_read (read, what, text, n, path, gpu, &spec, p->diags))
    return false;
  guess_of_node (p, &spec);
  g_autofree char *json = ls_cluster_list_to_json (&spec);
  ls_cluster_spec_clear (&spec);
  p->node = ls_data_open (json, p->diags);
  return p->node != NULL;
}

static bool
take_once (Parts *p, const char **of, const char *file, const char *what)
{
  if (*of)
    return ls_file_diag (p->diags, LS_ERROR_INPUT, file, NULL, "a second %s; the first is %s", what, *of);
  *of = file;
  return true;
}

/* "FILE:gpu=NAME" as FILE and NAME, which may be NULL; newly allocated. */
static char *
split_gpu (const char *file, const char **ret_gpu)
{
  const char *at = g_strrstr (file, ":gpu=");
  *ret_gpu = at ? at + strlen (":gpu=") : NULL;
  return at ? g_strndup (file, (gsize) (at - file)) : g_strdup (file);
}

static bool
take_fabric (Parts *p, guint reader, const char *path, const char *text, gsize n)
{
  p->fabric->path = g_intern_string (path);
  return ls_text_check (text, n, path, readers[reader].what, p->diags)
      && readers[reader].fabric (p->fabric, text, n);
}

static bool
take_file (Parts *p, const char *file)
{
  const char *gpu;
  gsize n = 0;
  g_autofree char *path = split_gpu (file, &gpu),
                  *text = ls_read_file (path, LS_MAX_INPUT_BYTES, &n, p->diags);
  guint i = text ? reader_of (text, n) : 0;
  if (!text)
    return false;
  g_string_append_printf (p->source, "%s%s", p->source->len > 0 ? "; " : "", path);
  if (i == G_N_ELEMENTS (readers)) {
    g_autoptr (GString) kinds = g_string_new (NULL);
    for (guint k = 0; k < G_N_ELEMENTS (readers); k++)
      g_string_append_printf (kinds, "%s%s",
                              k == 0                               ? ""
                                  : k + 1 < G_N_ELEMENTS (readers) ? ", "
                                                                   : " or ",
                              readers[k].what);
    return ls_file_diag (p->diags, LS_ERROR_INPUT, path, ls_lookalike_hint (text), "expected %s", kinds->str);
  }
  if (readers[i].node)
    return take_once (p, &p->node_file, file, "node")
        && take_node (p, readers[i].node, readers[i].what, text, n, path, gpu);
  return take_once (p, &p->fabric_file, file, "fabric") && take_fabric (p, i, path, text, n);
}

/* By name, or in JSON: the path of one ends so. */
static bool
is_cluster (const char *file)
{
  g_autofree char *bare = ls_override_bare (file), *message = NULL,
                  *path = ls_data_find (LS_DATA_CLUSTERS, bare, &message);
  return g_str_has_suffix (bare, ".json") || (path && !g_file_test (bare, G_FILE_TEST_IS_REGULAR));
}

static bool
take_cluster (Parts *p, const char *file)
{
  g_string_append_printf (p->source, "%s%s", p->source->len > 0 ? "; " : "", file);
  if (!take_once (p, &p->node_file, file, "node"))
    return false;
  p->node = ls_data_load (LS_DATA_CLUSTERS, file, p->diags);
  return p->node != NULL;
}

/* --- the whole ------------------------------------------------------------------------------------------ */

/* "guessed" of a cluster that is taken goes on before what is guessed here. */
static char *
guesses_json (const Parts *p)
{
  g_autoptr (GString) text = g_string_new (NULL);
  LsJsonOut w;
  ls_json_out_init (&w, text, 0);
  ls_json_out_begin_array (&w, NULL);
  for (guint i = 0; i < p->guessed->len; i++)
    ls_json_out_string (&w, NULL, g_array_index (p->guessed, char *, i));
  ls_json_out_end_array (&w);
  return g_strdup (text->str);
}

static char *
put_together (Parts *p, const char *name)
{
  LsClusterSpec spec;
  g_autoptr (GPtrArray) changes = g_ptr_array_new_with_free_func (g_free);
  if (!p->node)
    ls_file_diag (p->diags, LS_ERROR_INPUT, p->fabric_file, "lockstep list clusters names some",
                  "a fabric alone: name a node too, a file of one or a cluster: --from dgx-h100");
  if (!p->node || !ls_data_file_read (&ls_cluster_file, p->node, &spec, p->diags))
    return NULL;
  take_guesses (p, spec.guessed);
  bool ok = !p->fabric_file || ls_draft_finish (p->fabric, &spec, changes);
  if (p->fabric_file)
    take_guesses (p, p->fabric->guessed);
  else if (spec.nics.n > 0 && spec.interior == LS_INTERIOR_LIST)
    guess (p, "fabric: non-blocking leaf-spine, %u nodes a leaf", spec.network.nodes_per_leaf);
  ls_cluster_spec_clear (&spec);
  g_autofree char *guesses = guesses_json (p);
  if (p->guessed->len > 0)
    g_ptr_array_add (changes, g_strconcat ("guessed=", guesses, NULL));
  return ok ? ls_cluster_changed_to_json (g_steal_pointer (&p->node), changes, name, p->source->str, p->diags)
            : NULL;
}

char *
ls_topology_from (const char *const *files, const char *name, LsDiagList *diags)
{
  g_autoptr (GArray) guessed = ls_list_new (sizeof (char *), ls_clear_text);
  g_autoptr (GString) source = g_string_new (NULL);
  Parts p = { .diags = diags, .fabric = ls_draft_new (diags), .guessed = guessed, .source = source };
  bool ok = true;
  for (; ok && *files; files++)
    ok = is_cluster (*files) ? take_cluster (&p, *files) : take_file (&p, *files);
  char *json = ok ? put_together (&p, name) : NULL;
  ls_draft_free (p.fabric);
  ls_json_doc_free (p.node);
  return json;
}
