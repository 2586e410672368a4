#include "job/hardware.h"

#include <glib.h>
#include <math.h>
#include <string.h>
#include <lockstep/error.h>

#include "cluster/route.h"
#include "compute/measured.h"
#include "data/datadir.h"
#include "data/jobs/job_files.h"
#include "data/jobs/read_software.h"
#include "data/machines/machines.h"
#include "data/machines/nccl_env.h"
#include "data/text/override.h"
#include "network/nccl/nccl.h"

/* --- GPUs by what their driver calls them: "NVIDIA A100-SXM4-80GB" is a100-80g ------------------- */

/* The words of a name, small: "NVIDIA A100-SXM4-80GB" has nvidia, a100, sxm4, 80gb. */
static char **
words_of (const char *name)
{
  g_autofree char *small = g_ascii_strdown (name, -1);
  return g_strsplit_set (small, " -_()", -1);
}

/* "80gb" says "80g", but "h200" not "h20". */
static bool
says (const char *theirs, const char *ours)
{
  return *ours && g_str_has_prefix (theirs, ours) && !g_ascii_isdigit (theirs[strlen (ours)]);
}

static bool
says_any (char **driver, const char *ours)
{
  while (*driver && !says (*driver, ours))
    driver++;
  return *driver != NULL;
}

/* Letters of ours if the driver's name says all its words, else 0. "a100-80g": a100 and 80gb. Letters, as
 * "A10G" says "a10" too, and "a10g" is more of it. */
static size_t
matching_letters (char **driver, const char *name)
{
  g_auto (GStrv) ours = words_of (name);
  size_t n = 0;
  for (char **word = ours; *word; word++) {
    if (!says_any (driver, *word))
      return 0;
    n += strlen (*word);
  }
  return n;
}

char *
ls_gpu_called (const char *driver_name)
{
  g_autoptr (GPtrArray) gpus = ls_data_list (LS_DATA_GPUS);
  g_auto (GStrv) words = words_of (driver_name);
  size_t best = 0;
  const char *name = NULL;
  for (guint i = 0; i < gpus->len; i++) {
    const LsDataEntry *entry = g_ptr_array_index (gpus, i);
    size_t n = matching_letters (words, entry->name);
    if (n > 0 && n == best)
      name = NULL;
    if (n > best)
      name = entry->name;
    best = MAX (best, n);
  }
  return g_strdup (name);
}

bool
ls_gpu_is_other (const char *driver_name, const char *name)
{
  g_autofree char *called = ls_gpu_called (driver_name);
  g_auto (GStrv) theirs = words_of (called ? called : driver_name), ours = words_of (name);
  bool lacks_some = false, has_some = false;
  for (char **word = theirs; *word; word++)
    lacks_some |= !g_strv_contains ((const char *const *) ours, *word);
  for (char **word = ours; *word; word++)
    has_some |= says_any (theirs, *word);
  return called ? lacks_some : !has_some;
}

/* Clusters by their accelerators. */

static void
spec_free (gpointer spec)
{
  ls_cluster_spec_clear (spec);
  g_free (spec);
}

GPtrArray *
ls_clusters_at_hand (void)
{
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_CLUSTERS);
  GPtrArray *clusters = g_ptr_array_new_with_free_func (spec_free);
  for (guint i = 0; i < entries->len; i++) {
    g_autoptr (LsDiagList) unread = ls_diag_list_new ();
    LsClusterSpec *spec = g_new0 (LsClusterSpec, 1);
    if (ls_cluster_load (((const LsDataEntry *) entries->pdata[i])->name, spec, unread))
      g_ptr_array_add (clusters, spec);
    else
      g_free (spec);
  }
  return clusters;
}

/* GPUs of a node, or of a compute tray of one that is a rack; 0: any. */
static bool
has_per_node (const LsClusterSpec *spec, uint32_t n)
{
  return n == 0 || spec->gpus_per_node == n || spec->gpus_per_node == n * ls_segment_trays (spec);
}

