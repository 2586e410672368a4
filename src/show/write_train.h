/* show/write_train.h — a training run of weeks: for people, as JSON, as CSV. */
#ifndef LS_SHOW_WRITE_TRAIN_H
#define LS_SHOW_WRITE_TRAIN_H

#include "train/train.h"

/* All newly allocated. title: which job. CSV: a row for each cause of failures. */
char *ls_train_to_text (const LsTrainReport *r, const char *title, const char *subtitle);
char *ls_train_to_json (const LsTrainReport *r);
char *ls_train_to_csv (const LsTrainReport *r);

#endif
