/* Learned positions: how many a model has a table of, beside how long its sequences are. */
#include "data/launch/import_reader.h"

void
import_positions (LsImport *import, guint64 n)
{
  if (n <= G_MAXUINT32)
    import->positions = MAX (import->positions, (guint32) n);
}

/* A length that was given is that of a sequence: the table stays as the files have it, as that of a model that
 * is named. */
void
import_settle_positions (LsImport *import)
{
  const guint32 seq = import->model.seq;
  bool has_table = import_has_model (import, "position") && import->model.position == LS_POSITION_LEARNED;
  if (import->model_is_given || !has_table || !import_has_model (import, "seq") || import->positions == 0
      || import->positions == seq)
    return;
  import->strategy.seq = seq;
  g_hash_table_add (import->strategy_said, (gpointer) "seq");
  import->model.seq = import->positions;
  import_infer (import, "sequences of %u tokens, and a table of %u learned positions", seq,
                import->positions);
}