const LsClusterSpec *
ls_cluster_with (const GPtrArray *clusters, const char *gpu, uint32_t per_node, guint *ret_n)
{
  const LsClusterSpec *found = NULL, *usual = NULL;
  *ret_n = 0;
  for (guint i = 0; i < clusters->len; i++) {
    const LsClusterSpec *spec = clusters->pdata[i];
    if (!g_str_equal (spec->gpu.name, gpu) || !has_per_node (spec, per_node))
      continue;
    found = spec;
    (*ret_n)++;
    if (spec->gpu.cluster && g_str_equal (spec->gpu.cluster, spec->name))
      usual = spec;
  }
  return *ret_n == 1 ? found : usual;
}

/* A cluster as its file describes it, with what goes with its GPU: measured kernel efficiencies and
 * NCCL figures. */

void
ls_hardware_free (LsHardware *h)
{
  if (!h)
    return;
  ls_cluster_spec_clear (&h->spec);
  ls_calibration_clear (&h->calibration);
  ls_nccl_clear (&h->nccl);
  g_clear_pointer (&h->environment, g_ptr_array_unref);
  g_free (h);
}

/* What was measured on a GPU: kernels, or a plain roofline if it names no file. */
static gboolean
load_kernels (LsHardware *h, LsDiagList *diags)
{
  if (!h->spec.gpu.calibration)
    ls_calibration_init_roofline (&h->calibration);
  else if (!ls_data_file_load (&ls_calibration_file, h->spec.gpu.calibration, &h->calibration, diags))
    return FALSE;
  return ls_access_load (h->spec.gpu.access, &h->calibration, diags);
}

char *
ls_hardware_nccl_name (const LsGpu *gpu)
{
  return gpu->nccl ? g_strdup (gpu->nccl)
                   : g_strconcat ("nccl-", gpu->calibration ? gpu->calibration : gpu->name, NULL);
}

const char *
ls_hardware_architecture (const LsHardware *h)
{
  if (ls_cluster_traits (&h->spec)->runs_xla)
    return LS_ARCHITECTURE_TPU;
  return h->own_generation ? h->own_generation : g_intern_string (h->nccl.tables.generation);
}

bool
ls_hardware_has_other_nccl (const LsHardware *h)
{
  return h->own_generation && g_strcmp0 (h->own_generation, h->nccl.tables.generation) != 0;
}

/* Communication: a file of its own, with these changes (NULL: none). ICI needs none. */
static gboolean
load_nccl (LsHardware *h, const char *changes, LsDiagList *diags)
{
  if (!ls_cluster_traits (&h->spec)->has_nccl)
    return TRUE;
  g_autofree char *own = ls_hardware_nccl_name (&h->spec.gpu),
                  *name = changes ? ls_override_add (own, changes) : NULL;
  if (!ls_data_file_load (&ls_nccl_file, name ? name : own, &h->nccl, diags))
    return FALSE;
  const LsNcclLinks links = ls_nccl_links_of (&h->spec);
  ls_nccl_carry (&h->nccl, &links);
  return TRUE;
}

/* Of nodes of other kinds: what was measured on each, and what NCCL makes of several. */
static gboolean
load_others (LsHardware *h, const char *nccl_changes, LsDiagList *diags)
{
  LsHardware other[LS_MAX_NODE_KINDS] = { 0 };
  const LsNccl *nccl[LS_MAX_NODE_KINDS] = { &h->nccl };
  uint32_t n = ls_cluster_spec_n_kinds (&h->spec), n_loaded = 1;
  for (; n_loaded < n; n_loaded++) {
    uint32_t k = n_loaded;
    other[k].spec = *ls_cluster_spec_of_kind (&h->spec, k); /* borrows */
    nccl[k] = &other[k].nccl;
    if (!load_kernels (&other[k], diags) || !load_nccl (&other[k], nccl_changes, diags))
      break;
  }
  if (n == 1)
    return TRUE;
  if (n_loaded < n) {
    for (uint32_t k = 1; k <= n_loaded; k++) {
      ls_calibration_clear (&other[k].calibration);
      ls_nccl_clear (&other[k].nccl);
    }
    return FALSE;
  }
  h->calibration.n_others = n - 1;
  h->calibration.others = g_new (LsCalibration, n - 1);
  for (uint32_t k = 1; k < n; k++)
    h->calibration.others[k - 1] = other[k].calibration;
  ls_nccl_mix (&h->nccl, nccl, n);
  return TRUE;
}

