/* A step as wide as GPT-3's, 16 layers deep, on 1,024 H100s, tp 8 and 128 replicas, each rank by
 * itself: collectives as flows, and every message of them (--network step), as a user starts it.
 *
 * Targets: 0.4 s by flows, 5.5 s by messages.
 *
 * Usage: bench_wide LOCKSTEP */
#include <glib/gstdio.h>

#include "ls_bench.h"
#include "program.h"

#define NAME    "wide16"
#define N_RANKS 1024

static const char model[]
    = "{\"schema\": \"lockstep.model/1\", \"name\": \"" NAME
      "\", \"source\": \"width of Brown et al. 2020 (arXiv 2005.14165)\",\n"
      " \"layers\": 16, \"hidden\": 12288, \"heads\": 96, \"ffn\": 49152, \"vocab\": 51200, \"seq\": 2048, \"mlp\": \"gelu\",\n"
      " \"norm\": \"layernorm\", \"position\": \"learned\", \"attention\": \"unfused\", \"linear_bias\": true,\n"
      " \"tied_embeddings\": true}\n";

static void
measure (const char *lockstep, const char *path, const char *network, int n_times)
{
  g_autofree char *line = g_strdup_printf (
      "%s run --json --model %s --cluster dgx-h100 --gpus %d --tp 8 --sp --micro-batch 1 --global-batch %d --steps 1 --fold off "
      "--network %s",
      lockstep, path, N_RANKS, N_RANKS / 8, network);
  g_auto (GStrv) argv = g_strsplit (line, " ", -1);
  double best_s = 0, peak_mib = 0;
  for (int i = 0; i < n_times; i++) { /* what disturbs only adds */
    double wall_s;
    g_autofree char *json = ls_bench_program (argv, NULL, &wall_s, &peak_mib);
    best_s = i == 0 ? wall_s : MIN (best_s, wall_s);
  }
  g_autofree char *wall = g_strdup_printf ("wide_%s_wall", network),
                  *memory = g_strdup_printf ("wide_%s_memory", network);
  ls_bench_print (wall, N_RANKS, "s", best_s, 0);
  ls_bench_print (memory, N_RANKS, "MiB", peak_mib, 0);
}

int
main (int argc, char **argv)
{
  if (argc != 2) {
    fprintf (stderr, "usage: bench_wide LOCKSTEP\n");
    return 2;
  }
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("lockstep-bench-XXXXXX", &error);
  g_autofree char *path = dir ? g_build_filename (dir, NAME ".json", NULL) : NULL;
  if (!path || !g_file_set_contents (path, model, -1, &error)) {
    fprintf (stderr, "bench_wide: %s\n", error->message);
    return 1;
  }
  ls_bench_header ();
  measure (argv[1], path, "flow", 5);
  measure (argv[1], path, "step", 3);
  g_remove (path);
  g_rmdir (dir);
  return 0;
}
