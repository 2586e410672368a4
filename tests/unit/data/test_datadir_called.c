/* Pins names of data as people write them, and what is said of an accelerator where a cluster is asked for. */
#include "ls_test.h"

#include <string.h>

#include "cluster/torus.h"
#include "data/datadir.h"
#include "data/machines/machines.h"

/* In another case, with blanks, or as a cloud calls its machine; not what is another machine. */
static void
names_are_known_as_people_write_them (void)
{
  static const struct {
    LsDataKind kind;
    const char *asked, *found; /* NULL: none */
  } cases[] = {
    { LS_DATA_CLUSTERS, "GB300 NVL72", "gb300-nvl72" },
    { LS_DATA_CLUSTERS, "p5en.48xlarge", "aws-p5en" },
    { LS_DATA_CLUSTERS, "Standard_ND96isr_H200_v5", "azure-nd-h200-v5" },
    { LS_DATA_CLUSTERS, "standard_nd96asr_v4", "azure-ndv4-a100-40g" },
    { LS_DATA_CLUSTERS, "BM.GPU.H100.8", "oci-bm-gpu-h100-8" },
    { LS_DATA_CLUSTERS, "Trillium", "tpu-v6e" },
    { LS_DATA_CLUSTERS, "NDv2", "azure-ndv2" },
    { LS_DATA_CLUSTERS, "LUMI-G", "lumi" },
    { LS_DATA_CLUSTERS, "DGX Spark", "dgx-spark" },
    { LS_DATA_CLUSTERS, "RTX A6000", "rtx-a6000-pcie" },
    { LS_DATA_CLUSTERS, "V5P-1024", "tpu-v5p" },
    { LS_DATA_CLUSTERS, "v5p-1000", NULL },
    { LS_DATA_CLUSTERS, "p5.24xlarge", NULL },
    { LS_DATA_CLUSTERS, " ", NULL },
    { LS_DATA_GPUS, "RTX PRO 6000", "rtx-pro-6000" },
    { LS_DATA_GPUS, "p5en.48xlarge", NULL },
    { LS_DATA_SOFTWARE, "Megatron", "megatron" },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *message = NULL, *path = ls_data_find (cases[i].kind, cases[i].asked, &message),
                    *own = NULL;
    if (cases[i].found)
      own = ls_data_find (cases[i].kind, cases[i].found, &message);
    LS_CHECK_STR (path, own);
  }
}

/* What one cluster is called too, one that extends it is not. */
static void
each_other_name_is_of_one_cluster (void)
{
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_CLUSTERS);
  for (guint i = 0; i < entries->len; i++) {
    const LsDataEntry *entry = entries->pdata[i];
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_CLUSTERS, entry->path, diags);
    const cJSON *also = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "also"), *one;
    cJSON_ArrayForEach (one, also)
    {
      bool is_new = g_hash_table_add (seen, g_ascii_strdown (one->valuestring, -1));
      ls_check_impl (is_new, __FILE__, __LINE__, "%s: %s twice", entry->name, one->valuestring);
    }
  }
  LS_CHECK_INT (g_hash_table_size (seen), >, 40);

  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_CLUSTERS, "{\"extends\":\"aws-p5\"}", diags);
  LS_CHECK (doc && cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "gpu"));
  LS_CHECK (doc && !cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "also"));
}

/* A TensorCore each of v3, v4, v5p and TPU7x is half a chip, and a slice's name counts them; v5e and v6e count
 * chips. What extends such a slice has it too, and changes behind the name hold. */
static void
a_slice_has_the_chips_of_its_name (void)
{
  static const struct {
    const char *name;
    uint32_t chips, dims[3];
  } slices[] = {
    { "v5p-1024", 512, { 8, 8, 8 } },
    { "v4-512", 256, { 4, 8, 8 } },
    { "v5litepod-256", 256, { 16, 16, 1 } },
    { "v6e-8", 8, { 2, 4, 1 } },
    { "tpu7x-128", 64, { 4, 4, 4 } },
    { "v3-32", 16, { 4, 4, 1 } },
    { "{\"schema\":\"lockstep.cluster/1\",\"name\":\"n\",\"source\":\"s\",\"extends\":\"v4-8\"}",
      4,
      { 2, 2, 1 } },
    { "v4-512:node.torus.slice=[4,4,4]", 64, { 4, 4, 4 } },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (slices); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsClusterSpec spec = { 0 };
    if (!LS_CHECK (ls_cluster_load (slices[i].name, &spec, diags)))
      continue;
    LS_CHECK (spec.torus.is_given);
    LS_CHECK_INT (ls_torus_n_chips (&spec.torus), ==, slices[i].chips);
    for (int axis = 0; axis < 3; axis++)
      LS_CHECK_INT (spec.torus.dims[axis], ==, slices[i].dims[axis]);
    ls_cluster_spec_clear (&spec);
  }
}

/* Of each cluster's "slices" the number is that of its chips, or of two TensorCores a chip. */
static void
slices_are_as_large_as_they_are_called (void)
{
  guint n_read = 0;
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_CLUSTERS);
  for (guint i = 0; i < entries->len; i++) {
    const LsDataEntry *entry = entries->pdata[i];
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsClusterSpec spec = { 0 };
    if (!LS_CHECK (ls_cluster_load (entry->path, &spec, diags)))
      continue;
    for (guint j = 0; spec.slices && j < spec.slices->len; j++, n_read++) {
      g_auto (GStrv) words = g_strsplit (g_array_index (spec.slices, char *, j), " ", 2);
      LsClusterSpec slice = { 0 };
      if (!LS_CHECK (ls_cluster_load (words[0], &slice, diags)))
        continue;
      uint64_t called = g_ascii_strtoull (strrchr (words[0], '-') + 1, NULL, 10);
      uint32_t chips = ls_torus_n_chips (&slice.torus);
      ls_check_impl (called == chips || called == 2 * chips, __FILE__, __LINE__, "%s: %u chips", words[0],
                     chips);
      for (uint32_t axis = 0; axis < slice.torus.n_axes; axis++)
        LS_CHECK_INT (slice.torus.dims[axis], <=, slice.torus.largest[axis]);
      ls_cluster_spec_clear (&slice);
    }
    ls_cluster_spec_clear (&spec);
  }
  LS_CHECK_INT (n_read, >, 60);
}

/* An accelerator is no cluster: those that have it are named, and not what is spelled alike. */
static void
clusters_are_found_by_their_accelerators (void)
{
  static const struct {
    const char *asked, *said;
  } cases[] = {
    { "H20", "no cluster is named \"H20\"; the accelerator h20 is in hgx-h20" },
    { "NVIDIA A10G", "no cluster is named \"NVIDIA A10G\"; the accelerator a10g is in aws-g5" },
    { "l4", "no cluster is named \"l4\"; the accelerator l4 is in aws-g6 and gcp-g2" },
    { "rtx-4090", "no cluster is named \"rtx-4090\"; did you mean \"rtx-4090-pcie\"?" },
    { "mi250x-gcd",
      "no cluster is named \"mi250x-gcd\"; the accelerator mi250x-gcd is in frontier and lumi" },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *message = NULL;
    LS_CHECK (!ls_data_find (LS_DATA_CLUSTERS, cases[i].asked, &message));
    LS_CHECK_STR (message, cases[i].said);
  }
}

LS_TEST_SUITE (LS_TEST (names_are_known_as_people_write_them), LS_TEST (each_other_name_is_of_one_cluster),
               LS_TEST (a_slice_has_the_chips_of_its_name), LS_TEST (slices_are_as_large_as_they_are_called),
               LS_TEST (clusters_are_found_by_their_accelerators))