/* By the GPU's own NCCL file; NULL: it has none. */
static const char *
find_own_generation (const LsGpu *gpu)
{
  g_autoptr (LsDiagList) unread = ls_diag_list_new ();
  g_autofree char *name = ls_hardware_nccl_name (gpu);
  LsNccl own = { 0 };
  if (!ls_data_file_load (&ls_nccl_file, name, &own, unread))
    return NULL;
  const char *generation = g_intern_string (own.tables.generation);
  ls_nccl_clear (&own);
  return generation;
}

static bool
is_same_file (const char *asked, const char *own)
{
  g_autofree char *bare = ls_override_bare (asked);
  return g_strcmp0 (bare, own) == 0;
}

/* The GPUs at hand whose file names a calibration, those that it was measured on alone where there are any;
 * NULL: none does, or that GPU too. Interned. */
static const char *
find_calibrated (const char *calibration, const LsGpu *gpu)
{
  if (!calibration || is_same_file (calibration, gpu->calibration))
    return NULL;
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_GPUS);
  g_autoptr (GString) all = g_string_new (NULL), measured = g_string_new (NULL);
  for (guint i = 0; i < entries->len; i++) {
    const LsDataEntry *entry = entries->pdata[i];
    g_autoptr (LsDiagList) unread = ls_diag_list_new ();
    LsGpu other = { 0 };
    if (!ls_data_file_load (&ls_gpu_file, entry->path, &other, unread))
      continue;
    bool is_named = is_same_file (calibration, other.calibration);
    if (is_named)
      g_string_append_printf (all, "%s%s", all->len > 0 ? ", " : "", entry->name);
    if (is_named && other.kernels_known.by == LS_KNOWN_MEASURED)
      g_string_append_printf (measured, "%s%s", measured->len > 0 ? ", " : "", entry->name);
    ls_gpu_clear (&other);
  }
  const char *names = measured->len > 0 ? measured->str : all->str;
  return *names ? g_intern_string (names) : NULL;
}

/* The NCCL file stays that of the GPU when its calibration does not. */
static bool
take_files (LsClusterSpec *spec, const LsMeasuredFiles *files, LsDiagList *diags)
{
  LsGpu *gpu = &spec->gpu;
  if (files->nccl && !ls_cluster_traits (spec)->has_nccl)
    return ls_diag_fail (diags, LS_ERROR_CONFLICT, "--nccl %s: a %s has no NCCL", files->nccl,
                         ls_cluster_traits (spec)->name);
  char *nccl = files->nccl ? g_strdup (files->nccl) : ls_hardware_nccl_name (gpu);
  g_free (gpu->nccl);
  gpu->nccl = nccl;
  if (files->calibration) {
    g_free (gpu->calibration);
    gpu->calibration = g_strdup (files->calibration);
  }
  return true;
}

/* What variables of NCCL's environment come to on that cluster: what was typed wins. */
static bool
read_environment (LsHardware *h, const char *name, const LsMeasuredFiles *files, LsNcclEnv *env,
                  LsDiagList *diags)
{
  const LsInteriorTraits *traits = ls_cluster_traits (&h->spec);
  g_autofree char *own = traits->has_nccl && !files->nccl ? ls_hardware_nccl_name (&h->spec.gpu) : NULL;
  const char *nccl = files->nccl ? files->nccl : own, *changes = nccl ? ls_override_find (nccl) : NULL;
  g_autofree char *typed
      = g_strconcat (files->nccl_typed ? files->nccl_typed : "", changes ? changes : "", NULL);
  if (!ls_nccl_env_read (files->nccl_env, ls_override_find (name), typed, env, diags))
    return false;
  h->environment = g_steal_pointer (&env->lines);
  if (traits->has_nccl)
    return true;
  g_clear_pointer (&env->cluster, g_free);
  g_ptr_array_set_size (h->environment, 0);
  g_ptr_array_add (h->environment,
                   g_strdup_printf ("NCCL's environment changes nothing: a %s has no NCCL", traits->name));
  return true;
}

