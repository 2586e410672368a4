/* data/machines/topology_from.c — files of other programs put together as one cluster: a node by one, the
 * fabric by another. A kind of file is a row of data/text/lookalike.h, by what it is known, and of
 * `readers`. */
#include <string.h>

#include "base/list.h"
#include "data/datadir.h"
#include "data/machines/fabric_draft.h"
#include "data/machines/node_tree.h"
#include "data/text/json_out.h"
#include "data/text/override.h"
#include "data/text/read_file.h"
#include "data/text/lookalike.h"
#include "data/text/text_place.h"

static const struct {
  LsTreeReader node; /* or */
  LsFabricReader fabric;
} readers[LS_N_MACHINE_FILES] = {
  [LS_MACHINE_NCCL] = { ls_tree_read_nccl },
  [LS_MACHINE_LSTOPO] = { ls_tree_read_lstopo },
  [LS_MACHINE_ROCM] = { ls_tree_read_rocm },
  [LS_MACHINE_MATRIX] = { ls_tree_read_matrix },
  [LS_MACHINE_GPU_LIST] = { ls_tree_read_matrix },
  [LS_MACHINE_IBNETDISCOVER] = { NULL, ls_draft_read_ibnetdiscover },
  [LS_MACHINE_IB_PORTS] = { NULL, ls_draft_read_ib_ports },
  [LS_MACHINE_SLURM_TREE] = { NULL, ls_draft_read_slurm },
  [LS_MACHINE_SLURM_BLOCKS] = { NULL, ls_draft_read_slurm },
  [LS_MACHINE_IBSIM] = { NULL, ls_draft_read_ibnetdiscover },
  [LS_MACHINE_INFRAGRAPH] = { ls_tree_read_infragraph, ls_draft_read_infragraph },
  [LS_MACHINE_INFRAGRAPH_OLD] = { ls_tree_read_infragraph, ls_draft_read_infragraph },
};

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
  if (!ls_tree_read (read, ls_cluster_load, what, text, n, path, gpu, &spec, p->diags))
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
take_fabric (Parts *p, LsMachineFile kind, const char *path, const char *text, gsize n)
{
  p->fabric->path = g_intern_string (path);
  return ls_text_check (text, n, path, ls_machine_file_name (kind), p->diags)
      && readers[kind].fabric (p->fabric, text, n);
}

static bool
take_file (Parts *p, const char *file)
{
  const char *gpu;
  gsize n = 0;
  g_autofree char *path = split_gpu (file, &gpu),
                  *text = ls_read_file (path, LS_MAX_INPUT_BYTES, &n, p->diags);
  if (!text)
    return false;
  LsMachineFile kind = ls_machine_file_of (text, n);
  g_string_append_printf (p->source, "%s%s", p->source->len > 0 ? "; " : "", path);
  if (kind == LS_N_MACHINE_FILES) {
    g_autoptr (GString) kinds = g_string_new (NULL);
    for (guint k = 0; k < LS_N_MACHINE_FILES; k++)
      g_string_append_printf (kinds, "%s%s",
                              k == 0                           ? ""
                                  : k + 1 < LS_N_MACHINE_FILES ? ", "
                                                               : " or ",
                              ls_machine_file_name (k));
    return ls_file_diag (p->diags, LS_ERROR_INPUT, path, ls_lookalike_hint (text), "expected %s", kinds->str);
  }
  const bool is_both = readers[kind].node && readers[kind].fabric,
             has_fabric = readers[kind].fabric && (!is_both || ls_draft_infragraph_has_fabric (text, n)),
             has_node = readers[kind].node && !(is_both && has_fabric && p->node_file);
  if (has_node
      && !(take_once (p, &p->node_file, file, "node")
           && take_node (p, readers[kind].node, ls_machine_file_name (kind), text, n, path, gpu)))
    return false;
  return !has_fabric
      || (take_once (p, &p->fabric_file, file, "fabric") && take_fabric (p, kind, path, text, n));
}

