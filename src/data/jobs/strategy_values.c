#include "data/jobs/strategy_values.h"

#include <string.h>
#include <lockstep/units.h>

#include "base/suggest.h"
#include "data/datadir.h"
#include "data/jobs/job_files.h"
#include "data/jobs/read_placement.h"
#include "data/text/csv.h"
#include "data/text/json_doc.h"
#include "strategy/strategy.h"

static const struct {
  const char *name;
  uint32_t bit;
} recompute_parts[] = {
  { "core", LS_RECOMPUTE_CORE },
  { "norm", LS_RECOMPUTE_NORM },
  { "activation", LS_RECOMPUTE_ACTIVATION },
  { "op", LS_RECOMPUTE_OP },
  { "mla-up", LS_RECOMPUTE_MLA_UP },
  { "mlp", LS_RECOMPUTE_MLP },
  { "moe", LS_RECOMPUTE_MOE },
  { "shared", LS_RECOMPUTE_SHARED },
  { "dots-flash", LS_RECOMPUTE_DOTS_FLASH }, /* names of several before these */
  { "dots", LS_RECOMPUTE_DOTS },
  { "keep-qkv", LS_RECOMPUTE_BUT_QKV },
  { "keep-attention", LS_RECOMPUTE_BUT_ATTENTION },
  { "keep-projection", LS_RECOMPUTE_BUT_PROJECTION },
  { "keep-up", LS_RECOMPUTE_BUT_UP },
  { "keep-down", LS_RECOMPUTE_BUT_DOWN },
  /* as they were called until November 2026; read, and not written */
  { "but-qkv", LS_RECOMPUTE_BUT_QKV },
  { "but-attention", LS_RECOMPUTE_BUT_ATTENTION },
  { "but-projection", LS_RECOMPUTE_BUT_PROJECTION },
  { "but-up", LS_RECOMPUTE_BUT_UP },
  { "but-down", LS_RECOMPUTE_BUT_DOWN },
};

/* "core,norm" */
bool
strategy_parse_parts (const char *text, void *target)
{
  uint32_t set = 0;
  if (g_str_equal (text, "auto")) {
    ((LsStrategy *) target)->memory.recompute_parts = 0;
    return true;
  }
  g_auto (GStrv) names = g_strsplit (text, ",", -1);
  for (guint i = 0; names[i]; i++) {
    guint p = 0;
    while (p < G_N_ELEMENTS (recompute_parts) && !g_str_equal (names[i], recompute_parts[p].name))
      p++;
    if (p == G_N_ELEMENTS (recompute_parts))
      return false;
    set |= recompute_parts[p].bit;
  }
  ((LsStrategy *) target)->memory.recompute_parts = set;
  return set != 0;
}

char *
strategy_format_parts (const void *target)
{
  uint32_t left = ((const LsStrategy *) target)->memory.recompute_parts;
  GString *out = g_string_new (left == 0 ? "auto" : NULL);
  for (guint p = 0; p < G_N_ELEMENTS (recompute_parts); p++)
    if ((left & recompute_parts[p].bit) == recompute_parts[p].bit) {
      g_string_append_printf (out, "%s%s", out->len > 0 ? "," : "", recompute_parts[p].name);
      left &= ~recompute_parts[p].bit;
    }
  return g_string_free (out, FALSE);
}

/* "qkv:bf16,mixer-out:mxfp8", or "none" */
bool
strategy_parse_formats (const char *text, void *target)
{
  return ls_formats_parse (g_str_equal (text, "none") ? "" : text,
                           &((LsStrategy *) target)->fp8.module_formats);
}

char *
strategy_format_formats (const void *target)
{
  const LsFormats *formats = &((const LsStrategy *) target)->fp8.module_formats;
  return ls_formats_any (formats) ? ls_formats_text (formats) : g_strdup ("none");
}

/* "auto", "0", "1", or the size of the groups that keep a copy. */
bool
strategy_parse_reshard (const char *text, void *target)
{
  uint64_t n = LS_RESHARD_AUTO;
  if (!g_str_equal (text, "auto") && (!ls_parse_count (text, &n, NULL) || n >= UINT32_MAX))
    return false;
  ((LsStrategy *) target)->data.reshard_after_forward = (uint32_t) n;
  return true;
}

char *
strategy_format_reshard (const void *target)
{
  uint32_t n = ((const LsStrategy *) target)->data.reshard_after_forward;
  return n == LS_RESHARD_AUTO ? g_strdup ("auto") : g_strdup_printf ("%u", n);
}

/* A name or a file, which is loaded: what a strategy holds is what is lowered. */

static const char *const own_kernels[]
    = { LS_BUILT_IN_KERNELS, NULL },
    *const own_optimizers[] = { "adam", "adamw", NULL }, *const own_lengths[] = { "whole", NULL },
           *const own_placements[] = { LS_PLACEMENT_BLOCK, NULL };

/* The first mistake, without the line of the file that it shows; newly allocated. */
static char *
first_of (const LsDiagList *diags)
{
  char *why = ls_diag_list_format (diags);
  why[strcspn (why, "\n")] = '\0';
  return why;
}

