#include "analysis/headroom.h"

#define GIB 1073741824.0

void
ls_headroom_clear (LsHeadroom *h)
{
  if (!h)
    return;
  for (guint i = 0; h->parts && i < h->parts->len; i++) {
    g_free (g_array_index (h->parts, LsHeadroomPart, i).what);
    g_free (g_array_index (h->parts, LsHeadroomPart, i).source);
  }
  g_clear_pointer (&h->parts, g_array_unref);
  g_free (h->program);
  *h = (LsHeadroom) { 0 };
}

bool
ls_headroom_is_left (const LsHeadroom *h, uint64_t needed_bytes, uint64_t capacity_bytes)
{
  return needed_bytes <= capacity_bytes && h->bytes <= capacity_bytes - needed_bytes;
}

static void
append_gib (GString *out, uint64_t bytes)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  g_string_append (out, g_ascii_formatd (text, sizeof text, "%.2f", (double) bytes / GIB));
}

char *
ls_headroom_text (const LsHeadroom *h)
{
  GString *out = g_string_new (NULL);
  append_gib (out, h->bytes);
  g_string_append (out, " GiB");
  if (h->program)
    g_string_append_printf (out, " for %s", h->program);
  for (guint i = 0; h->parts && i < h->parts->len; i++) {
    const LsHeadroomPart *p = &g_array_index (h->parts, LsHeadroomPart, i);
    g_string_append_printf (out, "%s%s ", i == 0 ? ": " : ", ", p->what);
    append_gib (out, p->bytes);
  }
  return g_string_free (out, FALSE);
}
