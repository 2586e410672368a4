/* show/plot/picture.c — a chart by gnuplot: its script, its data, the child that draws. */
#include "show/plot/plots.h"

#include <errno.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <lockstep/error.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "show/draw/drawing.h"

/* --- runs a gnuplot script that draws one picture ------------------------------------------------ */

#ifdef __linux__
#include <sys/prctl.h>
#endif

#define DEFAULT_SECONDS 300 /* the largest pictures of ours take a few */
#define MAX_SECONDS     86400

/* Descriptors of gnuplot. */
enum { DATA_FD = 3, SCRIPT_FD = 4 };

typedef struct {
  FILE *script, *data;
  const char *picture;
  guint seconds;
} Drawing;

/* A gnuplot that runs. */
typedef struct {
  GSubprocess *process;
  GPid pid;           /* 0: it was over before anybody could ask */
  GCancellable *stop; /* of listening; borrowed while it is listened to */
  bool is_late;
  GAsyncResult *end; /* NULL: not yet */
} Child;

char *
ls_gnuplot_quote (const char *text)
{
  GString *quoted = g_string_new ("'");
  for (const char *c = text; *c; c++) {
    if (*c == '\'')
      g_string_append_c (quoted, '\'');
    g_string_append_c (quoted, (unsigned char) *c < 0x20 ? ' ' : *c);
  }
  g_string_append_c (quoted, '\'');
  return g_string_free (quoted, FALSE);
}

/* Whether there is a gnuplot: LS_ERROR_IO that says how to get one. */
static gboolean
gnuplot_check (GError **error)
{
  g_autofree char *program = g_find_program_in_path ("gnuplot");
  if (!program)
    g_set_error (error, LS_ERROR, LS_ERROR_IO,
                 "gnuplot, which draws the picture, is not installed (Debian package gnuplot-nox)");
  return program != NULL;
}

static gboolean
read_limit (guint *ret_seconds, GError **error)
{
  const char *text = g_getenv ("LS_GNUPLOT_SECONDS");
  guint64 seconds = DEFAULT_SECONDS;
  if (text && !g_ascii_string_to_unsigned (text, 10, 1, MAX_SECONDS, &seconds, NULL))
    return ls_fail (error, LS_ERROR_USAGE,
                    "LS_GNUPLOT_SECONDS: expected a whole number from 1 to %u; got \"%s\"", MAX_SECONDS,
                    text);
  *ret_seconds = (guint) seconds;
  return TRUE;
}

/* ---- the child ---- */

/* In the child: a group of its own, to be killed as a whole; and it does not outlive us, however
 * we end. */
static void
set_up_child (gpointer data)
{
  (void) data;
  setpgid (0, 0);
#ifdef __linux__
  prctl (PR_SET_PDEATHSIG, SIGKILL);
#endif
}

static GSubprocess *
start (const Drawing *d, GError **error)
{
  g_autoptr (GSubprocessLauncher) launcher
      = g_subprocess_launcher_new (G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE);
  g_autoptr (GError) failure = NULL;
  g_subprocess_launcher_take_fd (launcher, dup (fileno (d->data)), DATA_FD);
  g_subprocess_launcher_take_fd (launcher, dup (fileno (d->script)), SCRIPT_FD);
  g_subprocess_launcher_set_child_setup (launcher, set_up_child, NULL, NULL);
  GSubprocess *process = g_subprocess_launcher_spawn (launcher, &failure, "gnuplot", "-e",
                                                      "to_stdout = 1; data = '/dev/fd/3'", "/dev/fd/4", NULL);
  if (!process)
    g_set_error (error, LS_ERROR, LS_ERROR_IO, "gnuplot did not start: %s", failure->message);
  return process;
}

/* Time is up. */
static gboolean
kill_child (gpointer data)
{
  Child *child = data;
  child->is_late = true;
  if (child->pid > 0) {
    kill (-child->pid, SIGKILL);
    kill (child->pid, SIGKILL); /* if it has not come to its group yet */
  }
  g_cancellable_cancel (child->stop); /* whoever holds its pipes */
  return G_SOURCE_REMOVE;
}

static void
note_end (GObject *process, GAsyncResult *end, gpointer child)
{
  ((Child *) child)->end = g_object_ref (end);
}

/* Until it is over, or time is up; what it drew, and what it complained of. */
static void
listen_to (Child *child, guint seconds, GBytes **ret_picture, GBytes **ret_complaints)
{
  g_autoptr (GMainContext) context = g_main_context_new ();
  g_autoptr (GSource) alarm = g_timeout_source_new_seconds (seconds);
  g_autoptr (GCancellable) stop = child->stop = g_cancellable_new ();
  g_main_context_push_thread_default (context);
  g_source_set_callback (alarm, kill_child, child, NULL);
  g_source_attach (alarm, context);
  g_subprocess_communicate_async (child->process, NULL, stop, note_end, child);
  while (!child->end)
    g_main_context_iteration (context, TRUE);
  g_subprocess_communicate_finish (child->process, child->end, ret_picture, ret_complaints, NULL);
  g_source_destroy (alarm);
  g_main_context_pop_thread_default (context);
  g_object_unref (child->end);
}

/* ---- the picture ---- */