/* What is wrong with such a name, or in its file. own: names that need no file. */
static char *
why_data (LsDataKind kind, const char *const *own, const char *text, const LsDiagList *diags)
{
  g_autofree char *missing = NULL, *path = ls_data_find (kind, text, &missing);
  if (!path) {
    g_autofree char *hint = strstr (missing, "did you mean") ? g_strdup ("") : ls_did_you_mean (text, own);
    return g_strconcat (missing, hint, NULL);
  }
  return first_of (diags);
}

char *
strategy_why_kernels (const char *text)
{
  g_auto (GStrv) parts = ls_recipes_parts (text);
  for (guint i = 0; parts[i]; i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (LsRecipes) list = ls_recipes_load (parts[i], diags);
    if (!list)
      return why_data (LS_DATA_KERNELS, own_kernels, parts[i], diags);
  }
  return NULL;
}

char *
strategy_why_optimizer (const char *text)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  ls_optimizer_kind_unref (ls_optimizer_load (text, diags));
  return why_data (LS_DATA_OPTIMIZERS, own_optimizers, text, diags);
}

/* A number of a row; 0, with a diagnostic, where it is none. */
static guint64
read_cell (const LsCsv *csv, guint row, int column, guint64 min, guint64 max, LsDiagList *diags)
{
  uint64_t n = 0;
  if (!ls_parse_count (ls_csv_cell (csv, row, (guint) column), &n, NULL) || n < min || n > max)
    ls_csv_error (csv, row, (guint) column, diags,
                  "expected a whole number from %" G_GUINT64_FORMAT " on; got \"%s\"", min,
                  ls_csv_cell (csv, row, (guint) column));
  return n;
}

/* A CSV with columns length and count. NULL: diagnostics. */
static LsLengths *
load_counts (const char *path, LsDiagList *diags)
{
  g_autoptr (LsCsv) csv = ls_csv_load (path, diags);
  int length = csv ? ls_csv_column (csv, "length") : -1, count = csv ? ls_csv_column (csv, "count") : -1;
  if (!csv)
    return NULL;
  if (length < 0 || count < 0)
    ls_csv_header_error (csv, diags, "expected columns length and count");
  if (length < 0 || count < 0)
    return NULL;
  guint n = ls_csv_n_rows (csv);
  g_autofree LsLengthCount *counts = g_new0 (LsLengthCount, n + 1);
  for (guint i = 0; i < n; i++)
    counts[i] = (LsLengthCount) { (uint32_t) read_cell (csv, i, length, 1, LS_LENGTH_MAX, diags),
                                  (double) read_cell (csv, i, count, 0, G_MAXINT64, diags) };
  if (ls_diag_list_n (diags) > 0)
    return NULL;
  g_autofree char *why = NULL;
  LsLengths *lengths = ls_lengths_new_counted (counts, n, &why);
  if (!lengths)
    ls_csv_header_error (csv, diags, "%s", why);
  return lengths;
}

/* NULL without diagnostics: a formula that is none. */
static LsLengths *
load_lengths (const char *text, LsDiagList *diags)
{
  g_autofree char *why = NULL;
  return g_str_has_prefix (text, LS_LENGTHS_FILE) ? load_counts (text + strlen (LS_LENGTHS_FILE), diags)
                                                  : ls_lengths_parse (text, &why);
}

char *
strategy_why_lengths (const char *text)
{
  if (!g_str_has_prefix (text, LS_LENGTHS_FILE))
    return NULL;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  ls_lengths_unref (load_lengths (text, diags));
  return first_of (diags);
}

void
strategy_clear_rank_order (void *target)
{
  LsStrategy *s = target;
  g_clear_pointer (&s->layout.rank_order, g_free);
}

bool
strategy_parse_rank_order (const char *text, void *target)
{
  LsStrategy *s = target;
  LsRankOrder order;
  uint32_t named;
  if (!ls_rank_order_parse (text, &order, &named))
    return false;
  bool is_default = order == 0 && named == (1u << LS_N_DIMS) - 1;
  strategy_clear_rank_order (s);
  s->layout.rank_order = is_default ? NULL : g_ascii_strdown (text, -1);
  return true;
}

char *
strategy_format_rank_order (const void *target)
{
  const LsStrategy *s = target;
  return s->layout.rank_order ? g_strdup (s->layout.rank_order) : ls_rank_order_text (0);
}

char *
strategy_why_placement (const char *text)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  ls_allocation_unref (ls_placement_load (text, diags));
  g_autofree char *said = ls_diag_list_format (diags);
  g_auto (GStrv) lines = g_strsplit (said, "\n", -1);
  GString *why = g_string_new (NULL);
  for (char **line = lines; *line; line++) { /* without the lines of the file, which are indented */
    const char *what = g_str_has_prefix (*line, "error: ") ? *line + strlen ("error: ") : *line;
    if (*what != '\0' && !g_ascii_isspace (*what))
      g_string_append_printf (why, "%s%s", why->len > 0 ? "; " : "", what);
  }
  return g_string_free (why, FALSE);
}

