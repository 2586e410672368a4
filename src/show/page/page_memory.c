#include "show/page/page_columns.h"
#include "show/page/page_parts.h"

#define N_COLUMNS 1000

static void
add_curve (LsJsonOut *w, const GArray *samples, LsTime window)
{
  GArray *at, *alive[LS_N_MEM];
  const char *const at_key = "at", *keys[LS_N_MEM];
  columns_init (&at, 1);
  columns_init (alive, LS_N_MEM);
  g_autoptr (GArray) thin = ls_memory_samples_thin (samples, window, N_COLUMNS);
  for (guint i = 0; i < thin->len; i++) {
    const LsMemorySample *s = &g_array_index (thin, LsMemorySample, i);
    push (at, nanoseconds (s->at));
    for (int c = 0; c < LS_N_MEM; c++)
      push (alive[c], (int64_t) s->alive[c]);
  }
  for (int c = 0; c < LS_N_MEM; c++)
    keys[c] = ls_mem_category_name ((LsMemCategory) c);
  columns_write (w, &at_key, &at, 1);
  ls_json_out_begin_object (w, "alive");
  columns_write (w, keys, alive, LS_N_MEM);
  ls_json_out_end_object (w);
}

char *
ls_page_memory (const LsPageMemory *ranks, guint n, LsTime window, uint64_t capacity_bytes)
{
  LsJsonOut w;
  GString *text = g_string_new (NULL);
  ls_json_out_init (&w, text, 0);
  ls_json_out_begin_object (&w, NULL);
  ls_json_out_int (&w, "window", nanoseconds (window));
  ls_json_out_uint (&w, "capacity_bytes", capacity_bytes);
  ls_json_out_begin_array (&w, "ranks");
  for (guint i = 0; i < n; i++) {
    ls_json_out_begin_object (&w, NULL);
    ls_json_out_uint (&w, "rank", ranks[i].rank);
    add_curve (&w, ranks[i].samples, window);
    ls_json_out_end_object (&w);
  }
  ls_json_out_end_array (&w);
  ls_json_out_end_object (&w);
  return g_string_free (text, FALSE);
}
