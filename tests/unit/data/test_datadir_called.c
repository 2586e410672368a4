/* Pins names of data as people write them, and what is said of an accelerator where a cluster is asked for. */
#include "ls_test.h"

#include "data/datadir.h"

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
    { "h200-nvl", "no cluster is named \"h200-nvl\"; did you mean \"h200-nvl-pcie\"?" },
    { "mi250x",
      "no cluster is named \"mi250x\"; none has the accelerator mi250x-gcd: a file of your own may "
      "name it in \"gpu\"" },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *message = NULL;
    LS_CHECK (!ls_data_find (LS_DATA_CLUSTERS, cases[i].asked, &message));
    LS_CHECK_STR (message, cases[i].said);
  }
}

LS_TEST_SUITE (LS_TEST (names_are_known_as_people_write_them), LS_TEST (each_other_name_is_of_one_cluster),
               LS_TEST (clusters_are_found_by_their_accelerators))
