/* Pins names of data: where they are looked for, and changes behind them. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <string.h>
#include <time.h>
#include <utime.h>

#include "cluster/cluster.h"
#include "data/datadir.h"
#include "data/machines/machines.h"
#include "data/text/override.h"

/* Pins: where a name is looked for, in which order, and what is said if it is not
 * there. */

static void
data_dir_comes_first (void)
{
  char *message = NULL;
  g_autofree char *path = ls_data_find (LS_DATA_MODELS, "gpt3-175b", &message);
  g_autofree char *expected = g_build_filename (g_getenv ("LS_DATA_DIR"), "models", "gpt3-175b.json", NULL);
  LS_CHECK_STR (path, expected);
}

static void
paths_are_taken_as_they_are (void)
{
  char *message = NULL;
  g_autofree char *slash = ls_data_find (LS_DATA_MODELS, "some/where", &message);
  g_autofree char *suffix = ls_data_find (LS_DATA_MODELS, "x.json", &message);
  LS_CHECK_STR (slash, "some/where");
  LS_CHECK_STR (suffix, "x.json");
}

static void
missing_names_get_a_suggestion (void)
{
  g_autofree char *near = NULL, *far = NULL, *empty = NULL;
  LS_CHECK (!ls_data_find (LS_DATA_MODELS, "gpt3-175", &near));
  LS_CHECK_STR (near, "no model is named \"gpt3-175\"; did you mean \"gpt3-175b\"?");
  g_autofree char *begun = NULL; /* though dgx-h100 is nearer */
  LS_CHECK (!ls_data_find (LS_DATA_CLUSTERS, "dgx-a100", &begun));
  LS_CHECK_STR (begun, "no cluster is named \"dgx-a100\"; did you mean \"dgx-a100-40g\"?");
  LS_CHECK (!ls_data_find (LS_DATA_GPUS, "abacus", &far));
  LS_CHECK_STR (far, "no accelerator is named \"abacus\" in topologies/gpu/");
  LS_CHECK (!ls_data_find (LS_DATA_STRATEGIES, "", &empty));
}

static void
lists_are_sorted_and_can_be_found (void)
{
  for (int kind = 0; kind < LS_N_DATA_KINDS; kind++) {
    g_autoptr (GPtrArray) entries = ls_data_list ((LsDataKind) kind);
    for (guint i = 0; i < entries->len; i++) {
      const LsDataEntry *e = entries->pdata[i];
      g_autofree char *message = NULL, *path = ls_data_find ((LsDataKind) kind, e->name, &message);
      LS_CHECK_STR (path, e->path);
      if (i > 0)
        LS_CHECK (strcmp (((LsDataEntry *) entries->pdata[i - 1])->name, e->name) < 0);
    }
  }
}

/* A name that exists twice is listed once, as the first place has it. */
static void
first_place_wins (void)
{
  g_autofree char *old_dir = g_get_current_dir (), *old_data = g_strdup (g_getenv ("LS_DATA_DIR"));
  g_autofree char *top = g_dir_make_tmp ("ls-data-XXXXXX", NULL);
  g_chdir (top);
  g_mkdir ("models", 0700);
  g_file_set_contents ("models/gpt3-175b.json", "{}", -1, NULL);
  g_file_set_contents ("models/only-here.json", "{}", -1, NULL);
  g_file_set_contents ("models/README.md", "", -1, NULL);

  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_MODELS);
  guint n_twice = 0, n_here = 0;
  for (guint i = 0; i < entries->len; i++) {
    const LsDataEntry *e = entries->pdata[i];
    if (strcmp (e->name, "gpt3-175b") == 0)
      n_twice += strcmp (e->from, "$LS_DATA_DIR") == 0 ? 1 : 100;
    if (strcmp (e->name, "only-here") == 0)
      n_here += strcmp (e->from, ".") == 0 ? 1 : 100;
    LS_CHECK (strcmp (e->name, "README") != 0 && strcmp (e->name, "README.md") != 0);
  }
  LS_CHECK_INT (n_twice, ==, 1);
  LS_CHECK_INT (n_here, ==, 1);

  g_unsetenv ("LS_DATA_DIR");
  char *message = NULL;
  g_autofree char *path = ls_data_find (LS_DATA_MODELS, "only-here", &message);
  LS_CHECK_STR (path, "./models/only-here.json");

  g_setenv ("LS_DATA_DIR", old_data, TRUE);
  g_unlink ("models/gpt3-175b.json");
  g_unlink ("models/only-here.json");
  g_unlink ("models/README.md");
  g_rmdir ("models");
  g_chdir (old_dir);
  g_rmdir (top);
}

