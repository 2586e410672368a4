/* Objects of Kubernetes. Which of them have pods, and how many: kubernetes.io/docs (Job, StatefulSet),
 * jobset.sigs.k8s.io, lws.sigs.k8s.io, kubeflow.org/docs (PyTorchJob, MPIJob, TrainJob). */
#include "data/launch/kubernetes/kubernetes.h"

#include <lockstep/error.h>
#include <string.h>

#include "data/launch/launch_script.h"
#include "data/text/yaml.h"

#define MAX_DOCUMENTS 256
#define MAX_DEPTH     32

/* A container, and how many pods have it. */
typedef struct {
  const cJSON *container;
  char *pods;         /* a number, or arithmetic of the shell */
  char *gpus;         /* of each; NULL: none */
  const cJSON *nodes; /* their selector; NULL: none */
} Pods;

typedef struct {
  GPtrArray *trees; /* cJSON */
  GHashTable *maps; /* the name of a ConfigMap -> its data, borrowed */
  GArray *pods;     /* Pods */
  GHashTable *seen; /* lines that are told */
  GPtrArray *told;
  GString *script;
  const char *kind; /* of the object that is walked */
  const cJSON *object;
} Manifest;

static void
pods_clear (gpointer pods)
{
  g_free (((Pods *) pods)->pods);
  g_free (((Pods *) pods)->gpus);
}

static const cJSON *
member (const cJSON *object, const char *key)
{
  return cJSON_GetObjectItemCaseSensitive (object, key);
}

static bool
is_number (const char *text)
{
  return *text && strspn (text, G_CSET_DIGITS) == strlen (text) && strlen (text) < 8;
}

/* "2" times "$NODES" as "$((2*$NODES))"; takes a. */
static char *
times (char *a, const char *b)
{
  g_autofree char *first = a;
  if (is_number (first) && is_number (b))
    return g_strdup_printf ("%" G_GUINT64_FORMAT,
                            g_ascii_strtoull (first, NULL, 10) * g_ascii_strtoull (b, NULL, 10));
  if (strcmp (first, "1") == 0)
    return g_strdup (b);
  if (strcmp (b, "1") == 0)
    return g_strdup (first);
  return g_strdup_printf ("$((%s*%s))", first, b);
}

/* --- what is told --- */

static void G_GNUC_PRINTF (2, 3) tell (Manifest *m, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  char *line = g_strdup_vprintf (format, args);
  va_end (args);
  if (g_hash_table_add (m->seen, g_strdup (line)))
    g_ptr_array_add (m->told, line);
  else
    g_free (line);
}

/* A key of nodes that says which machines they are. */
static bool
is_machine (const char *key)
{
  static const char *const parts[] = { "accelerator", "instance-type", "tpu-topology", "gpu" };
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    if (strstr (key, parts[i]))
      return true;
  return false;
}

static void
tell_node (Manifest *m, const char *key, const cJSON *value)
{
  g_autofree char *text = kubernetes_text (value);
  const char *slash = strrchr (key, '/');
  if (text && is_machine (key))
    tell (m, "nodes with %s %s: which cluster that is, --cluster says", slash ? slash + 1 : key, text);
}

/* nodeSelector, and matchExpressions of nodeAffinity. */
static void
tell_nodes (Manifest *m, const cJSON *spec)
{
  const cJSON *item, *term, *expression,
      *affinity = member (member (member (spec, "affinity"), "nodeAffinity"),
                          "requiredDuringSchedulingIgnoredDuringExecution");
  cJSON_ArrayForEach (item, member (spec, "nodeSelector")) tell_node (m, item->string, item);
  cJSON_ArrayForEach (term, member (affinity, "nodeSelectorTerms"))
  {
    cJSON_ArrayForEach (expression, member (term, "matchExpressions"))
    {
      const cJSON *values = member (expression, "values");
      if (cJSON_GetArraySize (values) == 1 && strcmp (kubernetes_string (expression, "operator"), "In") == 0)
        tell_node (m, kubernetes_string (expression, "key"), values->child);
    }
  }
}

/* --- pods --- */