/* "2" or "3@8": stage, and how many ranks share one copy. */
bool
strategy_parse_zero (const char *text, void *target)
{
  LsStrategy *s = target;
  guint64 stage;
  uint64_t group = 0;
  g_auto (GStrv) parts = g_strsplit (text, "@", 2);
  if (g_str_equal (text, "auto")) {
    s->zero_stage = LS_ZERO_AUTO;
    s->data.zero_group = 0;
    return true;
  }
  if (!parts[0] || !g_ascii_string_to_unsigned (parts[0], 10, 0, 3, &stage, NULL))
    return false;
  if (parts[1] && (!ls_parse_count (parts[1], &group, NULL) || group < 1 || group > UINT32_MAX))
    return false;
  s->zero_stage = (uint32_t) stage;
  s->data.zero_group = (uint32_t) group;
  return true;
}

char *
strategy_format_zero (const void *target)
{
  const LsStrategy *s = target;
  if (s->zero_stage == LS_ZERO_AUTO)
    return g_strdup ("auto");
  return s->data.zero_group > 0 ? g_strdup_printf ("%u@%u", s->zero_stage, s->data.zero_group)
                                : g_strdup_printf ("%u", s->zero_stage);
}

/* --- values that are files of somebody's --------------------------------------------------------- */

#define LOAD(own_, load_, unref_, member_, prefix_)                                                          \
  {                                                                                                          \
    own_, (gpointer (*) (const char *, LsDiagList *)) (load_), (GDestroyNotify) (unref_),                    \
        offsetof (LsStrategy, member_), prefix_                                                              \
  }
const LsFieldLoad strategy_kernels = LOAD (own_kernels, ls_recipes_load, ls_recipes_unref, use.recipes, "");
const LsFieldLoad strategy_optimizer
    = LOAD (own_optimizers, ls_optimizer_load, ls_optimizer_kind_unref, opt.kind, "");
const LsFieldLoad strategy_lengths
    = LOAD (own_lengths, load_lengths, ls_lengths_unref, docs.drawn, LS_LENGTHS_FILE);
const LsFieldLoad strategy_placement
    = LOAD (own_placements, ls_placement_load, ls_allocation_unref, layout.allocation, "");

/* A mistake that has a place: one of a value that is no file, or of a name that no file has, has none. */
static bool
is_in_file (const LsDiagList *diags)
{
  return ls_diag_list_n_kept (diags) > 0 && ls_diag_list_at (diags, 0).file;
}

bool
ls_value_file_check (const char *key, const char *text, LsDiagList *diags)
{
  const LsField *f = ls_field_find (ls_strategy_fields, key);
  g_autoptr (LsDiagList) found = ls_diag_list_new ();
  if (!f || !f->load || !g_str_has_prefix (text, f->load->prefix) || ls_json_is_given (text))
    return true;
  gpointer loaded = f->load->load (text, found);
  g_clear_pointer (&loaded, f->load->unref);
  if (is_in_file (found))
    f->load->load (text, diags);
  return !is_in_file (found);
}

/* --- strategies/ read ---------------------------------------------------------------------------- */

static bool
check_chunks (const LsJsonDoc *doc, const LsStrategy *s, LsDiagList *diags)
{
  if (s->layout.n_layers_per_chunk <= LS_MAX_CHUNKS)
    return true;
  const cJSON *list = ls_json_doc_at (doc, "layers_per_chunk");
  return ls_json_doc_diag (doc, list, LS_JSON_AT_VALUE, diags, NULL, "expected at most %d chunks; got %u",
                           LS_MAX_CHUNKS, s->layout.n_layers_per_chunk);
}

static bool
read_over (const LsJsonDoc *doc, const LsStrategy *base, LsStrategy *ret_strategy, LsDiagList *diags)
{
  LsStrategy s;
  ls_strategy_copy (&s, base);
  bool ok
      = ls_fields_read_file (ls_strategy_fields, "strategy", doc, &s, diags) && check_chunks (doc, &s, diags);
  if (ok)
    *ret_strategy = s;
  else
    ls_strategy_clear (&s);
  return ok;
}

bool
ls_strategy_read (const LsJsonDoc *doc, LsStrategy *ret_strategy, LsDiagList *diags)
{
  LsStrategy blank;
  ls_strategy_init (&blank);
  return read_over (doc, &blank, ret_strategy, diags);
}

bool
ls_strategy_read_over (const LsJsonDoc *doc, const LsStrategy *base, LsStrategy *ret_strategy,
                       GHashTable *said, LsDiagList *diags)
{
  if (!read_over (doc, base, ret_strategy, diags))
    return false;
  for (const LsField *f = ls_strategy_fields; f->key && said; f++)
    if (!f->file_only && cJSON_HasObjectItem (ls_json_doc_root (doc), f->key))
      g_hash_table_add (said, (gpointer) f->key);
  return true;
}