static bool
load_cluster (LsHardware *h, const char *name, const LsMeasuredFiles *files, LsNcclEnv *env,
              LsDiagList *diags)
{
  if (!ls_cluster_load (name, &h->spec, diags)
      || (files->nccl_env && !read_environment (h, name, files, env, diags)))
    return false;
  if (!env->cluster)
    return true;
  g_autofree char *changed = ls_override_add (name, env->cluster);
  ls_cluster_spec_clear (&h->spec);
  return ls_cluster_load (changed, &h->spec, diags);
}

LsHardware *
ls_hardware_load_with (const char *name_or_path, const LsMeasuredFiles *files, LsDiagList *diags)
{
  g_autoptr (LsHardware) h = g_new0 (LsHardware, 1);
  g_auto (LsNcclEnv) env = { 0 };
  bool has_cluster = load_cluster (h, name_or_path, files, &env, diags);
  if (has_cluster && files->nccl && ls_cluster_traits (&h->spec)->has_nccl)
    h->own_generation = find_own_generation (&h->spec.gpu);
  if (has_cluster)
    h->calibration_of = find_calibrated (files->calibration, &h->spec.gpu);
  if (!has_cluster || !take_files (&h->spec, files, diags) || !load_kernels (h, diags))
    return NULL;
  if (!load_nccl (h, env.nccl, diags) || !load_others (h, env.nccl, diags)) {
    if (env.nccl)
      ls_diag_fail (diags, LS_ERROR_USAGE, "nccl_env: with it the file of --nccl has %s", env.nccl);
    return NULL;
  }
  ls_fitted_apply (h, &h->spec.fitted);
  return g_steal_pointer (&h);
}

LsHardware *
ls_hardware_load (const char *name_or_path, LsDiagList *diags)
{
  return ls_hardware_load_with (name_or_path, &(LsMeasuredFiles) { 0 }, diags);
}

static LsCluster *
build (const LsHardware *h, const LsClusterSpec *spec, bool is_brief, GError **error)
{
  uint64_t most = h->max_memory_bytes ? h->max_memory_bytes : UINT64_MAX;
  return ls_cluster_build_within (spec, is_brief, most, error);
}

LsCluster *
ls_hardware_build (const LsHardware *h, uint32_t n_nodes, GError **error)
{
  LsClusterSpec spec = h->spec; /* borrows the strings; the cluster copies them */
  spec.n_nodes = n_nodes;
  return build (h, &spec, false, error);
}

/* A cluster of n_nodes, or where that is 0 of as many as hold a job of n_gpus: ls_cluster_spec_fit(). The job
 * is placed in it (cluster/cluster.h; n_gpus 0: on all). Errors as of ls_cluster_build_within() and
 * ls_segment_place(). */
static LsCluster *
build_placed (const LsHardware *h, uint32_t n_nodes, uint32_t n_gpus, bool is_brief, GError **error)
{
  LsClusterSpec spec = h->spec; /* borrows, as above */
  if (!ls_segment_place (&spec, n_nodes, n_gpus, error))
    return NULL;
  if (n_nodes > 0)
    spec.n_nodes = n_nodes;
  else
    ls_cluster_spec_fit (&spec, n_gpus);
  return build (h, &spec, is_brief, error);
}

LsCluster *
ls_hardware_build_brief (const LsHardware *h, uint32_t n_nodes, uint32_t n_gpus, GError **error)
{
  return build_placed (h, n_nodes, n_gpus, true, error);
}