/* Of a GPU that a cluster describes in place as of one that it names. */
static void
paths_are_meant_from_the_folder_of_the_file (void)
{
  g_autofree char *top = g_dir_make_tmp ("ls-data-XXXXXX", NULL);
  g_autofree char *cluster = g_build_filename (top, "c.json", NULL),
                  *mine = g_build_filename (top, "mine.json", NULL);
  g_file_set_contents (cluster,
                       "{\"gpu\": {\"calibration\": \"./mine.json:sustained=1\", \"nccl\": \"./none.json\"}}",
                       -1, NULL);
  g_file_set_contents (mine, "{}", -1, NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_CLUSTERS, cluster, diags);
  if (LS_CHECK (doc != NULL)) {
    const cJSON *gpu = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "gpu");
    g_autofree char *expected = g_strdup_printf ("%s/./mine.json:sustained=1", top);
    LS_CHECK_STR (cJSON_GetObjectItemCaseSensitive (gpu, "calibration")->valuestring, expected);
    LS_CHECK_STR (cJSON_GetObjectItemCaseSensitive (gpu, "nccl")->valuestring, "./none.json"); /* not there */
  }
  g_unlink (cluster);
  g_unlink (mine);
  g_rmdir (top);
}

/* --- sets, and files that extend others --- */

typedef struct {
  char *top, *old_dir;
} Folder;

/* A folder of files, "NAME\nTEXT" each, that is the current one. */
static Folder
folder_of (const char *const *files)
{
  Folder f = { g_dir_make_tmp ("ls-data-XXXXXX", NULL), g_get_current_dir () };
  g_chdir (f.top);
  g_mkdir_with_parents ("topologies/gpu", 0700);
  for (; *files; files++) {
    g_auto (GStrv) parts = g_strsplit (*files, "\n", 2);
    LS_CHECK (g_file_set_contents (parts[0], parts[1], -1, NULL));
  }
  return f;
}

static void
leave (Folder *f, const char *const *files)
{
  for (; *files; files++) {
    g_auto (GStrv) parts = g_strsplit (*files, "\n", 2);
    g_unlink (parts[0]);
  }
  g_rmdir ("topologies/gpu");
  g_rmdir ("topologies");
  g_chdir (f->old_dir);
  g_rmdir (f->top);
  g_free (f->top);
  g_free (f->old_dir);
}

static char *
text_of (const char *path)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_GPUS, path, diags);
  if (!doc)
    return ls_diag_list_format (diags);
  char *printed = cJSON_PrintUnformatted (ls_json_doc_root (doc)), *text = g_strdup (printed);
  cJSON_free (printed);
  return text;
}

#define CHECK_TEXT(path, expected)                                                                           \
  do {                                                                                                       \
    g_autofree char *got_ = text_of (path);                                                                  \
    LS_CHECK_STR (got_, expected);                                                                           \
  } while (0)

/* By its name, listed, and by its path; a file of that name goes before it. */
static void
members_of_sets_are_files (void)
{
  static const char *const files[]
      = { "topologies/gpu/few.set.json\n{\"schema\":\"lockstep.set/1\",\"of\":\"s/1\",\"members\":{"
          "\"only-here\":{\"a\":1},\"both-here\":{\"a\":2}}}",
          "topologies/gpu/both-here.json\n{\"a\":3}", NULL };
  Folder f = folder_of (files);
  CHECK_TEXT ("only-here", "{\"schema\":\"s/1\",\"name\":\"only-here\",\"a\":1}");
  CHECK_TEXT ("only-here:a=5", "{\"schema\":\"s/1\",\"name\":\"only-here\",\"a\":5}");
  CHECK_TEXT ("./topologies/gpu/few.set.json#both-here",
              "{\"schema\":\"s/1\",\"name\":\"both-here\",\"a\":2}");
  CHECK_TEXT ("both-here", "{\"a\":3}");
  g_autofree char *missing = text_of ("topologies/gpu/few.set.json#none");
  LS_CHECK (strstr (missing, "an object \"none\"") != NULL);
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_GPUS);
  guint n = 0;
  for (guint i = 0; i < entries->len; i++)
    n += g_str_has_suffix (((LsDataEntry *) entries->pdata[i])->name, "-here");
  LS_CHECK_INT (n, ==, 2);
  leave (&f, files);
}

