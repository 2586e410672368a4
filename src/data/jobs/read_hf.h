/* data/jobs/read_hf.h — the config.json of a Hugging Face model, where it describes a decoder of a type that
 * models/types/huggingface.json has; of a multimodal model, the part that reads text.
 *
 * Defaults of keys that a file leaves out are those of the configuration classes
 * of Transformers (src/transformers/models/FAMILY/configuration_FAMILY.py). The
 * training length is not in such files: seq becomes the longest position, with a
 * note. Encoders and layers that a model cannot have are refused. */
#ifndef LS_DATA_JOBS_READ_HF_H
#define LS_DATA_JOBS_READ_HF_H

#include "data/text/field.h"
#include "model/model.h"

/* Whether the document says that it is one. */
bool ls_is_hf_config (const LsJsonDoc *doc);

/* As ls_model_read(). The model is named after the file, or after its folder if
 * the file is called config.json. */
bool ls_model_read_hf (const LsJsonDoc *doc, LsModel *ret_model, GPtrArray *notes, LsDiagList *diags);

/* Of lockstep.model-types/1, which models/types/huggingface.json is. */
const LsField *ls_model_types_fields (void);
/* Such a file with all that it says of each type, which are counted; 0: diagnostics. */
guint ls_model_types_check (const LsJsonDoc *doc, LsDiagList *diags);

/* Takes out the note about seq, once the training length is known from elsewhere. */
void ls_model_notes_drop_length (GPtrArray *notes);

#endif
