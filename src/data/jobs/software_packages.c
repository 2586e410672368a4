/* Programs by the version of a package of theirs, as a checkout says it ("package" of their files). */
#include <string.h>

#include "data/datadir.h"
#include "data/jobs/read_software.h"

#define N_PARTS  3
#define MAX_PART 999999

/* "0.4.1" as a number that orders versions; what follows the third part, or is no number, does not count. */
static guint64
order_of (const char *version)
{
  g_auto (GStrv) parts = g_strsplit (version, ".", -1);
  guint64 order = 0;
  guint n = g_strv_length (parts);
  for (guint i = 0; i < N_PARTS; i++)
    order = order * (MAX_PART + 1) + (i < n ? MIN (g_ascii_strtoull (parts[i], NULL, 10), MAX_PART) : 0);
  return order;
}

/* The version behind the name; NULL: of another package, or none. */
static const char *
version_of (const LsSoftwareSpec *s, const char *package)
{
  gsize n = strlen (package);
  bool is_its = s->package && strncmp (s->package, package, n) == 0 && s->package[n] == ' ';
  return is_its ? s->package + n + 1 : NULL;
}

char *
ls_software_of_package (const char *package, const char *version)
{
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_SOFTWARE);
  guint64 asked = order_of (version), best = 0;
  char *name = NULL;
  for (guint i = 0; i < entries->len; i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    const LsDataEntry *entry = entries->pdata[i];
    LsSoftwareSpec head;
    if (!ls_software_load_head (entry->path, &head, diags))
      continue;
    const char *from = version_of (&head, package);
    guint64 order = from ? order_of (from) : 0;
    bool is_nearer = order <= asked ? best > asked || order > best : order < best;
    if (from && (!name || is_nearer)) {
      g_free (name);
      name = g_strdup (entry->name);
      best = order;
    }
    ls_software_clear (&head);
  }
  return name;
}