/* Object by object, over several files; what is null is gone, what a file says of itself stays its own. */
static void
files_extend_others (void)
{
  static const char *const files[] = {
    "base.json\n{\"schema\":\"s/1\",\"name\":\"base\",\"source\":\"b\",\"peak\":{\"x\":1,\"y\":2},"
    "\"gone\":7,\"last\":8}",
    "mid.json\n{\"extends\":\"base.json\",\"name\":\"mid\",\"peak\":{\"y\":3,\"z\":null}}",
    "top.json\n{\"name\":\"top\",\"peak\":{\"x\":null},\"gone\":null,\"extends\":\"./mid.json\"}",
    "changed.json\n{\"extends\":\"./base.json:peak.x=9\",\"name\":\"changed\"}",
    "round.json\n{\"extends\":\"around.json\"}",
    "around.json\n{\"extends\":\"round.json\"}",
    "number.json\n{\"extends\":4}",
    NULL,
  };
  Folder f = folder_of (files);
  CHECK_TEXT ("./mid.json", "{\"last\":8,\"gone\":7,\"name\":\"mid\",\"peak\":{\"x\":1,\"y\":3,\"z\":null}}");
  CHECK_TEXT ("./top.json", "{\"last\":8,\"name\":\"top\",\"peak\":{\"z\":null,\"y\":3}}");
  CHECK_TEXT ("./changed.json", "{\"last\":8,\"gone\":7,\"peak\":{\"x\":9,\"y\":2},\"name\":\"changed\"}");
  g_autofree char *round = text_of ("./round.json"), *number = text_of ("./number.json");
  LS_CHECK (strstr (round, "does one extend itself?") != NULL);
  LS_CHECK (strstr (number, "expected the name or path of another file") != NULL);
  leave (&f, files);
}

/* In a cluster's file: a named GPU with other memory. What is told of it is told of this file's lines. */
static void
a_described_gpu_extends_another (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  static const char *const files[]
      = { "c.json\n{\n\"gpu\": {\"extends\": \"h100\",\n \"hbm_size\": \"96GiB\"}}", NULL };
  Folder f = folder_of (files);
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_CLUSTERS, "./c.json", diags);
  if (LS_CHECK (doc != NULL)) {
    const cJSON *gpu = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "gpu"),
                *size = cJSON_GetObjectItemCaseSensitive (gpu, "hbm_size");
    LS_CHECK_STR (size->valuestring, "96GiB");
    LS_CHECK_STR (cJSON_GetObjectItemCaseSensitive (gpu, "calibration")->valuestring, "h100");
    LS_CHECK (!cJSON_GetObjectItemCaseSensitive (gpu, "name"));
    int line, column;
    ls_json_doc_locate (doc, size, LS_JSON_AT_KEY, &line, &column);
    LS_CHECK_INT (line, ==, 3);
  }
  leave (&f, files);
}

static void
write_at (const char *path, const char *text, time_t when)
{
  LS_CHECK (g_file_set_contents (path, text, -1, NULL));
  LS_CHECK (g_utime (path, &(struct utimbuf) { when, when }) == 0);
}

static double
read_x (const char *path)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_MODELS, path, diags);
  return doc ? cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "x")->valuedouble : 0;
}

/* One document for all who load it; of a file that was written, also within the same second, another. */
static void
a_file_is_parsed_once_as_long_as_it_stays (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *top = g_dir_make_tmp ("ls-data-XXXXXX", NULL),
                  *path = g_build_filename (top, "m.json", NULL);
  time_t now = time (NULL);
  write_at (path, "{\"x\": 1}", now - 100);
  LsJsonDoc *a = ls_data_load (LS_DATA_MODELS, path, diags), *b = ls_data_load (LS_DATA_MODELS, path, diags);
  LS_CHECK (a && a == b);
  ls_json_doc_free (a);
  LS_CHECK (cJSON_HasObjectItem (ls_json_doc_root (b), "x"));
  ls_json_doc_free (b);
  write_at (path, "{\"x\": 2}", now - 50);
  LS_CHECK (read_x (path) == 2);
  for (int x = 3; x < 6; x++) { /* of the same size and time */
    g_autofree char *text = g_strdup_printf ("{\"x\": %d}", x);
    write_at (path, text, now);
    LS_CHECK (read_x (path) == x);
  }
  g_unlink (path);
  LS_CHECK (!ls_data_load (LS_DATA_MODELS, path, diags));
  g_rmdir (top);
}

