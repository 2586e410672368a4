#include "model/ngram.h"

uint64_t
ls_ngram_width (const LsModel *m)
{
  return m->halves.ngram_tables > 0 ? m->hidden / m->halves.ngram_tables : 0;
}

uint64_t
ls_ngram_rows (const LsModel *m)
{
  uint64_t n = m->halves.ngram_tables;
  return n > 0 ? n * m->halves.ngram_rows + n * (n - 1) : 0;
}

uint64_t
ls_ngram_table_params (const LsModel *m)
{
  return ls_ngram_rows (m) * ls_ngram_width (m);
}

uint64_t
ls_ngram_linear_params (const LsModel *m)
{
  return m->halves.ngram_tables * ls_ngram_width (m) * m->hidden;
}

const char *
ls_model_check_ngram (const LsModel *m)
{
  if ((m->halves.ngram_tables > 0) != (m->halves.ngram_rows > 0))
    return "expected \"ngram_tables\" with \"ngram_rows\"";
  if (m->halves.ngram_tables > m->hidden)
    return "expected no more \"ngram_tables\" than hidden has columns";
  bool is_plain
      = m->sides.encoder_layers + m->halves.streams == 0 && m->position != LS_POSITION_LEARNED && !m->dropout;
  return m->halves.ngram_tables == 0 || is_plain
      ? NULL
      : "expected neither an encoder, several streams, learned positions nor dropout with \"ngram_tables\"";
}
