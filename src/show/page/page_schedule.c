#include "show/page/page_columns.h"
#include "show/page/page_parts.h"

static void
add_rank (LsJsonOut *w, const LsScheduleView *v, uint32_t rank)
{
  const GArray *order = v->orders->ranks[rank];
  for (guint i = 0; i < order->len; i++) {
    const LsAction *a = &g_array_index (order, LsAction, i);
    const LsActionTime *t = &v->eval->times[rank][i];
    const char type[] = { ls_action_letter (a->type), '\0' };
    ls_json_out_begin_object (w, NULL);
    ls_json_out_uint (w, "rank", rank);
    ls_json_out_string (w, "type", type);
    ls_json_out_uint (w, "mb", a->mb);
    ls_json_out_uint (w, "chunk", a->chunk);
    ls_json_out_double (w, "from", ls_schedule_number (t->start, v->has_unit));
    ls_json_out_double (w, "to", ls_schedule_number (t->end, v->has_unit));
    ls_json_out_end_object (w);
  }
}

char *
ls_page_schedule (const LsScheduleView *v)
{
  LsJsonOut w;
  GString *text = g_string_new (NULL);
  ls_json_out_init (&w, text, 0);
  ls_json_out_begin_object (&w, NULL);
  ls_json_out_begin_array (&w, "actions");
  for (uint32_t rank = 0; rank < v->eval->n_ranks; rank++)
    add_rank (&w, v, rank);
  ls_json_out_end_array (&w);
  ls_json_out_end_object (&w);
  return g_string_free (text, FALSE);
}