/* An LsWriteFunc; data is a Drawing. */
static gboolean
draw_gnuplot (FILE *out, void *data, GError **error)
{
  const Drawing *d = data;
  g_autoptr (GSubprocess) process = start (d, error);
  g_autoptr (GBytes) picture = NULL, complaints = NULL;
  if (!process)
    return FALSE;
  const char *pid = g_subprocess_get_identifier (process); /* NULL: it is over already */
  Child child = { .process = process, .pid = pid ? atoi (pid) : 0 };
  listen_to (&child, d->seconds, &picture, &complaints);
  if (child.is_late)
    return ls_fail (
        error, LS_ERROR_IO,
        "gnuplot took longer than %u s for %s; LS_GNUPLOT_SECONDS=N in the environment gives it more",
        d->seconds, d->picture);
  gsize size = 0, n_said = 0;
  const char *bytes = g_bytes_get_data (picture, &size), *said = g_bytes_get_data (complaints, &n_said);
  g_autofree char *text = g_strstrip (g_strndup (said ? said : "", n_said));
  if (!g_subprocess_get_successful (process) || size == 0)
    return ls_fail (error, LS_ERROR_IO, "gnuplot failed on %s: %s", d->picture,
                    *text ? text : "it drew nothing");
  fwrite (bytes, 1, size, out);
  return TRUE;
}

gboolean
ls_gnuplot_run (FILE *script, FILE *data, const char *picture, GError **error)
{
  Drawing d = { .script = script, .data = data, .picture = picture };
  return gnuplot_check (error) && read_limit (&d.seconds, error)
      && ls_write_file (picture, draw_gnuplot, &d, error);
}

/* ---- charts ---- */

typedef struct {
  const char *suffix; /* static: ".svg", ".png" */
  char *stem, *data;  /* NAME, NAME.dat of a script; NULL: a picture */
  const LsChart *chart;
  LsWriteFunc write_script;
  gpointer user;
} Picture;

static void
picture_clear (Picture *p)
{
  g_free (p->stem);
  g_free (p->data);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Picture, picture_clear)

static const char *
suffix_of (const char *path, GError **error)
{
  static const char *const suffixes[] = { ".svg", ".png", ".gp" };
  for (guint i = 0; i < G_N_ELEMENTS (suffixes); i++)
    if (g_str_has_suffix (path, suffixes[i]))
      return suffixes[i];
  return ls_fail_null (error, LS_ERROR_USAGE,
                       "%s: expected a name that ends in .svg or .png, or in .gp for the script and its data",
                       path);
}

/* The picture is checked first: it is what the user named. */
static gboolean
picture_init (Picture *p, const char *path, GError **error)
{
  if (!ls_write_file_check (path, error))
    return FALSE;
  const char *suffix = suffix_of (path, error);
  if (!suffix)
    return FALSE;
  bool is_script = strcmp (suffix, ".gp") == 0;
  p->suffix = is_script ? ".svg" : suffix;
  p->stem = g_strndup (path, strlen (path) - strlen (suffix));
  p->data = is_script ? g_strconcat (p->stem, ".dat", NULL) : NULL;
  return is_script ? ls_write_file_check (p->data, error) : gnuplot_check (error);
}

gboolean
ls_picture_check (const char *path, GError **error)
{
  g_auto (Picture) picture = { 0 };
  return picture_init (&picture, path, error);
}

/* The name of a file beside the script as gnuplot's string, newly allocated. The folder keeps a
 * name from being a command ("<ls", "|cat"), a device ("+") or somebody's home. */
static char *
quote_name (const Picture *p, const char *suffix)
{
  g_autofree char *name = g_path_get_basename (p->stem), *path = g_strconcat ("./", name, suffix, NULL);
  return ls_gnuplot_quote (path);
}

#include "show/picture_text.h"

/* As a script with its data. */
static gboolean
keep (Picture *p, const char *path, LsWriteFunc write_data, GError **error)
{
  gboolean is_data_new = !g_file_test (p->data, G_FILE_TEST_EXISTS | G_FILE_TEST_IS_SYMLINK);
  if (ls_write_file (p->data, write_data, p->user, error)
      && ls_write_file (path, write_whole_script, p, error))
    return TRUE;
  if (is_data_new)
    g_unlink (p->data);
  return FALSE;
}

/* A file without a name that holds what `write` writes, or NULL. */
static FILE *
written (LsWriteFunc write, void *user, GError **error)
{
  FILE *file = tmpfile ();
  if (file && !write (file, user, error)) {
    fclose (file);
    return NULL;
  }
  if (file && fflush (file) == 0 && !ferror (file))
    return file;
  g_set_error (error, LS_ERROR, LS_ERROR_IO, "cannot write a temporary file: %s", g_strerror (errno));
  if (file)
    fclose (file);
  return NULL;
}

static gboolean
draw (Picture *p, const char *path, LsWriteFunc write_data, GError **error)
{
  FILE *data = written (write_data, p->user, error),
       *script = data ? written (write_whole_script, p, error) : NULL;
  gboolean ok = script && ls_gnuplot_run (script, data, path, error);
  if (data)
    fclose (data);
  if (script)
    fclose (script);
  return ok;
}

gboolean
ls_chart_draw (const char *path, const LsChart *chart, LsWriteFunc write_data, LsWriteFunc write_script,
               gpointer user, GError **error)
{
  g_auto (Picture) p = { .chart = chart, .write_script = write_script, .user = user };
  return picture_init (&p, path, error) && (p.data ? keep : draw) (&p, path, write_data, error);
}

/* --- colours of a scale ------------------------------------------------------------------------------ */

const char *const ls_viridis[LS_N_VIRIDIS]
    = { "#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725" };

guint32
ls_viridis_at (double at)
{
  static const guint32 ordered[] = { 0x440154, 0x414487, 0x2a788e, 0x22a884, 0x7ad151 };
  at *= G_N_ELEMENTS (ordered) - 1;
  guint below = MIN ((guint) at, G_N_ELEMENTS (ordered) - 2);
  return ls_palette_mix (ordered[below], ordered[below + 1], at - below);
}