LsCluster *
ls_hardware_build_asked (const LsHardware *h, uint32_t n_nodes, uint32_t n_gpus, GError **error)
{
  if (n_nodes == 0 && n_gpus > 0)
    return build_placed (h, 0, n_gpus, false, error);
  LsCluster *c = build_placed (h, n_nodes > 0 ? n_nodes : h->spec.n_nodes, n_gpus, false, error);
  if (c && n_gpus > ls_cluster_n_taken (c)) {
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT,
                 "--gpus %u: %u node%s of %s ha%s %u %s\n"
                 "note: without --nodes there are as many as these need",
                 n_gpus, n_nodes, n_nodes == 1 ? "" : "s", c->spec.name, n_nodes == 1 ? "s" : "ve",
                 ls_cluster_n_taken (c), ls_cluster_chip_word (&c->spec, c->n_gpus));
    g_clear_pointer (&c, ls_cluster_free);
  }
  return c;
}

bool
ls_slice_parse (const char *text, void *ret_slice)
{
  g_auto (GStrv) axes = g_strsplit (text, "x", -1);
  guint n = g_strv_length (axes);
  uint32_t slice[LS_TORUS_AXES] = { 0 };
  for (guint i = 0; i < n && i < LS_TORUS_AXES; i++) {
    guint64 length;
    if (!g_ascii_string_to_unsigned (axes[i], 10, 1, LS_TORUS_MAX_AXIS, &length, NULL))
      return false;
    slice[i] = (uint32_t) length;
  }
  if (n < 2 || n > LS_TORUS_AXES)
    return false;
  memcpy (ret_slice, slice, sizeof slice);
  return true;
}

gboolean
ls_hardware_set_slice (LsHardware *h, const uint32_t slice[LS_TORUS_AXES], GError **error)
{
  const LsTorusSpec *t = &h->spec.torus;
  uint32_t dims[LS_TORUS_AXES] = { 1, 1, 1 }, n = 0;
  while (n < LS_TORUS_AXES && slice[n] > 0) {
    dims[n] = slice[n];
    n++;
  }
  if (n > 0 && n != t->n_axes) {
    g_autofree char *axes
        = t->n_axes > 0 ? g_strdup_printf ("a torus of %u axes", t->n_axes) : g_strdup ("no torus");
    return ls_fail (error, LS_ERROR_CONFLICT, "--slice with %u axes: %s is %s", n, h->spec.name, axes);
  }
  if (n > 0) {
    ls_cluster_spec_set_slice (&h->spec, dims);
    h->spec.torus.is_given = true;
  }
  return TRUE;
}

bool
ls_hardware_has_attention (const LsHardware *h, int kernel)
{
  return ls_calibration_has_attention (&h->calibration, (LsAttentionKernel) kernel);
}

void
ls_hardware_for_job (const LsHardware *h, const LsStrategy *s, uint32_t n_gpus, LsHardware *ret_hardware)
{
  *ret_hardware = *h;
  ret_hardware->calibration.attention_kernel = ls_hardware_has_attention (h, s->use.attention_kernel)
      ? s->use.attention_kernel
      : s->program.attention_else;
  ret_hardware->calibration.dynamic_gemms = s->use.dynamic_gemms;
  ret_hardware->calibration.clock = ls_clock (&h->calibration, &h->spec.gpu, n_gpus);
  ret_hardware->calibration.clock_gpus = n_gpus;
}

/* ---- what a job asks of a machine, and of the accelerators in it ---- */

/* Of 16 bits if there is one, as training wants; LS_N_DTYPES: none. */
static LsDtype
usual_dtype (const LsGpu *gpu)
{
  static const LsDtype order[] = { LS_DTYPE_BF16, LS_DTYPE_FP16, LS_DTYPE_FP32 };
  for (guint i = 0; i < G_N_ELEMENTS (order); i++)
    if (gpu->peak_flops[order[i]] > 0)
      return order[i];
  return LS_N_DTYPES;
}

gboolean
ls_hardware_check_dtype (const LsGpu *gpu, LsDtype dtype, GError **error)
{
  if (gpu->peak_flops[dtype] > 0)
    return TRUE;
  LsDtype usual = usual_dtype (gpu);
  g_autofree char *hint = usual < LS_N_DTYPES
      ? g_strdup_printf ("\nnote: it has one for --dtype %s", ls_dtype_name (usual))
      : g_strdup ("");
  return ls_fail (error, LS_ERROR_CONFLICT, "--dtype %s: %s gives no peak_flops for it%s",
                  ls_dtype_name (dtype), gpu->name, hint);
}

