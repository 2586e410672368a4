#include "show/plot/picture.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <lockstep/error.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/diag.h"
#include "data/text/write_file.h"

/* --- runs a gnuplot script that draws one picture ------------------------------------------------ */

#ifdef __linux__
#include <sys/prctl.h>
#endif

#define DEFAULT_SECONDS 300 /* the largest pictures of ours take a few */
#define MAX_SECONDS     86400
#define TICK_MS         20

/* Descriptors of gnuplot. */
enum { DATA_FD = 3, SCRIPT_FD = 4 };

typedef struct {
  FILE *script, *data;
  const char *picture;
  guint seconds;
} Drawing;

/* A gnuplot that runs. */
typedef struct {
  GPid pid;
  int picture, complaints; /* pipes; -1: it has closed its end */
  GString *text;           /* what it complained of            */
  gint64 deadline;         /* microseconds, monotonic          */
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

static gboolean
start (Child *child, const Drawing *d, GError **error)
{
  const char *argv[] = { "gnuplot", "-e", "to_stdout = 1; data = '/dev/fd/3'", "/dev/fd/4", NULL };
  const int from[] = { fileno (d->data), fileno (d->script) }, to[] = { DATA_FD, SCRIPT_FD };
  g_autoptr (GError) failure = NULL;
  if (g_spawn_async_with_pipes_and_fds (NULL, argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD,
                                        set_up_child, NULL, -1, -1, -1, from, to, G_N_ELEMENTS (to),
                                        &child->pid, NULL, &child->picture, &child->complaints, &failure)) {
    child->text = g_string_new (NULL);
    child->deadline = g_get_monotonic_time () + (gint64) d->seconds * G_USEC_PER_SEC;
    return TRUE;
  }
  return ls_fail (error, LS_ERROR_IO, "gnuplot did not start: %s", failure->message);
}

static gboolean
is_late (const Child *child)
{
  return g_get_monotonic_time () >= child->deadline;
}

/* Passes on what a pipe holds; closes it at its end. */
static void
pass_on (int *fd, FILE *out, GString *text)
{
  char piece[65536];
  ssize_t n = read (*fd, piece, sizeof piece);
  if (n < 0 && errno == EINTR)
    return;
  if (n > 0 && out)
    fwrite (piece, 1, (size_t) n, out);
  else if (n > 0)
    g_string_append_len (text, piece, n);
  if (n <= 0) {
    close (*fd);
    *fd = -1;
  }
}

/* Until it has closed both pipes, or time is up. */
static void
listen_to (Child *child, FILE *out)
{
  while ((child->picture >= 0 || child->complaints >= 0) && !is_late (child)) {
    struct pollfd pipes[] = { { child->picture, POLLIN, 0 }, { child->complaints, POLLIN, 0 } };
    if (poll (pipes, G_N_ELEMENTS (pipes), TICK_MS) <= 0)
      continue;
    if (pipes[0].revents)
      pass_on (&child->picture, out, NULL);
    if (pipes[1].revents)
      pass_on (&child->complaints, NULL, child->text);
  }
}

/* Its exit status; -1: time is up, and it is no more. */
static int
reap (Child *child)
{
  int status = -1;
  pid_t done;
  while (((done = waitpid (child->pid, &status, WNOHANG)) == 0 || (done < 0 && errno == EINTR))
         && !is_late (child))
    g_usleep (1000);
  if (done != 0)
    return status;
  kill (-child->pid, SIGKILL);
  kill (child->pid, SIGKILL); /* if it has not come to its group yet */
  while (waitpid (child->pid, &status, 0) < 0 && errno == EINTR)
    ;
  return -1;
}

static void
child_clear (Child *child)
{
  if (child->picture >= 0)
    close (child->picture);
  if (child->complaints >= 0)
    close (child->complaints);
  g_string_free (child->text, TRUE);
}

/* ---- the picture ---- */

/* An LsWriteFunc; data is a Drawing. */
static gboolean
draw_gnuplot (FILE *out, void *data, GError **error)
{
  const Drawing *d = data;
  Child child;
  if (!start (&child, d, error))
    return FALSE;
  listen_to (&child, out);
  int status = reap (&child);
  g_strstrip (child.text->str);
  gboolean ok = WIFEXITED (status) && WEXITSTATUS (status) == 0 && (ferror (out) || ftell (out) != 0);
  if (status == -1)
    g_set_error (
        error, LS_ERROR, LS_ERROR_IO,
        "gnuplot took longer than %u s for %s; LS_GNUPLOT_SECONDS=N in the environment gives it more",
        d->seconds, d->picture);
  else if (!ok)
    g_set_error (error, LS_ERROR, LS_ERROR_IO, "gnuplot failed on %s: %s", d->picture,
                 *child.text->str ? child.text->str : "it drew nothing");
  child_clear (&child);
  return ok;
}

gboolean
ls_gnuplot_run (FILE *script, FILE *data, const char *picture, GError **error)
{
  Drawing d = { .script = script, .data = data, .picture = picture };
  return gnuplot_check (error) && read_limit (&d.seconds, error)
      && ls_write_file (picture, draw_gnuplot, &d, error);
}

/* A chart as NAME.svg or NAME.png; or, named NAME.gp, as the gnuplot script that draws NAME.svg with
 * its data in NAME.dat, to be edited. */

static const char *const suffixes[] = { ".svg", ".png", ".gp" };

static const char *
suffix_of (const char *path, GError **error)
{
  for (guint i = 0; i < G_N_ELEMENTS (suffixes); i++)
    if (g_str_has_suffix (path, suffixes[i]))
      return suffixes[i];
  return ls_fail_null (error, LS_ERROR_USAGE,
                       "%s: expected a name that ends in .svg or .png, or in .gp for the script and its data",
                       path);
}

/* The picture is checked first: it is what the user named. */
gboolean
ls_picture_init (LsPicture *p, const char *path, GError **error)
{
  *p = (LsPicture) { 0 };
  if (!ls_write_file_check (path, error))
    return FALSE;
  const char *suffix = suffix_of (path, error);
  if (!suffix)
    return FALSE;
  bool is_script = strcmp (suffix, ".gp") == 0;
  p->suffix = is_script ? ".svg" : suffix;
  p->path = g_strdup (path);
  p->stem = g_strndup (path, strlen (path) - strlen (suffix));
  p->data = is_script ? g_strconcat (p->stem, ".dat", NULL) : NULL;
  return is_script ? ls_write_file_check (p->data, error) : gnuplot_check (error);
}

void
ls_picture_clear (LsPicture *p)
{
  g_free (p->path);
  g_free (p->stem);
  g_free (p->data);
}

gboolean
ls_picture_check (const char *path, GError **error)
{
  g_auto (LsPicture) picture = { 0 };
  return ls_picture_init (&picture, path, error);
}

/* ---- as a script ---- */

static gboolean
is_new (const char *path)
{
  GStatBuf info;
  return g_lstat (path, &info) != 0;
}

static gboolean
keep (const LsPicture *p, LsWriteFunc write_data, LsWriteFunc write_script, void *user, GError **error)
{
  gboolean is_data_new = is_new (p->data);
  if (ls_write_file (p->data, write_data, user, error) && ls_write_file (p->path, write_script, user, error))
    return TRUE;
  if (is_data_new)
    g_unlink (p->data);
  return FALSE;
}

/* ---- drawn ---- */

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
draw (const LsPicture *p, LsWriteFunc write_data, LsWriteFunc write_script, void *user, GError **error)
{
  FILE *data = written (write_data, user, error), *script = data ? written (write_script, user, error) : NULL;
  gboolean ok = script && ls_gnuplot_run (script, data, p->path, error);
  if (data)
    fclose (data);
  if (script)
    fclose (script);
  return ok;
}

gboolean
ls_picture_draw (const LsPicture *p, LsWriteFunc write_data, LsWriteFunc write_script, void *user,
                 GError **error)
{
  return (p->data ? keep : draw) (p, write_data, write_script, user, error);
}

/* ---- in the script ---- */

/* The name of a file beside the script as gnuplot's string, newly allocated. The folder keeps a
 * name from being a command ("<ls", "|cat"), a device ("+") or somebody's home. */
static char *
quote_name (const LsPicture *p, const char *suffix)
{
  g_autofree char *name = g_path_get_basename (p->stem), *path = g_strconcat ("./", name, suffix, NULL);
  return ls_gnuplot_quote (path);
}

#include "show/picture_text.h"

/* --- colours of a scale ------------------------------------------------------------------------------ */

const char *const ls_viridis[LS_N_VIRIDIS]
    = { "#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725" };

static guint32
mix (guint32 a, guint32 b, double share)
{
  guint32 out = 0;
  for (int shift = 0; shift <= 16; shift += 8) {
    double x = (a >> shift) & 255, y = (b >> shift) & 255;
    out |= (guint32) (x + (y - x) * share + 0.5) << shift;
  }
  return out;
}

guint32
ls_viridis_at (double at)
{
  static const guint32 ordered[] = { 0x440154, 0x414487, 0x2a788e, 0x22a884, 0x7ad151 };
  at *= G_N_ELEMENTS (ordered) - 1;
  guint below = MIN ((guint) at, G_N_ELEMENTS (ordered) - 2);
  return mix (ordered[below], ordered[below + 1], at - below);
}
