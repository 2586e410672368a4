/* On how many GPUs a cluster that runs containers starts a job: of pods, or of slices of TPUs. */
#include <string.h>

#include "data/launch/launch_gpus.h"
#include "data/launch/tpu_slices.h"

#define KUBERNETES_PODS "kubernetes-pods" /* in scripts that stand for a file (program/program_wrap.c) */

static void
add_pods (LaunchBatch *batch, guint64 pods, guint64 each)
{
  bool is_first = batch->pods == 0;
  batch->pods += pods;
  batch->in_pods += pods * each;
  batch->per_pod = is_first || batch->per_pod == each ? each : 0;
}

static void
read_kubernetes (LaunchBatch *batch, const LaunchWords *w, LsImport *import)
{
  static const struct {
    const char *option, *what;
  } said[] = { { "nodes", "pods there are" }, { "gpus-per-node", "GPUs each pod has" } };
  guint64 n[2];
  for (guint i = 0; i < G_N_ELEMENTS (said); i++) {
    const char *text = launch_words_text (w, said[i].option);
    bool is_open = !text || ls_shell_has_hole (text);
    g_autofree char *names = text && is_open ? ls_shell_hole_names (text) : NULL;
    n[i] = is_open ? 0 : launch_last_number (text);
    if (names)
      import_unknown (import, "how many %s: %s is not said here", said[i].what, names);
  }
  add_pods (batch, n[0], n[1]);
  const char *node = launch_words_text (w, "accelerator"), *topology = launch_words_text (w, "topology");
  guint64 of_slice = topology ? tpu_topology_chips (topology) : 0;
  batch->of_chip = node ? tpu_devices_of_chip (node) : batch->of_chip;
  if (of_slice > 0 && batch->in_pods % of_slice == 0)
    batch->slices = batch->in_pods / of_slice;
}

/* docs.cloud.google.com, "xpk workload create": a slice of TPUs is a type, "--num-slices" says how many; of
 * GPUs the type ends in those of a node, "h100-mega-80gb-8". */
static void
read_xpk (LaunchBatch *batch, const LaunchWords *w, LsImport *import)
{
  const char *type = launch_words_text (w, "tpu-type");
  type = type ? type : launch_words_text (w, "device-type");
  if (!type)
    return;
  if (ls_shell_has_hole (type)) {
    g_autofree char *names = ls_shell_hole_names (type);
    import_unknown (import, "the machines that XPK takes: %s is not said here", names);
    return;
  }
  guint64 chips = tpu_slice_chips (type),
          n = launch_first_of (w, (const char *const[]) { chips > 0 ? "num-slices" : "num-nodes", NULL });
  const char *dash = strrchr (type, '-');
  guint64 each = chips > 0 ? chips : dash ? launch_last_number (dash + 1) : 0;
  if (each == 0)
    return;
  add_pods (batch, MAX (1, n), each);
  batch->of_chip = tpu_devices_of_chip (type);
  batch->slices = chips > 0 ? MAX (1, n) : 0;
  import_infer (import, "%" G_GUINT64_FORMAT " x %s of XPK: %" G_GUINT64_FORMAT " %s", MAX (1, n), type,
                batch->in_pods, chips > 0 ? "chips" : "GPUs");
}

void
launch_read_pods (LaunchBatch *batch, const LsShellCommand *c, LsImport *import)
{
  bool is_pods = strcmp (c->words[0], KUBERNETES_PODS) == 0,
       is_xpk = c->n > 2 && strcmp (ls_shell_base_of (c->words[0]), "xpk") == 0
      && strcmp (c->words[1], "workload") == 0 && g_str_has_prefix (c->words[2], "create");
  if (!is_pods && !is_xpk)
    return;
  g_autoptr (LaunchWords) w = launch_words_new ();
  launch_words_add (w, c->words, c->n);
  (is_pods ? read_kubernetes : read_xpk) (batch, w, import);
}
