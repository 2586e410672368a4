#include "show/run/write_run.h"

#include "data/text/csv.h"
#include "data/text/write_file.h"

#define HEADER "link,capacity_bytes_per_s,bytes,utilisation\n"

typedef struct {
  const LsTimeline *timeline;
  const LsCluster *cluster;
} Table;

static void
write_number (FILE *out, double value, const char *format, char end)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  fprintf (out, "%s%c", g_ascii_formatd (text, sizeof text, format, value), end);
}

static gboolean
write_table (FILE *out, void *data, GError **error)
{
  const Table *table = data;
  const LsTimeline *t = table->timeline;
  double window_s = ls_time_to_s (t->window_end - t->window_start);
  fputs (HEADER, out);
  for (guint i = 0; i < table->cluster->n_trunks; i++) {
    const LsTrunk *trunk = ls_cluster_trunk (table->cluster, i);
    double bytes = i < t->n_resources ? t->resource_bytes[i] : 0;
    ls_csv_print (out, trunk->name);
    fputc (',', out);
    write_number (out, trunk->is_failed ? 0 : trunk->capacity_bytes_per_s, "%.17g", ',');
    write_number (out, bytes, "%.17g", ',');
    write_number (out, bytes / (trunk->capacity_bytes_per_s * window_s), "%.6g", '\n');
  }
  return TRUE;
}

gboolean
ls_links_write (const LsTimeline *timeline, const LsCluster *cluster, const char *path, GError **error)
{
  g_autoptr (LsCluster) whole = ls_cluster_spell_out (cluster); /* with all names */
  Table table = { timeline, whole };
  return ls_write_file (path, write_table, &table, error);
}
