#include "show/catalog.h"

#include <gio/gio.h>
#include <lockstep/error.h>
#include <stdbool.h>
#include <string.h>

#include "base/list.h"
#include "base/printable.h"
#include "base/suggest.h"
#include "data/inspect.h"
#include "data/text/field.h"
#include "job/job.h"
#include "schedules/sched.h"

#define SCHEDULES -1 /* these are no files */

static const struct {
  const char *kind;
  int data; /* LsDataKind, or that */
} data_kinds[] = {
  { "models", LS_DATA_MODELS },
  { "clusters", LS_DATA_CLUSTERS },
  { "gpus", LS_DATA_GPUS },
  { "strategies", LS_DATA_STRATEGIES },
  { "software", LS_DATA_SOFTWARE },
  { "kernels", LS_DATA_KERNELS },
  { "programs", LS_DATA_PROGRAMS },
  { "optimizers", LS_DATA_OPTIMIZERS },
  { "reliability", LS_DATA_RELIABILITY },
  { "scaling", LS_DATA_SCALING },
  { "jitter", LS_DATA_JITTER },
  { "traces", LS_DATA_TRACES },
  { "labs", LS_DATA_LABS },
  { "schedules", SCHEDULES },
};

/* What there is of a kind. */
typedef struct {
  const char *kind;
  GPtrArray *entries; /* LsDataEntry; of schedules names alone */
} Kind;

/* What the file holds, without saying again of which kind it is. Newly allocated; NULL: it is wrong. */
static char *
summary_of (const LsDataEntry *entry)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  const char *kind;
  g_autofree char *summary = ls_inspect_file (entry->path, &kind, diags);
  const char *comma = summary ? strstr (summary, ", ") : NULL;
  return comma ? g_strdup (comma + 2) : g_steal_pointer (&summary);
}

static char *
describe (const LsDataEntry *entry)
{
  if (!entry->path)
    return g_strdup ("");
  g_autofree char *summary = summary_of (entry), *path = ls_printable (entry->path);
  return summary ? g_steal_pointer (&summary) : g_strdup_printf ("wrong: see lockstep check %s", path);
}

static GPtrArray *
list_schedules (void)
{
  GPtrArray *entries = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; ls_sched_at (i); i++) {
    const LsDataEntry entry = { .name = (char *) ls_sched_at (i)->name };
    g_ptr_array_add (entries, g_memdup2 (&entry, sizeof entry));
  }
  return entries;
}

static void
kind_clear (gpointer kind)
{
  g_ptr_array_unref (((Kind *) kind)->entries);
}

/* Kind: the one asked for, or where that is NULL all. NULL: there is no such kind. */
static GArray *
kinds_of (const char *asked, GError **error)
{
  g_autoptr (GString) known = g_string_new (NULL);
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  g_autoptr (GArray) kinds = ls_list_new (sizeof (Kind), kind_clear);
  for (guint i = 0, n = G_N_ELEMENTS (data_kinds); i < n; i++) {
    const char *name = data_kinds[i].kind;
    g_ptr_array_add (names, (gpointer) name);
    g_string_append_printf (known, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " or ", name);
    if (asked && strcmp (asked, name) != 0)
      continue;
    int data = data_kinds[i].data;
    const Kind kind = { name, data == SCHEDULES ? list_schedules () : ls_data_list ((LsDataKind) data) };
    g_array_append_val (kinds, kind);
  }
  if (kinds->len > 0)
    return g_steal_pointer (&kinds);
  g_ptr_array_add (names, NULL);
  g_autofree char *hint = ls_did_you_mean (asked, (const char *const *) names->pdata);
  return ls_fail_null (error, LS_ERROR_USAGE, "expected %s; got \"%s\"%s", known->str, asked, hint);
}

#include "show/list_keys.h"

char *
ls_catalog_to_json (const char *kind, GError **error)
{
  g_autoptr (GArray) kinds = kinds_of (kind, error);
  return kinds ? kinds_to_json (kinds) : NULL;
}

static gboolean
check_strategy (const char *path, const char *model, const char *cluster, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  gboolean ok = ls_job_spec_load_strategy (&spec, path, diags) || ls_diag_list_to_error (diags, error);
  if (ok) {
    spec.model = g_strdup (model);
    spec.cluster = g_strdup (cluster);
    ok = ls_job_spec_check (&spec, error);
  }
  if (!ok)
    g_prefix_error (error, "%s: ", path);
  ls_job_spec_clear (&spec);
  return ok;
}