/* "nvidia.com/gpu": 8 of limits or requests; NULL: it asks for none. Newly allocated. */
static char *
gpus_of (const cJSON *resources)
{
  static const char *const keys[] = { "limits", "requests" };
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++) {
    const cJSON *item;
    cJSON_ArrayForEach (item, member (resources, keys[i]))
    {
      char *text = g_str_has_suffix (item->string, "/gpu") || g_str_has_suffix (item->string, "/tpu")
          ? kubernetes_text (item)
          : NULL;
      if (text)
        return text;
    }
  }
  return NULL;
}

static void
add_pods (Manifest *m, const cJSON *container, const cJSON *resources, const char *pods, const cJSON *spec)
{
  const Pods one = { container, g_strdup (pods), gpus_of (resources), member (spec, "nodeSelector") };
  g_array_append_val (m->pods, one);
}

/* The containers of a pod, several or, of Argo, one. */
static void
take_pod (Manifest *m, const cJSON *spec, const char *pods)
{
  const cJSON *item, *alone = member (spec, "container");
  cJSON_ArrayForEach (item, member (spec, "containers"))
      add_pods (m, item, member (item, "resources"), pods, spec);
  if (cJSON_IsObject (alone))
    add_pods (m, alone, member (alone, "resources"), pods, spec);
  tell_nodes (m, spec);
}

/* How many there are of what an object has. */
static char *
count_of (const cJSON *object)
{
  static const char *const keys[] = { "replicas", "parallelism" };
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++) {
    char *text = kubernetes_text (member (object, keys[i]));
    if (text)
      return text;
  }
  return g_strdup ("1");
}

static void walk (Manifest *m, const cJSON *node, const char *pods, guint depth);

/* LeaderWorkerSet: groups of so many pods, of which one may have a template of its own. */
static void
take_group (Manifest *m, const cJSON *group, const char *pods, guint depth)
{
  const cJSON *leader = member (group, "leaderTemplate");
  g_autofree char *size = kubernetes_text (member (group, "size"));
  guint64 n = size && is_number (size) ? g_ascii_strtoull (size, NULL, 10) : 0;
  g_autofree char *others = n > 0 ? g_strdup_printf ("%" G_GUINT64_FORMAT, n - (leader != NULL)) : NULL,
                  *workers = times (g_strdup (pods),
                                    others     ? others
                                        : size ? size
                                               : "1");
  if (leader)
    walk (m, leader, pods, depth);
  if (!others || strcmp (others, "0") != 0)
    walk (m, member (group, "workerTemplate"), workers, depth);
}

/* TrainJob: what its trainer runs, on so many nodes. */
static void
take_trainer (Manifest *m, const cJSON *trainer)
{
  g_autofree char *nodes = kubernetes_text (member (trainer, "numNodes"));
  add_pods (m, trainer, member (trainer, "resourcesPerNode"), nodes ? nodes : "1", NULL);
}

static void
walk (Manifest *m, const cJSON *node, const char *pods, guint depth)
{
  const cJSON *item, *trainer = depth < 3 ? member (node, "trainer") : NULL,
                     *group = member (node, "leaderWorkerTemplate");
  g_autofree char *own = cJSON_IsObject (node) ? times (count_of (node), pods) : g_strdup (pods);
  if (depth > MAX_DEPTH)
    return;
  if (cJSON_IsObject (trainer))
    take_trainer (m, trainer);
  else if (cJSON_IsArray (member (node, "containers")) || cJSON_IsObject (member (node, "container")))
    take_pod (m, node, pods);
  else if (group)
    take_group (m, group, own, depth + 1);
  else
    cJSON_ArrayForEach (item, node) if (cJSON_IsObject (item) || cJSON_IsArray (item))
        walk (m, item, own, depth + 1);
}

/* --- variables that operators set --- */

static char *
all_nodes (const Manifest *m, guint first)
{
  GString *sum = g_string_new (NULL);
  guint64 n = 0;
  bool is_known = true;
  for (guint i = first; i < m->pods->len; i++) {
    const Pods *p = &g_array_index (m->pods, Pods, i);
    is_known = is_known && is_number (p->pods);
    n += is_known ? g_ascii_strtoull (p->pods, NULL, 10) : 0;
    g_string_append_printf (sum, "%s%s", i > first ? "+" : "$((", p->pods);
  }
  g_string_append (sum, "))");
  char *text = is_known           ? g_strdup_printf ("%" G_GUINT64_FORMAT, n)
      : m->pods->len == first + 1 ? g_strdup (g_array_index (m->pods, Pods, first).pods)
                                  : g_strdup (sum->str);
  g_string_free (sum, TRUE);
  return text;
}

