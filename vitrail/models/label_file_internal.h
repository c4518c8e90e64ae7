// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files of class names.
#include <cstddef>
#include <string>
#include <vector>

namespace vitrail::models {

// The names in a file's text, in index order.  The text has one name per line in UTF-8 (a byte-order mark and blank
// lines at the end are ignored; all blank lines, if there are more lines than `classes`), or JSON: a list of names, or
// id2label, label_names or label2id by themselves or in a config.json.  Throws Error naming `where` for other JSON and
// for UTF-16.
std::vector<std::string> parse_labels(std::string text, const std::string& where, size_t classes);

}  // namespace vitrail::models
