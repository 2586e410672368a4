#include "model/streams.h"

uint32_t
ls_model_n_streams (const LsModel *m)
{
  return MAX (1, m->halves.streams);
}

bool
ls_streams_mix (const LsModel *m)
{
  return m->halves.streams > 1 && m->halves.stream_kind == LS_STREAMS_MIXED;
}

bool
ls_streams_alternate (const LsModel *m)
{
  return m->halves.streams > 1 && m->halves.stream_kind == LS_STREAMS_ALTERNATE;
}

/* Of mixed streams n^2 + 2 n, else 0. */
static uint64_t
n_columns (const LsModel *m)
{
  uint64_t n = ls_model_n_streams (m);
  return ls_streams_mix (m) ? n * n + 2 * n : 0;
}

uint64_t
ls_streams_linear_params (const LsModel *m, uint32_t n_halves)
{
  uint64_t width = (uint64_t) ls_model_n_streams (m) * m->hidden;
  return ls_streams_alternate (m) ? width : n_halves * n_columns (m) * width;
}

uint64_t
ls_streams_again_params (const LsModel *m)
{
  return ls_streams_alternate (m) ? (uint64_t) ls_model_n_streams (m) * m->hidden : 0;
}

uint64_t
ls_streams_other_params (const LsModel *m, uint32_t n_halves)
{
  uint64_t n = ls_model_n_streams (m);
  if (ls_streams_alternate (m))
    return n * n * n + n * n + 2 * (uint64_t) m->hidden;
  return n_columns (m) > 0 ? n_halves * (n_columns (m) + 3) : 0;
}

uint64_t
ls_streams_end_linear_params (const LsModel *m)
{
  uint64_t n = ls_model_n_streams (m);
  if (ls_streams_alternate (m))
    return 2 * (n - 1) * m->hidden * m->hidden;
  return n > 1 ? n * n * m->hidden : 0;
}

uint64_t
ls_streams_end_other_params (const LsModel *m)
{
  uint64_t n = ls_model_n_streams (m);
  return n > 1 && !ls_streams_alternate (m) ? n + 1 : 0;
}