/* What torchrun and processes see of PyTorchJob and TrainJob: kubeflow/training-operator
 * pkg/controller.v1/pytorch/envvar.go and elastic.go; kubeflow/trainer,
 * pkg/runtime/framework/plugins/torch. */
static void
add_operator (Manifest *m, const cJSON *object, const char *kind, guint first)
{
  const cJSON *spec = member (object, "spec"), *elastic = member (spec, "elasticPolicy"),
              *trainer = member (spec, "trainer");
  bool is_torch = strcmp (kind, "PyTorchJob") == 0, is_train = strcmp (kind, "TrainJob") == 0;
  if ((!is_torch && !is_train) || m->pods->len == first)
    return;
  g_autofree char *nodes = all_nodes (m, first),
                  *said = kubernetes_text (is_train      ? member (trainer, "numProcPerNode")
                                               : elastic ? member (elastic, "nProcPerNode")
                                                         : member (spec, "nprocPerNode"));
  const char *each = said ? said : "auto";
  bool has_master = is_torch && member (member (spec, "pytorchReplicaSpecs"), "Master");
  kubernetes_add_export (m->script, "PET_NNODES", elastic ? "elastic" : nodes);
  if (said || is_train || has_master)
    kubernetes_add_export (m->script, "PET_NPROC_PER_NODE", each);
  if (has_master || is_train) {
    g_autofree char *world = times (g_strdup (nodes), is_number (each) ? each : "1");
    kubernetes_add_export (m->script, "WORLD_SIZE", world);
  }
}

/* --- objects --- */

/* Values of Argo's parameters, which may be given. */
static void
add_parameters (Manifest *m, const cJSON *object)
{
  const cJSON *item;
  cJSON_ArrayForEach (item, member (member (member (object, "spec"), "arguments"), "parameters"))
  {
    g_autofree char *text = kubernetes_text (member (item, "value")),
                    *name = g_strdup (kubernetes_string (item, "name"));
    g_strdelimit (name, "-", '_');
    if (!text || !*name || strpbrk (name, " ${}()'\""))
      continue;
    g_string_append_printf (m->script, "%s=${%s:-", name, name);
    kubernetes_add_word (m->script, text);
    g_string_append (m->script, "}\n");
  }
}

/* " --accelerator=tpu7x --topology=4x4x4" of GKE. */
static void
add_selector (GString *script, const cJSON *nodes)
{
  static const struct {
    const char *end, *option;
  } keys[] = { { "-accelerator", " --accelerator=" }, { "-tpu-topology", " --topology=" } };
  const cJSON *item;
  cJSON_ArrayForEach (item, nodes) for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
  {
    g_autofree char *text = g_str_has_suffix (item->string, keys[i].end) ? kubernetes_text (item) : NULL;
    if (!text)
      continue;
    g_string_append (script, keys[i].option);
    kubernetes_add_word (script, text);
  }
}

static void
take_object (Manifest *m, const cJSON *object)
{
  guint first = m->pods->len;
  const char *kind = kubernetes_string (object, "kind");
  walk (m, member (object, "spec"), "1", 0);
  add_parameters (m, object);
  add_operator (m, object, kind, first);
  for (guint i = first; i < m->pods->len; i++) {
    const Pods *p = &g_array_index (m->pods, Pods, i);
    if (!p->gpus)
      continue;
    g_string_append (m->script, KUBERNETES_PODS " --nodes=");
    kubernetes_add_word (m->script, p->pods);
    g_string_append (m->script, " --gpus-per-node=");
    kubernetes_add_word (m->script, p->gpus);
    add_selector (m->script, p->nodes);
    g_string_append_c (m->script, '\n');
    tell (m, "a %s of Kubernetes: %s pods with %s accelerators each", kind, p->pods, p->gpus);
  }
}

static void
add_commands (Manifest *m, guint *ret_n)
{
  g_autoptr (GHashTable) done = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  for (guint i = 0; i < m->pods->len; i++) {
    GString *one = g_string_new (NULL);
    bool has = kubernetes_add_container (one, g_array_index (m->pods, Pods, i).container, m->maps);
    if (has && g_hash_table_add (done, g_strdup (one->str))) {
      g_string_append (m->script, one->str);
      (*ret_n)++;
    }
    g_string_free (one, TRUE);
  }
}

