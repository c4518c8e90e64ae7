// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which class of a model a folder's name means.
#include <cstdint>
#include <string>
#include <vector>

namespace vitrail::data {

struct ClassMatch {
  bool matched = false;          // else the names stand for 0, 1, … in the order given
  std::vector<int64_t> indices;  // per name
};

// A name means the class whose WordNet id it is; else the one whose whole label it is ("tabby, tabby cat"); else the
// one that has it among the label's comma-separated synonyms ("tabby").  Upper and lower case are the same, and so are
// '_' and ' '.  `labels` and `wordnet_ids` are in index order, either may be empty.
//
// All names match, or none does: when none names any class, they are taken in the order given.  Throws Error when some
// match and others do not, or when a name fits several classes equally well ("crane" is a bird and a machine); it lists
// every such name.
ClassMatch match_classes(const std::string& where, const std::vector<std::string>& names,
                         const std::vector<std::string>& labels, const std::vector<std::string>& wordnet_ids);

}  // namespace vitrail::data