static gboolean
check_formats_of (const LsGpu *gpu, const LsStrategy *s, GError **error)
{
  if (!ls_hardware_check_dtype (gpu, (LsDtype) s->dtype, error))
    return FALSE;
  bool has_mxfp8 = ls_formats_have (&s->fp8.module_formats, LS_FORMAT_MXFP8),
       is_mxfp8 = s->dtype == LS_DTYPE_FP8 && s->fp8.recipe == LS_FP8_MXFP8;
  if (ls_formats_have (&s->fp8.module_formats, LS_FORMAT_NVFP4)
      && !ls_hardware_check_dtype (gpu, LS_DTYPE_NVFP4, error))
    return FALSE;
  if ((!is_mxfp8 && !has_mxfp8) || gpu->has_mxfp8)
    return TRUE;
  return ls_fail (error, LS_ERROR_CONFLICT,
                  "%s mxfp8: the matrix units of %s take no scale for each 32 values\n"
                  "note: expected %s there",
                  is_mxfp8 ? "--fp8-recipe" : "--module-formats", gpu->name,
                  is_mxfp8 ? "delayed, current or blockwise" : "bf16, current or blockwise");
}

gboolean
ls_hardware_check_formats (const LsClusterSpec *spec, const LsStrategy *s, GError **error)
{
  for (uint32_t k = 0; k < ls_cluster_spec_n_kinds (spec); k++)
    if (!check_formats_of (&ls_cluster_spec_of_kind (spec, k)->gpu, s, error))
      return FALSE;
  return TRUE;
}

/* Of any kind of node. Hopper has it with scales of earlier steps alone (NVIDIA/TransformerEngine@d0067d0d,
 * attention/dot_product_attention/utils.py, get_attention_backend); what takes mxfp8 is no Hopper. */
static gboolean
check_fp8_attention (const LsHardware *h, const LsStrategy *s, GError **error)
{
  bool by_blocks = s->fp8.attention == LS_FP8_ATTENTION_MXFP8;
  LsAttentionKernel kernel = ls_cudnn_attention (LS_DTYPE_FP8, by_blocks);
  const char *word = ls_field_find (ls_strategy_fields, "fp8_attention")->names[s->fp8.attention].name;
  for (uint32_t k = 0; k < ls_cluster_spec_n_kinds (&h->spec) && s->fp8.attention != LS_FP8_ATTENTION_NONE;
       k++) {
    const LsGpu *gpu = &ls_cluster_spec_of_kind (&h->spec, k)->gpu;
    const LsCalibration *c = k == 0 ? &h->calibration : &h->calibration.others[k - 1];
    bool is_known = ls_calibration_has_attention (c, kernel),
         has_delayed = ls_calibration_has_attention (c, LS_ATTENTION_KERNEL_CUDNN_FP8),
         is_delayed = s->fp8.attention == LS_FP8_ATTENTION_DELAYED;
    if (is_known && (is_delayed || gpu->has_mxfp8))
      continue;
    return ls_fail (error, LS_ERROR_CONFLICT, "--fp8-attention %s: %s %s\nnote: expected %s there", word,
                    is_known ? "Transformer Engine has it from Blackwell on, not on"
                             : "no times of cuDNN's attention in fp8 are known on",
                    gpu->name, has_delayed ? "delayed or none" : "none");
  }
  return TRUE;
}

