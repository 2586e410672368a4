/* data/text/json_kept.c — JSON of paths: files, also those that are kept for who asks again, and JSON that
 * stands in place of a path. */
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/handover.h"
#include "data/text/json_doc.h"
#include "data/text/read_file.h"

LsJsonDoc *
ls_json_doc_load (const char *path, LsDiagList *diags)
{
  size_t n = 0;
  g_autofree char *text = ls_read_file (path, LS_MAX_INPUT_BYTES, &n, diags);
  return text ? ls_json_doc_parse (text, n, path, diags) : NULL;
}

bool
ls_json_is_given (const char *text)
{
  return *text == '{';
}

LsJsonDoc *
ls_json_doc_load_or_given (const char *path, const char *name, LsDiagList *diags)
{
  return ls_json_is_given (path) ? ls_json_doc_parse_given (path, name, diags)
                                 : ls_json_doc_load (path, diags);
}

/* --- kept ---------------------------------------------------------------------------------------- */

#define MAX_KEPT       64
#define MAX_KEPT_BYTES (1 << 20)
#define SETTLED_S      2 /* a file that was written so lately may change again without another time */

typedef struct {
  struct stat of;
  LsJsonDoc *doc;
} Kept;

static void
kept_free (gpointer kept)
{
  ls_json_doc_free (((Kept *) kept)->doc);
  g_free (kept);
}

static bool
is_unchanged (const struct stat *a, const struct stat *b)
{
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size
      && a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void
keep (GHashTable *all, const char *path, const struct stat *of, LsJsonDoc *doc)
{
  bool is_settled = time (NULL) - of->st_mtim.tv_sec > SETTLED_S;
  if (!is_settled || !S_ISREG (of->st_mode) || of->st_size > MAX_KEPT_BYTES)
    return;
  Kept *kept = g_new (Kept, 1);
  *kept = (Kept) { *of, ls_json_doc_ref (doc) };
  if (g_hash_table_size (all) >= MAX_KEPT)
    g_hash_table_remove_all (all);
  g_hash_table_replace (all, g_strdup (path), kept);
}

LsJsonDoc *
ls_json_doc_load_kept (const char *path, LsDiagList *diags)
{
  static GMutex lock;
  static GHashTable *all; /* path to Kept */
  struct stat now;
  if (stat (path, &now) != 0)
    return ls_json_doc_load (path, diags);
  g_mutex_lock (&lock);
  LS_TAKE_OVER (&lock);
  if (!all)
    all = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, kept_free);
  const Kept *kept = g_hash_table_lookup (all, path);
  bool is_kept = kept && is_unchanged (&kept->of, &now);
  LsJsonDoc *doc = is_kept ? ls_json_doc_ref (kept->doc) : ls_json_doc_load (path, diags);
  if (doc && !is_kept)
    keep (all, path, &now, doc);
  LS_HAND_OVER (&lock);
  g_mutex_unlock (&lock);
  return doc;
}
