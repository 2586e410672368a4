/* api/answer.h — an answer, as a command fills it (private). */
#ifndef LS_API_ANSWER_H
#define LS_API_ANSWER_H

#include <lockstep/lockstep.h>

#include "show/page/page.h"

/* A text, newly allocated. JSON and CSV have no style. */
typedef char *LsAnswerForm (gconstpointer data, const LsTextStyle *style);
/* What a command answers with: its forms, of which a command may lack some, but not text. */
typedef struct {
  LsAnswerForm *text, *json, *csv;
  void (*print_json) (gconstpointer data, FILE *out); /* as it is made; NULL: json (data) */
  GDestroyNotify free;
  /* Gives --report a title, and what is not in the JSON; NULL: the command line is its title. */
  void (*page) (gconstpointer data, LsPage *page);
} LsAnswerForms;

/* Defines a form that is one expression of `data` and `style`; what frees data of one type. */
#define LS_ANSWER_FORM(name, text)                                                                           \
  static char *name (gconstpointer data, const LsTextStyle *style)                                           \
  {                                                                                                          \
    return text;                                                                                             \
  }
#define LS_ANSWER_FREE(name, free_data)                                                                      \
  static void name (gpointer data)                                                                           \
  {                                                                                                          \
    free_data (data);                                                                                        \
  }

LsAnswer *ls_answer_new (void);
/* Takes the data. */
void ls_answer_take (LsAnswer *a, gpointer data, const LsAnswerForms *forms);
/* A text that is the same in every form. Takes it. */
void ls_answer_take_text (LsAnswer *a, char *text);
/* The command that made it, static, and its line, taken. */
void ls_answer_set_command (LsAnswer *a, const char *name, char *command);
/* The form to be printed. */
void ls_answer_set_form (LsAnswer *a, LsForm form);

/* Appends a line; lines; the lines of an array, NULL: none. */
void ls_answer_note (LsAnswer *a, const char *format, ...) G_GNUC_PRINTF (2, 3);
void ls_answer_note_lines (LsAnswer *a, const char *lines);
void ls_answer_note_all (LsAnswer *a, const GPtrArray *notes);
/* Takes the text; see ls_answer_warning(). */
void ls_answer_warn (LsAnswer *a, char *text);
/* There is an answer, and yet the command failed. Takes the error; the first one stays. */
void ls_answer_fail (LsAnswer *a, GError *error);
void ls_answer_fail_with (LsAnswer *a, LsErrorCode code, const char *format, ...) G_GNUC_PRINTF (3, 4);

/* Asks `write` to write the answer's data to each file that the option names, and fails the answer where it
 * cannot. */
typedef gboolean (*LsAnswerWrite) (gconstpointer data, const char *path, GError **error);
void ls_answer_write (LsAnswer *a, const LsRequest *r, const char *key, LsAnswerWrite write);

/* Writes a page to look at (show/page/), where the option "report" names one. */
void ls_answer_write_page (LsAnswer *a, const LsRequest *r);

#endif