gboolean
ls_hardware_check_parts (const LsHardware *h, const LsCluster *cluster, const LsStrategy *s, GError **error)
{
  bool wants_drives = s->memory.offload != LS_OFFLOAD_NONE && s->memory.offload_to == LS_OFFLOAD_TO_NVME,
       wants_dispatch = s->experts.dispatcher != LS_DISPATCHER_ALL_TO_ALL && s->ep > 1,
       is_hybrid = s->experts.dispatcher == LS_DISPATCHER_HYBRIDEP;
  if (wants_drives && !ls_cluster_has_nvme (cluster))
    return ls_fail (error, LS_ERROR_CONFLICT,
                    "--offload-to nvme: the nodes of %s have no drives\n"
                    "note: expected cpu there, or node.nvme in the cluster's file",
                    h->spec.name);
  const LsDispatchFigures *figures = is_hybrid ? &h->nccl.hybrid_dispatch : &h->nccl.dispatch;
  if (wants_dispatch && figures->of_nvlink <= 0) {
    const char *key = is_hybrid ? ", or the key hybrid_dispatch in its NCCL file"
                                : ", or the key dispatch in its NCCL file";
    return ls_fail (error, LS_ERROR_CONFLICT,
                    "--dispatcher %s: no figures of %s on %s are known\n"
                    "note: expected all-to-all there%s",
                    ls_dispatcher_names[s->experts.dispatcher].name, is_hybrid ? "HybridEP" : "DeepEP",
                    h->spec.gpu.name, ls_cluster_traits (&h->spec)->has_nccl ? key : "");
  }
  if (!check_fp8_attention (h, s, error))
    return FALSE;
  uint32_t max_ctas
      = s->mp.tp_max_ctas | s->mp.cp_max_ctas | s->mp.ep_max_ctas | s->mp.dp_max_ctas | s->mp.pp_max_ctas;
  if (max_ctas > 0 && !ls_cluster_traits (&h->spec)->has_nccl)
    return ls_fail (error, LS_ERROR_CONFLICT,
                    "--set *_max_ctas: a %s has no NCCL, whose thread blocks these are",
                    ls_cluster_traits (&h->spec)->name);
  return TRUE;
}

gboolean
ls_hardware_check_alike (const LsClusterSpec *spec, const char *what, GError **error)
{
  if (!spec->others)
    return TRUE;
  return ls_fail (error, LS_ERROR_UNSUPPORTED,
                  "%s is for nodes of one kind; %s has some with %s and some with %s", what, spec->name,
                  spec->gpu.name, ls_cluster_spec_of_kind (spec, 1)->gpu.name);
}

gboolean
ls_hardware_check_allocator (const LsClusterSpec *spec, const LsMemoryOptions *memory, GError **error)
{
  if (memory->allocator != LS_MEMORY_CACHING || !ls_cluster_traits (spec)->runs_xla)
    return TRUE;
  return ls_fail (error, LS_ERROR_CONFLICT,
                  "--memory-allocator caching: TPUs have no caching allocator of PyTorch: XLA places "
                  "buffers when it compiles");
}

/* --- what a cluster file's "fitted" does to it --------------------------------------------------- */

/* The table goes before the fit, and must be as fast. */
static void
apply_compute (LsCalibration *c, double by)
{
  for (guint slot = 0; slot < LS_N_ENTRIES; slot++)
    c->kind[slot].compute_efficiency *= by;
  for (guint i = 0; c->measured && i < c->measured->len; i++) {
    LsMeasuredKernel *row = &g_array_index (c->measured, LsMeasuredKernel, i);
    if (ls_kernel_is_gemm (row->kind) || ls_kernel_is_attention (row->kind))
      row->time = (LsTime) llround ((double) row->time / by);
  }
}

static void
apply_link (LsLinkSpec *link, double by)
{
  link->efficiency = fmin (1, link->efficiency * by);
}

static void
apply_links (GArray *links, double by)
{
  for (guint i = 0; links && i < links->len; i++)
    apply_link (&g_array_index (links, LsListLink, i).link, by);
}

static void
apply_intra (LsHardware *h, double by)
{
  for (const LsLinkRow *row = ls_cluster_links; row->name; row++)
    if (row->place == LS_LINKS_OF_GPUS || row->place == LS_LINKS_OF_PCIE)
      apply_link (ls_cluster_link (&h->spec, row), by);
  apply_links (h->spec.list.links, by);
  h->nccl.ring_bus_intra *= by;
  h->nccl.nvls_bus *= by;
  h->nccl.p2p_intra *= by;
}