LsCheckedFile *
ls_catalog_check (const char *path, const char *model, const char *cluster)
{
  LsCheckedFile *f = g_new0 (LsCheckedFile, 1);
  const char *kind;
  f->path = ls_json_is_given (path) ? g_strdup ("file") : ls_printable (path);
  f->diags = ls_diag_list_new ();
  f->about = ls_inspect_file (path, &kind, f->diags);
  if (!f->about)
    ls_diag_list_to_error (f->diags, &f->problem);
  else if (g_str_equal (kind, "strategy") && model && !check_strategy (path, model, cluster, &f->problem))
    g_clear_pointer (&f->about, g_free);
  return f;
}

void
ls_checked_file_free (LsCheckedFile *f)
{
  if (!f)
    return;
  g_free (f->path);
  g_free (f->about);
  ls_diag_list_free (f->diags);
  g_clear_error (&f->problem);
  g_free (f);
}

/* What is wrong with its places, or one mistake without any. */
static guint
n_mistakes (const LsCheckedFile *f)
{
  guint n = ls_diag_list_n_kept (f->diags);
  return n > 0 ? n : f->problem != NULL;
}

static LsDiagView
mistake_at (const LsCheckedFile *f, guint i)
{
  return ls_diag_list_n_kept (f->diags) > 0 ? ls_diag_list_at (f->diags, i)
                                            : (LsDiagView) { .message = f->problem->message };
}

#include "show/check_keys.h"

/* ---- schemas ---- */

GResource *schema_get_resource (void); /* of schema.gresource.xml */

/* Of all that is written "run: results of lockstep run", a line break, and the schema; newly allocated. */
static char **
written_schemas (void)
{
  g_autoptr (GBytes) bytes = g_resource_lookup_data (
      schema_get_resource (), "/lockstep/schema/result_schemas.txt", G_RESOURCE_LOOKUP_FLAGS_NONE, NULL);
  g_assert (bytes);
  gsize size;
  const char *text = g_bytes_get_data (bytes, &size);
  gsize head = strlen ("== ");
  g_autofree char *all = g_strndup (text + head, size - head);
  return g_strsplit (g_strchomp (all), "\n== ", -1);
}

/* That of a name, newly allocated; NULL: there is none. */
static char *
written_schema (const char *name)
{
  g_auto (GStrv) all = written_schemas ();
  g_autofree char *head = g_strconcat (name, ": ", NULL);
  for (guint i = 0; all[i]; i++)
    if (g_str_has_prefix (all[i], head))
      return g_strconcat (strchr (all[i], '\n') + 1, "\n", NULL);
  return NULL;
}

/* --- a schema by its name --------------------------------------------------------------------------- */

static void
refuse (const char *name, GError **error)
{
  g_auto (GStrv) written = written_schemas ();
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  const char *kind;
  for (guint i = 0; (kind = ls_file_schema_kind (i)); i++)
    g_ptr_array_add (names, (gpointer) kind);
  for (guint i = 0; written[i]; i++) {
    *strchr (written[i], ':') = '\0';
    g_ptr_array_add (names, written[i]);
  }
  g_ptr_array_add (names, NULL);
  g_autofree char *hint = ls_did_you_mean (name, (const char *const *) names->pdata);
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "there is no schema \"%s\"%s", name,
               *hint ? hint : "; lockstep schema lists them");
}

/* Of what is read; newly allocated. */
static char *
read_schema (guint i)
{
  const char *name = ls_file_schema_kind (i);
  g_autofree char *id = g_strdup_printf ("urn:lockstep:%s:1", name);
  g_autofree char *title = g_strdup_printf ("lockstep.%s/1", name);
  LsJsonOut w;
  ls_json_out_open (&w);
  ls_json_out_string (&w, "$schema", LS_JSON_SCHEMA_DIALECT);
  ls_json_out_string (&w, "$id", id);
  ls_json_out_string (&w, "title", title);
  ls_file_schema_write (i, &w);
  return ls_json_out_close (&w);
}

/* What is written with a schema that is read too has it from the table that reads it. */
char *
ls_schema_to_json (const char *asked, GError **error)
{
  bool is_whole = g_str_has_prefix (asked, "lockstep.") && g_str_has_suffix (asked, "/1");
  const char *begin = asked + (is_whole ? strlen ("lockstep.") : 0);
  g_autofree char *name = g_strndup (begin, strlen (begin) - (is_whole ? strlen ("/1") : 0));
  const char *kind;
  for (guint i = 0; (kind = ls_file_schema_kind (i)); i++)
    if (strcmp (kind, name) == 0)
      return read_schema (i);
  char *text = written_schema (name);
  if (!text)
    refuse (name, error);
  return text;
}

static guint
n_schemas_read (void)
{
  guint n = 0;
  while (ls_file_schema_kind (n))
    n++;
  return n;
}

#include "show/catalog_text.h"

char *
ls_catalog_list (const char *kind, GError **error)
{
  g_autoptr (GArray) kinds = kinds_of (kind, error);
  return kinds ? kinds_to_text (kinds) : NULL;
}
