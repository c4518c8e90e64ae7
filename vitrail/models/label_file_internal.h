// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files of class names.
#include <cstddef>
#include <string>
#include <vector>

namespace vitrail::models {

// The names in a file's text, in index order.  The text has one name per line in UTF-8 (a byte-order mark and blank
// lines are ignored), or JSON: a list of names, or id2label, label_names or label2id by themselves or in a config.json.
// If all lines begin with a number and a comma, colon, tab or space, and the numbers are those from 0 or from 1, they
// are the indices, with a warning.  `classes`: their number, or 0.  Throws Error naming `where` for other JSON, for
// UTF-16, and for blank lines among fewer names than classes.
std::vector<std::string> parse_labels(std::string text, const std::string& where, size_t classes);

}  // namespace vitrail::models