/* Pins: names with changes (NAME:KEY=VALUE,...): where they are cut, what a value may be,
 * what is added on the way, and that damaged ones are refused. */

/* Printed without blanks; NULL: refused. */
static char *
changed (const char *text, const char *changes)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsJsonDoc *doc = ls_json_doc_parse (text, strlen (text), "t.json", diags);
  doc = ls_override_apply (doc, changes, diags);
  LS_CHECK ((doc != NULL) == (ls_diag_list_n (diags) == 0));
  if (!doc)
    return NULL;
  char *printed = cJSON_PrintUnformatted (ls_json_doc_root (doc)), *copy = g_strdup (printed);
  cJSON_free (printed);
  ls_json_doc_free (doc);
  return copy;
}

static void
check (const char *text, const char *changes, const char *expected)
{
  g_autofree char *got = changed (text, changes);
  LS_CHECK_STR (got, expected);
}

static void
names_are_cut_at_the_colon_before_a_key (void)
{
  LS_CHECK_STR (ls_override_find ("dgx-h100:nodes=4"), "nodes=4");
  LS_CHECK_STR (ls_override_find ("./a:b/c.json:x.y=1"), "x.y=1");
  LS_CHECK_STR (ls_override_find ("t:a=1"), "a=1");
  LS_CHECK (ls_override_find ("dgx-h100") == NULL);
  LS_CHECK (ls_override_find ("./a:b.json") == NULL);
  LS_CHECK (ls_override_find ("dgx-h100:=4") == NULL);
}

/* JSON in place of a name: colons and braces inside it are its own. */
static void
given_json_is_cut_behind_it (void)
{
  LS_CHECK_STR (ls_override_find ("{\"a\": \"b:c=1}\"}:nodes=4"), "nodes=4");
  LS_CHECK_STR (ls_override_find ("{\"gpu\": {\"x\": \"h100:r=2\"}}:a.b={}"), "a.b={}");
  LS_CHECK (ls_override_find ("{\"gpu\": \"h100:reserved=2GiB\"}") == NULL);
  LS_CHECK (ls_override_find ("{\"gpu\": \"h100:reserved=2GiB") == NULL);
}

/* It need not say what a file says of itself; the rest is held to what a file is, and its name is in places. */
static void
given_json_is_a_file_without_a_name (void)
{
  static const struct {
    const char *text, *said;
  } wrong[] = {
    { "{\"a\": 1", "gpu:1:8: error: unexpected end" },
    { "{\"extends\": \"none-such\"}", "error: no accelerator is named \"none-such\"" },
    { "{\"extends\": 1}", "gpu:1:13: error: /extends: expected the name" },
    { "{\"a\": 1}:", "gpu:1:9: error: unexpected ':'" },
  };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_GPUS, "{\"b\": 1}:b=2,c=3", diags);
  LS_CHECK_INT (ls_diag_list_n (diags), ==, 0);
  if (LS_CHECK (doc != NULL)) {
    const cJSON *root = ls_json_doc_root (doc);
    LS_CHECK (ls_json_doc_is_given (doc));
    LS_CHECK_STR (ls_json_doc_name (doc), "gpu");
    LS_CHECK_INT (cJSON_GetObjectItem (root, "b")->valueint, ==, 2);
    LS_CHECK_INT (cJSON_GetObjectItem (root, "c")->valueint, ==, 3);
  }
  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autoptr (LsDiagList) found = ls_diag_list_new ();
    g_autoptr (LsJsonDoc) none = ls_data_load (LS_DATA_GPUS, wrong[i].text, found);
    g_autofree char *said = ls_diag_list_format (found);
    LS_CHECK (none == NULL);
    if (!LS_CHECK (strstr (said, wrong[i].said) != NULL))
      g_printerr ("%s\n", said);
  }
}

static void
values_are_replaced (void)
{
  check ("{\"a\":1,\"b\":{\"c\":[1,{\"d\":\"x\"}]}}", "a=2", "{\"a\":2,\"b\":{\"c\":[1,{\"d\":\"x\"}]}}");
  check ("{\"a\":1,\"b\":{\"c\":[1,{\"d\":\"x\"}]}}", "b.c.1.d=25GB/s,a=true",
         "{\"a\":true,\"b\":{\"c\":[1,{\"d\":\"25GB/s\"}]}}");
  check ("{\"a\": [1,2] , \"b\": 3}", "a=[4,5],b={\"x\":\"1,2\"}", "{\"a\":[4,5],\"b\":{\"x\":\"1,2\"}}");
  check ("{\"a\":1}", "a=say \"hi, you\"", "{\"a\":\"say \\\"hi, you\\\"\"}");
  check ("{\"a\":1}", "a=", "{\"a\":\"\"}");
  check ("{\"a\":1,\"b\":{\"c\":2}}", "b.c=null,a=null,d.e=null", "{\"b\":{}}");
}