static void
apply_inter (LsHardware *h, double by)
{
  for (const LsLinkRow *row = ls_cluster_links; row->name; row++)
    if (row->place == LS_LINKS_OF_FABRIC)
      apply_link (ls_cluster_link (&h->spec, row), by);
  apply_links (h->spec.network.links, by);
  h->nccl.ring_bus_per_nic *= by;
  h->nccl.p2p_inter *= by;
}

static bool
changes (double factor)
{
  return factor > 0 && factor != 1;
}

void
ls_fitted_apply (LsHardware *h, const LsFitted *f)
{
  if (changes (f->compute))
    apply_compute (&h->calibration, f->compute);
  if (changes (f->overlap))
    h->nccl.stall_per_byte *= f->overlap;
  if (changes (f->intra_node))
    apply_intra (h, f->intra_node);
  if (changes (f->inter_node))
    apply_inter (h, f->inter_node);
}

static GArray *
list_copy (GArray *list)
{
  return list ? g_array_copy (list) : NULL;
}

LsHardware *
ls_fitted_copy_new (const LsHardware *base, const LsFitted *fitted)
{
  LsHardware *h = g_new (LsHardware, 1);
  *h = *base;
  h->calibration.measured = list_copy (base->calibration.measured);
  h->spec.list.links = list_copy (base->spec.list.links);
  h->spec.network.links = list_copy (base->spec.network.links);
  h->spec.fitted = *fitted;
  ls_fitted_apply (h, fitted);
  return h;
}

void
ls_fitted_copy_free (LsHardware *h)
{
  if (!h)
    return;
  g_clear_pointer (&h->calibration.measured, g_array_unref);
  g_clear_pointer (&h->spec.list.links, g_array_unref);
  g_clear_pointer (&h->spec.network.links, g_array_unref);
  g_free (h);
}

/* --- what calls cost the host --------------------------------------------------------------------- */

void
ls_hardware_host (const LsHardware *h, const LsStrategy *s, LsHostCosts *costs)
{
  if (costs->is_final)
    return;
  for (int i = 0; i < LS_N_HOST_COSTS; i++)
    costs->cost[i] = (LsTime) llround ((double) costs->cost[i] * ls_cluster_call_time (&h->spec));
  if (h->spec.fitted.host_launch > 0)
    costs->cost[LS_HOST_LAUNCH] = h->spec.fitted.host_launch;
  costs->cost[LS_HOST_LAUNCH] = MAX (costs->cost[LS_HOST_LAUNCH], h->calibration.around.host_launch);
  for (int i = 0; i < LS_N_HOST_COSTS; i++)
    if (s->launch.host[i] != LS_HOST_AUTO)
      costs->cost[i] = s->launch.host[i];
  if (s->launch.host[LS_HOST_LAUNCH] == 0 && s->launch.host[LS_HOST_PRODUCT] == LS_HOST_AUTO)
    costs->cost[LS_HOST_PRODUCT] = 0; /* launching is for nothing */
}

/* --- clusters that rows name --- */

static void
named_free (gpointer data)
{
  LsNamedHardware *h = data;
  ls_hardware_free (h->hardware);
  ls_cluster_free (h->cluster);
  g_free (h->reason);
  g_free (h);
}

GHashTable *
ls_named_hardware_new (void)
{
  return g_hash_table_new_full (g_str_hash, g_str_equal, NULL, named_free);
}

LsNamedHardware *
ls_named_hardware (GHashTable *all, const char *name, const LsMeasuredFiles *files)
{
  const char *env = files ? files->nccl_env : NULL;
  g_autofree char *with_env = env ? g_strconcat (name, " ", env, NULL) : NULL;
  const char *key = env ? g_intern_string (with_env) : name;
  LsNamedHardware *h = g_hash_table_lookup (all, key);
  if (h)
    return h;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  h = g_new0 (LsNamedHardware, 1);
  h->hardware = files ? ls_hardware_load_with (name, files, diags) : ls_hardware_load (name, diags);
  if (!h->hardware && !ls_diag_list_to_error (diags, &error))
    h->reason = ls_first_line (error->message);
  g_hash_table_insert (all, (gpointer) key, h);
  return h;
}
