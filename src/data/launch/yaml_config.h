/* data/launch/yaml_config.h — configurations in YAML as their programs load them: several files on top of
 * each other, values of the command line, and OmegaConf's ${...}; files next to those that are read (private
 * to launch/). */
#ifndef LS_DATA_LAUNCH_YAML_CONFIG_H
#define LS_DATA_LAUNCH_YAML_CONFIG_H

#include <cjson/cJSON.h>

#include "data/launch/option_table.h"

/* The file as YAML, borrowed, parsed when it is asked for first; NULL: it is none. */
const cJSON *yaml_config_tree (const ImportFile *file);

/* What a file has as YAML, of which notes are told; NULL: a diagnostic. */
cJSON *yaml_config_parse (const ImportFile *file, LsImport *import, LsDiagList *diags);

/* One file more on top: mappings within mappings are merged, all else is replaced. Tells equal keys. False:
 * into is as it was, and there is a diagnostic. */
bool yaml_config_add (cJSON *into, const ImportFile *file, LsImport *import, LsDiagList *diags);

/* The same of a mapping, whose members are moved. */
void yaml_config_merge (cJSON *into, cJSON *from);

/* A text in YAML as JSON, newly allocated; NULL: it is no mapping. name: for its path. */
char *yaml_config_as_json (const char *text, gsize n, const char *name);

/* What a script names, with or without ".yaml" (launch_file_of()); the caller frees it. name NULL: none is
 * said. NULL: a diagnostic. */
cJSON *yaml_config_of_name (const ImportFiles *files, const char *name, LsImport *import, LsDiagList *diags);

/* Why a file that no reader takes is not read, if its name says that it is YAML: a diagnostic. False: it is
 * none by its name. */
bool yaml_config_refuse (const ImportFile *file, LsDiagList *diags);

/* A member by its path, "model.num_layers", '-' and '_' alike; NULL: there is none. */
cJSON *yaml_config_find (const cJSON *tree, const char *path);
/* Sets a member as Hydra does: text is a value of YAML; mappings on the way to it are made. */
void yaml_config_set (cJSON *tree, const char *path, const char *text);
void yaml_config_set_node (cJSON *tree, const char *path, cJSON *node); /* the same; takes the node */

/* The same of a word "a.b=c" or "++a.b=c"; others are passed over. */
void yaml_config_set_pair (cJSON *tree, const char *word);

/* Takes a member out by its path; NULL: there is none. */
cJSON *yaml_config_detach (cJSON *tree, const char *path);

/* The members of a mapping become those of the tree, on top of what it has. */
void yaml_config_lift (cJSON *tree, const char *key);

/* Resolves ${path}, ${.relative}, ${multiply:a,b} and its kin of OmegaConf in place; what the files do not
 * say, and "???", becomes a hole (shell.h) with its name. */
void yaml_config_resolve (cJSON *tree);

/* The options of a tree, resolved, which is freed. */
LaunchWords *yaml_config_words (cJSON *tree);

#endif
