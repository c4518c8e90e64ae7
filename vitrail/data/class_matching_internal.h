// SPDX-License-Identifier: Apache-2.0
#pragma once
// Matches the names of class folders with the classes of a model.
#include <cstdint>
#include <string>
#include <vector>

namespace vitrail::data {

struct ClassMatch {
  bool matched = false;          // false: no name matched; the indices are 0, 1, … in the order of the names
  std::vector<int64_t> indices;  // class index per name
};

// A name matches, in this order of precedence: a WordNet id, a complete label ("tabby, tabby cat"), one of a label's
// comma-separated synonyms ("tabby").  Case is ignored and '_' equals ' '.  `labels` and `wordnet_ids` are in index
// order; either may be empty.
//
// Either all names match or none.  Throws Error if only some match, or if a name fits several classes equally well
// ("crane" is a bird and a machine); the message lists all such names.
ClassMatch match_classes(const std::string& where, const std::vector<std::string>& names,
                         const std::vector<std::string>& labels, const std::vector<std::string>& wordnet_ids);

}  // namespace vitrail::data
