#include "data/measured/nsys_reader.h"

#include <string.h>

#define MAX_TEXT  (16 << 20)
#define STEPS     1000000 /* of SQLite's machine, between two looks at how many there were */
#define MAX_LOOKS 20000

static void
complain (NsysDb *db, const char *hint)
{
  ls_diag_add (db->diags, LS_ERROR_INPUT, db->name, 0, 0, NULL, NULL, hint, "SQLite cannot read it: %s",
               db->sqlite ? sqlite3_errmsg (db->sqlite) : "no memory");
}

static int
look (void *count)
{
  return ++*(int *) count > MAX_LOOKS;
}

/* What a file may make SQLite do. */
static bool
harden (NsysDb *db)
{
  sqlite3_limit (db->sqlite, SQLITE_LIMIT_LENGTH, MAX_TEXT);
  sqlite3_db_config (db->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  sqlite3_db_config (db->sqlite, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
  sqlite3_db_config (db->sqlite, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
  sqlite3_db_config (db->sqlite, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
  return sqlite3_exec (db->sqlite, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0", NULL, NULL, NULL)
      == SQLITE_OK;
}

bool
nsys_db_open (NsysDb *db, const char *name, const void *bytes, size_t n, LsDiagList *diags)
{
  *db = (NsysDb) { .name = name, .diags = diags };
  int status
      = sqlite3_open_v2 (bytes ? ":memory:" : name, &db->sqlite,
                         bytes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY : SQLITE_OPEN_READONLY, NULL);
  if (status == SQLITE_OK && bytes)
    status = sqlite3_deserialize (db->sqlite, "main", (unsigned char *) bytes, (sqlite3_int64) n,
                                  (sqlite3_int64) n, SQLITE_DESERIALIZE_READONLY);
  if (status == SQLITE_OK && harden (db) && nsys_db_has (db, "sqlite_schema", NULL))
    return true;
  complain (db, "was it cut off? nsys export --type sqlite writes it anew");
  return false;
}

void
nsys_db_close (NsysDb *db)
{
  sqlite3_close (db->sqlite);
  db->sqlite = NULL;
}

/* Virtual tables have no root page. */
static bool
is_plain_table (NsysDb *db, const char *table)
{
  sqlite3_stmt *rows;
  bool is_there = strcmp (table, "sqlite_schema") == 0;
  const char *sql = is_there
      ? "SELECT count(*) FROM sqlite_schema"
      : "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 AND name = ?";
  if (sqlite3_prepare_v2 (db->sqlite, sql, -1, &rows, NULL) != SQLITE_OK)
    return false;
  if (!is_there)
    sqlite3_bind_text (rows, 1, table, -1, SQLITE_STATIC);
  bool ok = sqlite3_step (rows) == SQLITE_ROW;
  sqlite3_finalize (rows);
  return ok;
}

bool
nsys_db_has (NsysDb *db, const char *table, const char *column)
{
  if (!is_plain_table (db, table))
    return false;
  return !column
      || sqlite3_table_column_metadata (db->sqlite, "main", table, column, NULL, NULL, NULL, NULL, NULL)
      == SQLITE_OK;
}

char *
nsys_db_column (NsysDb *db, const char *table, const char *alias, const char *const *columns)
{
  for (; *columns; columns++)
    if (nsys_db_has (db, table, *columns))
      return g_strdup_printf ("%s.%s", alias, *columns);
  return NULL;
}

sqlite3_stmt *
nsys_db_query (NsysDb *db, const char *sql)
{
  sqlite3_stmt *rows = NULL;
  if (sqlite3_prepare_v2 (db->sqlite, sql, -1, &rows, NULL) != SQLITE_OK)
    complain (db, NULL);
  return rows;
}

bool
nsys_db_next (NsysDb *db, sqlite3_stmt *rows)
{
  int looks = 0;
  sqlite3_progress_handler (db->sqlite, STEPS, look, &looks);
  int status = sqlite3_step (rows);
  sqlite3_progress_handler (db->sqlite, 0, NULL, NULL);
  if (status != SQLITE_ROW && status != SQLITE_DONE)
    complain (db, NULL);
  return status == SQLITE_ROW;
}