/* --- documents --- */

/* A document of several ends at a line "---". */
static const char *
document_end (const char *p)
{
  for (const char *line = p; line; line = strchr (line, '\n')) {
    line += *line == '\n';
    if (g_str_has_prefix (line, "---") && (line[3] == '\0' || g_ascii_isspace (line[3])))
      return line;
    if (!strchr (line, '\n'))
      break;
  }
  return p + strlen (p);
}

static void
take_document (Manifest *m, const char *text, gsize n, const char *path, LsDiagList *diags)
{
  cJSON *tree = ls_yaml_parse (text, n, path, NULL, diags);
  if (!tree)
    return;
  g_ptr_array_add (m->trees, tree);
  if (strcmp (kubernetes_string (tree, "kind"), "ConfigMap") == 0)
    g_hash_table_replace (m->maps, g_strdup (kubernetes_string (member (tree, "metadata"), "name")),
                          (gpointer) member (tree, "data"));
}

static void
take_documents (Manifest *m, const ImportFile *file, LsDiagList *diags)
{
  const char *p = file->text;
  for (guint i = 0; *p && i < MAX_DOCUMENTS; i++) {
    if (g_str_has_prefix (p, "---"))
      p += strcspn (p, "\n");
    const char *end = document_end (p);
    take_document (m, p, (gsize) (end - p), file->path, diags);
    p = end;
  }
}

static bool
is_manifest (const ImportFile *file)
{
  return !g_str_has_prefix (file->text, "#!") && strlen (file->text) == file->n
      && launch_has_line (file->text, "apiVersion:")
      && (g_str_has_prefix (file->text, "kind:") || strstr (file->text, "\nkind:"));
}

/* Why nothing is launched by it. */
static void
refuse (const ImportFile *file, const LsDiagList *why, LsDiagList *diags)
{
  if (strstr (file->text, "{{") && ls_diag_list_n (why) > 0)
    ls_diag_add (diags, LS_ERROR_INPUT, file->path, 0, 0, NULL, NULL, "give what `helm template` makes of it",
                 "a template of objects of Kubernetes, which is no YAML");
  else if (ls_diag_list_n (why) > 0) {
    g_autofree char *said = ls_diag_list_format (why);
    ls_diag_add (diags, LS_ERROR_INPUT, file->path, 0, 0, NULL, NULL, NULL, "objects of Kubernetes: %s",
                 g_strchomp (said));
  } else
    ls_diag_add (
        diags, LS_ERROR_INPUT, file->path, 0, 0, NULL, NULL, NULL,
        "objects of Kubernetes, but no container of them has a command: what its image starts is not here");
}

void
kubernetes_put_in_place (ImportFile *file, const GString *script)
{
  g_free (file->text);
  file->n = script->len;
  file->text = g_strdup (script->str);
  cJSON_Delete (file->yaml->tree);
  *file->yaml = (ImportYaml) { 0 };
}

bool
kubernetes_unpack (ImportFile *file, GPtrArray *told, LsDiagList *diags)
{
  if (!is_manifest (file))
    return true;
  g_autoptr (LsDiagList) why = ls_diag_list_new ();
  Manifest m = { .told = told };
  guint n = 0;
  m.trees = g_ptr_array_new_with_free_func ((GDestroyNotify) cJSON_Delete);
  m.maps = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  m.seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  m.pods = g_array_new (FALSE, FALSE, sizeof (Pods));
  g_array_set_clear_func (m.pods, pods_clear);
  m.script = g_string_new ("#!/bin/bash\n");
  take_documents (&m, file, why);
  for (guint i = 0; i < m.trees->len; i++)
    if (strcmp (kubernetes_string (m.trees->pdata[i], "kind"), "ConfigMap") == 0)
      kubernetes_add_files (m.script, member (m.trees->pdata[i], "data"));
    else
      take_object (&m, m.trees->pdata[i]);
  add_commands (&m, &n);
  if (n > 0)
    kubernetes_put_in_place (file, m.script);
  else
    refuse (file, why, diags);
  g_ptr_array_unref (m.trees);
  g_hash_table_unref (m.maps);
  g_hash_table_unref (m.seen);
  g_array_unref (m.pods);
  g_string_free (m.script, TRUE);
  return n > 0;
}
