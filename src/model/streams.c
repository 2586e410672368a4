#include "model/streams.h"

uint32_t
ls_model_n_streams (const LsModel *m)
{
  return MAX (1, m->streams);
}

/* n^2 + 2 n, or 0. */
static uint64_t
n_columns (const LsModel *m)
{
  uint64_t n = ls_model_n_streams (m);
  return n > 1 ? n * n + 2 * n : 0;
}

uint64_t
ls_streams_linear_params (const LsModel *m)
{
  return n_columns (m) * ls_model_n_streams (m) * m->hidden;
}

uint64_t
ls_streams_other_params (const LsModel *m)
{
  return n_columns (m) > 0 ? n_columns (m) + 3 : 0;
}

uint64_t
ls_streams_end_linear_params (const LsModel *m)
{
  uint64_t n = ls_model_n_streams (m);
  return n > 1 ? n * n * m->hidden : 0;
}

uint64_t
ls_streams_end_other_params (const LsModel *m)
{
  return ls_model_n_streams (m) > 1 ? ls_model_n_streams (m) + 1 : 0;
}