static void
what_is_missing_is_added (void)
{
  check ("{\"a\":1}", "b=2", "{\"b\":2,\"a\":1}");
  check ("{}", "b.c.d=2,b.e=3", "{\"b\":{\"e\":3,\"c\":{\"d\":2}}}");
}

static void
a_key_goes_on_behind_the_name_of_a_file (void)
{
  check ("{\"gpu\":\"h100\"}", "gpu.reserved=2GiB", "{\"gpu\":\"h100:reserved=2GiB\"}");
  check ("{\"gpu\":\"h100\"}", "gpu.reserved=2GiB,gpu.nccl.x=1", "{\"gpu\":\"h100:reserved=2GiB,nccl.x=1\"}");
  check ("{\"kind\":\"h100\"}", "kind.reserved=2GiB", NULL);
}

static void
a_key_changes_once (void)
{
  static const char *const wrong[]
      = { "a=1,a=2", "a=1,b=2,a=1", "b.c=1,b.c=2", "b.c=1,b={}", "b.c=1,d=2,b=3" };
  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autofree char *got = changed ("{\"a\":1,\"b\":{\"c\":1}}", wrong[i]);
    LS_CHECK (got == NULL);
  }
  check ("{\"a\":1,\"b\":{\"c\":1}}", "b={},b.c=2", "{\"a\":1,\"b\":{\"c\":2}}");
  check ("{\"a\":1,\"ab\":1}", "ab=2,a=3", "{\"a\":3,\"ab\":2}");
}

static void
changes_are_added_to_a_name (void)
{
  static const struct {
    const char *name, *added, *expected;
  } cases[] = {
    { "pair", "a=1", "pair:a=1" },
    { "pair:b=2", "a=1", "pair:b=2,a=1" },
    { "pair:a=2,b=[1,2]", "a=1", "pair:b=[1,2],a=1" },
    { "pair:a.b=2,ab=3", "a={}", "pair:ab=3,a={}" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *got = ls_override_add (cases[i].name, cases[i].added);
    LS_CHECK_STR (got, cases[i].expected);
  }
}

static void
nonsense_is_refused (void)
{
  static const char *const wrong[] = { "a", "=1", "a=1,", "a=1,b", "a.x=1", "a=1,,b=2" };
  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autofree char *got = changed ("{\"a\":1}", wrong[i]);
    bool ends_in_comma = strcmp (wrong[i], "a=1,") == 0; /* nothing after it: nothing to change */
    LS_CHECK ((got == NULL) != ends_in_comma);
  }
}

/* --- names as people write them ----------------------------------------------------------------------- */

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
    cJSON_ArrayForEach (one, also) {
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

LS_TEST_SUITE (LS_TEST (data_dir_comes_first), LS_TEST (paths_are_taken_as_they_are),
               LS_TEST (missing_names_get_a_suggestion), LS_TEST (lists_are_sorted_and_can_be_found),
               LS_TEST (first_place_wins), LS_TEST (paths_are_meant_from_the_folder_of_the_file),
               LS_TEST (members_of_sets_are_files), LS_TEST (files_extend_others),
               LS_TEST (a_described_gpu_extends_another), LS_TEST (a_file_is_parsed_once_as_long_as_it_stays),
               LS_TEST (names_are_cut_at_the_colon_before_a_key), LS_TEST (given_json_is_cut_behind_it),
               LS_TEST (given_json_is_a_file_without_a_name), LS_TEST (values_are_replaced),
               LS_TEST (what_is_missing_is_added), LS_TEST (a_key_goes_on_behind_the_name_of_a_file),
               LS_TEST (a_key_changes_once), LS_TEST (changes_are_added_to_a_name),
               LS_TEST (nonsense_is_refused), LS_TEST (names_are_known_as_people_write_them),
               LS_TEST (each_other_name_is_of_one_cluster), LS_TEST (a_slice_has_the_chips_of_its_name),
               LS_TEST (slices_are_as_large_as_they_are_called),
               LS_TEST (clusters_are_found_by_their_accelerators))