static bool
is_machine_file (const char *path)
{
  g_autoptr (LsDiagList) unheard = ls_diag_list_new ();
  gsize n = 0;
  bool is_file = g_file_test (path, G_FILE_TEST_IS_REGULAR);
  g_autofree char *text = is_file ? ls_read_file (path, LS_MAX_INPUT_BYTES, &n, unheard) : NULL;
  return text && ls_machine_file_of (text, n) < LS_N_MACHINE_FILES;
}

/* By name, or in JSON: the path of one ends so. */
static bool
is_cluster (const char *file)
{
  g_autofree char *bare = ls_override_bare (file), *message = NULL,
                  *path = ls_data_find (LS_DATA_CLUSTERS, bare, &message);
  return (g_str_has_suffix (bare, ".json") && !is_machine_file (bare))
      || (path && !g_file_test (bare, G_FILE_TEST_IS_REGULAR));
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
                  "a fabric alone: name a node too, a file of one or a cluster: --from dgx-h100 or "
                  "--cluster dgx-h100+FILE");
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

/* --- in the place of a name ------------------------------------------------------------------------ */

/* The files of "A+B:CHANGES", of which one at least is a machine's; NULL: it is an ordinary name. Free with
 * g_strfreev(). */
static GStrv
files_of (const char *name)
{
  g_autofree char *bare = ls_json_is_given (name) ? NULL : ls_override_bare (name);
  if (!bare)
    return NULL;
  GStrv files = g_strsplit (bare, g_file_test (bare, G_FILE_TEST_IS_REGULAR) ? "\n" : "+", -1);
  for (char **file = files; *file; file++)
    if (is_machine_file (*file))
      return files;
  g_strfreev (files);
  return NULL;
}

/* gpu=NAME among the changes is for the readers, and goes on to each file. The others remain, as text. */
static char *
hand_out_gpu (GStrv files, const char *changes)
{
  g_autoptr (GPtrArray) list = changes ? ls_override_split (changes) : NULL;
  g_autoptr (GString) others = g_string_new (NULL);
  for (guint i = 0; list && i < list->len; i++) {
    const char *change = list->pdata[i];
    bool is_gpu = g_str_has_prefix (change, "gpu=") && change[strlen ("gpu=")] != '{';
    for (char **file = files; is_gpu && *file; file++) {
      char *with = g_strconcat (*file, ":", change, NULL);
      g_free (*file);
      *file = with;
    }
    if (!is_gpu)
      g_string_append_printf (others, "%s%s", others->len > 0 ? "," : "", change);
  }
  return others->len > 0 ? g_strdup (others->str) : NULL;
}

/* "topo-m.txt+ibnetdiscover.txt" of their paths. */
static char *
name_of (GStrv files)
{
  GString *name = g_string_new (NULL);
  for (char **file = files; *file; file++) {
    g_autofree char *base = g_path_get_basename (*file);
    base[strlen (base) - (g_str_has_suffix (base, ".xml") ? strlen (".xml") : 0)] = '\0';
    g_string_append_printf (name, "%s%s", name->len > 0 ? "+" : "", base);
  }
  return g_string_free (name, FALSE);
}

bool
ls_cluster_is_of_files (const char *name)
{
  g_auto (GStrv) files = files_of (name);
  return files != NULL;
}

LsJsonDoc *
ls_cluster_open (const char *name, LsDiagList *diags)
{
  g_auto (GStrv) files = files_of (name);
  if (!files)
    return ls_data_load (LS_DATA_CLUSTERS, name, diags);
  const char *changes = ls_override_find (name);
  if (changes && !ls_override_check (name, changes, diags))
    return NULL;
  g_autofree char *called = name_of (files), *others = hand_out_gpu (files, changes),
                  *json = ls_topology_from ((const char *const *) files, called, diags);
  LsJsonDoc *doc = json ? ls_data_open (json, diags) : NULL;
  return doc && others ? ls_override_apply (doc, others, diags) : doc;
}
