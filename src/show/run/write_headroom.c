#include "show/run/write_run.h"

#define GIB 1073741824.0

char *
ls_headroom_verdict (const LsHeadroom *h, uint64_t needed_bytes, uint64_t capacity_bytes)
{
  uint64_t wanted = needed_bytes + (h->is_asked ? h->bytes : 0);
  if (wanted > capacity_bytes)
    return g_strdup_printf ("does not fit: %.2f GiB too much%s", (double) (wanted - capacity_bytes) / GIB,
                            needed_bytes <= capacity_bytes ? ", with the headroom" : "");
  double free_gib = (double) (capacity_bytes - needed_bytes) / GIB;
  if (!ls_headroom_is_left (h, needed_bytes, capacity_bytes))
    return g_strdup_printf ("fits, but leaves %.2f of a headroom of %.2f GiB", free_gib,
                            (double) h->bytes / GIB);
  return g_strdup_printf ("fits, %.2f GiB free", free_gib);
}

void
ls_headroom_print (const LsHeadroom *h, guint indent, GString *out)
{
  if (h->bytes == 0)
    return;
  g_autofree char *text = ls_headroom_text (h);
  g_string_append_printf (out, "%*sheadroom %s\n", (int) indent, "", text);
}

void
ls_json_headroom (LsJsonOut *w, const LsHeadroom *h, uint64_t needed_bytes, uint64_t capacity_bytes)
{
  ls_json_out_int (w, "free_bytes", (int64_t) capacity_bytes - (int64_t) needed_bytes);
  ls_json_out_begin_object (w, "headroom");
  ls_json_out_uint (w, "bytes", h->bytes);
  ls_json_out_bool (w, "asked", h->is_asked);
  ls_json_out_bool (w, "left", ls_headroom_is_left (h, needed_bytes, capacity_bytes));
  ls_json_out_string (w, "program", h->program);
  ls_json_out_begin_array (w, "parts");
  for (guint i = 0; h->parts && i < h->parts->len; i++) {
    const LsHeadroomPart *p = &g_array_index (h->parts, LsHeadroomPart, i);
    ls_json_out_begin_object (w, NULL);
    ls_json_out_string (w, "what", p->what);
    ls_json_out_uint (w, "bytes", p->bytes);
    ls_json_out_string (w, "source", p->source);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
  ls_json_out_end_object (w);
}
