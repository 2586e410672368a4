/* Pins the topology through the public header: shipped clusters are described and drawn, the
 * lists of links agree with each other, and files fail as documented. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <string.h>

#include <lockstep/lockstep.h>

static LsTopology *
described (const char *cluster, const char *nodes, const char *slice)
{
  g_autoptr (GError) error = NULL;
  const LsTopologyOptions options = { .cluster = cluster, .nodes = nodes, .slice = slice };
  LsTopology *t = ls_topology_new (&options, &error);
  LS_CHECK_NO_ERROR (error);
  return t;
}

static guint
count (const char *text, const char *word)
{
  guint n = 0;
  for (const char *at = text; (at = strstr (at, word)); at += strlen (word))
    n++;
  return n;
}

static void
details_add_links (void)
{
  g_autoptr (LsTopology) t = described ("dgx-1-v100", "2", NULL);
  if (!t)
    return;
  g_autofree char *brief = ls_topology_text (t, LS_TOPOLOGY_BRIEF, LS_TEXT_ASCII);
  g_autofree char *links = ls_topology_text (t, LS_TOPOLOGY_LINKS, LS_TEXT_ASCII);
  g_autofree char *all = ls_topology_text (t, LS_TOPOLOGY_ALL, LS_TEXT_ASCII);
  LS_CHECK (g_str_is_ascii (brief));
  LS_CHECK (g_str_has_prefix (links, brief) && g_str_has_prefix (all, links));
  LS_CHECK (strstr (links, "NVLink2") != NULL && !strstr (brief, "NVLink2 "));
  LS_CHECK (strstr (all, "node1/gpu3>gpu7") != NULL && !strstr (links, "node1/gpu3>gpu7"));
  g_autofree char *json = ls_topology_json (t, LS_TOPOLOGY_LINKS), *more = ls_topology_json (t, LS_TOPOLOGY_ALL);
  LS_CHECK (!strstr (json, "\"trunks\"") && strstr (more, "\"trunks\""));
}

/* In turns of the same call; nothing depends on an address or on time. */
static void
output_is_the_same_each_time (void)
{
  g_autoptr (LsTopology) a = described ("gb200-nvl72", "4", NULL);
  g_autoptr (LsTopology) b = described ("gb200-nvl72", "4", NULL);
  if (!a || !b)
    return;
  g_autofree char *x = ls_topology_json (a, LS_TOPOLOGY_ALL), *y = ls_topology_json (b, LS_TOPOLOGY_ALL);
  LS_CHECK_STR (x, y);
}

/* --- pictures --- */

static char *
drawn (const LsTopology *t)
{
  g_autofree char *gnuplot = g_find_program_in_path ("gnuplot");
  if (!gnuplot) {
    printf ("skipped: no gnuplot here\n");
    return NULL;
  }
  g_autoptr (GError) error = NULL;
  g_autofree char *folder = g_dir_make_tmp ("ls-topology-XXXXXX", NULL), *path = g_build_filename (folder, "x.svg", NULL);
  char *picture = NULL;
  LS_CHECK (ls_topology_plot (t, path, &error));
  LS_CHECK_NO_ERROR (error);
  g_file_get_contents (path, &picture, NULL, NULL);
  LS_CHECK_INT (g_unlink (path) + g_rmdir (folder), ==, 0);
  return picture;
}

/* Every GPU of a node is named; of many nodes some. */
static void
a_server_is_drawn (void)
{
  g_autoptr (LsTopology) t = described ("dgx-h100", "4", NULL);
  g_autofree char *picture = t ? drawn (t) : NULL;
  if (!picture)
    return;
  LS_CHECK_INT (count (picture, ">gpu<"), ==, 8);
  LS_CHECK_INT (count (picture, ">leaf<"), ==, 8);
  LS_CHECK_INT (count (picture, ">node "), ==, 4);
  LS_CHECK (strstr (picture, "4 x nvswitch, 18 links of each of 8 gpus: 450.0 GB/s") != NULL);
}

static void
a_slice_is_drawn (void)
{
  g_autoptr (LsTopology) t = described ("tpu-v4", NULL, "4x4x4");
  g_autofree char *picture = t ? drawn (t) : NULL;
  if (!picture)
    return;
  LS_CHECK (strstr (picture, ">63<") != NULL);
  LS_CHECK (strstr (picture, "4 x 4 x 4 chips; wraps (red) along x, y, z; 16 hosts") != NULL);
}

static void
what_is_too_large_is_drawn_in_part (void)
{
  g_autoptr (LsTopology) t = described ("dgx-h100", "512", NULL);
  g_autofree char *picture = t ? drawn (t) : NULL;
  if (!picture)
    return;
  LS_CHECK_INT (count (picture, ">node "), ==, 8);
  LS_CHECK (strstr (picture, ">node 511<") != NULL && strstr (picture, ">512 x node<") != NULL);
}

static void
files_fail_as_documented (void)
{
  g_autoptr (LsTopology) t = described ("dgx-h100", NULL, NULL);
  g_autoptr (GError) error = NULL;
  if (!t)
    return;
  LS_CHECK (!ls_topology_write_dot (t, "/no/such/folder/x.dot", &error));
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_IO));
  g_clear_error (&error);
  LS_CHECK (!ls_topology_plot (t, "x.pdf", &error));
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_USAGE));
}

/* --- st-meas: 22.05 ms for an all-reduce of 4 GiB over 4 nodes of 8 B200s, which models
 * bracket by 16.1 and 26.25 ms (stas00/ml-engineering network/README.md@744d01e). Printed,
 * as it is one measurement on a machine that is not described; never below the bytes that
 * must leave a node, 16.1 ms. --- */
static void
four_nodes_of_b200_are_near_a_measurement (void)
{
  g_autoptr (GError) error = NULL;
  const LsCollectiveOptions options = { .cluster = "dgx-b200", .op = "all-reduce", .nodes = "4", .min = "4GiB", .max = "4GiB" };
  g_autoptr (LsCollective) run = ls_collective_run (&options, &error);
  LS_CHECK_NO_ERROR (error);
  if (!run)
    return;
  g_autofree char *json = ls_collective_json (run);
  const char *time = strstr (json, "\"time_us\": ");
  if (!LS_CHECK (time != NULL))
    return;
  double ms = g_ascii_strtod (time + strlen ("\"time_us\": "), NULL) / 1e3;
  printf ("all-reduce of 4 GiB over 4 nodes of dgx-b200: %.2f ms, %.2f of 22.05 ms measured\n", ms, ms / 22.05);
  LS_CHECK_DOUBLE (ms, >, 16.1);
  LS_CHECK_DOUBLE (ms, <, 2 * 22.05);
}

LS_TEST_MAIN ("topology", LS_TEST (details_add_links), LS_TEST (output_is_the_same_each_time), LS_TEST (a_server_is_drawn), LS_TEST (a_slice_is_drawn),
              LS_TEST (what_is_too_large_is_drawn_in_part), LS_TEST (files_fail_as_documented), LS_TEST (four_nodes_of_b200_are_near_a_measurement))
